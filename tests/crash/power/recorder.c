/* Records what a process does to the files of one folder, in order: every write, truncation, sync, creation and removal.
 *
 * Preloaded before the C library. DISK_FOLDER names the folder, DISK_LOG the file that gets the record. The system calls
 * happen as asked for; each one and its record are one step, so that the order of the records is the order of the calls.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MOST_FILES 4096

struct record {
    uint64_t nanoseconds;
    int64_t offset; /* of a write; the new length of a truncated file; 1 for a file that an open creates */
    uint32_t length; /* of what follows: the bytes of a write, or a path */
    int32_t file;
    char what; /* (o)pen, (c)lose, (w)rite, (t)runcate, (s)ync, (u)nlink */
    char padding[7];
};

static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;
static char is_ours[MOST_FILES];
static int record_file = -1;
static const char *folder;

__attribute__((constructor)) static void begin(void)
{
    const char *path = getenv("DISK_LOG");
    folder = getenv("DISK_FOLDER");
    if (path != NULL && folder != NULL)
        record_file = syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

static void put(const void *bytes, size_t length)
{
    while (length > 0) {
        ssize_t written = syscall(SYS_write, record_file, bytes, length);
        if (written <= 0)
            abort(); /* a record with a hole would prove nothing */
        bytes = (const char *)bytes + written;
        length -= written;
    }
}

static void note(char what, int file, int64_t offset, const void *bytes, size_t length)
{
    struct timespec now;
    struct record record = {.offset = offset, .length = length, .file = file, .what = what};
    int error = errno;
    clock_gettime(CLOCK_MONOTONIC, &now);
    record.nanoseconds = (uint64_t)now.tv_sec * 1000000000u + now.tv_nsec;
    put(&record, sizeof record);
    put(bytes, length);
    errno = error;
}

static int in_folder(const char *path)
{
    size_t length = folder == NULL ? 0 : strlen(folder);
    if (record_file < 0 || strncmp(path, folder, length) != 0)
        return 0;
    return path[length] == '/' || path[length] == '\0';
}

static int ours(int file)
{
    return record_file >= 0 && file >= 0 && file < MOST_FILES && is_ours[file];
}

static int open_and_note(int at, const char *path, int flags, mode_t mode)
{
    int created, file;
    if (!in_folder(path))
        return syscall(SYS_openat, at, path, flags, mode);
    pthread_mutex_lock(&one_at_a_time);
    created = (flags & O_CREAT) != 0 && syscall(SYS_faccessat, AT_FDCWD, path, F_OK) != 0;
    file = syscall(SYS_openat, at, path, flags, mode);
    if (file >= MOST_FILES)
        abort();
    if (file >= 0) {
        is_ours[file] = 1;
        note('o', file, created, path, strlen(path));
        if (flags & O_TRUNC)
            note('t', file, 0, NULL, 0);
    }
    pthread_mutex_unlock(&one_at_a_time);
    return file;
}

#define OPEN(name, at_parameter, at)                                  \
    int name(at_parameter const char *path, int flags, ...)           \
    {                                                                 \
        va_list more;                                                 \
        mode_t mode;                                                  \
        va_start(more, flags);                                        \
        mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(more, int) : 0; \
        va_end(more);                                                 \
        return open_and_note(at, path, flags, mode);                  \
    }
#define AT_PARAMETER int at,
OPEN(open, , AT_FDCWD)
OPEN(open64, , AT_FDCWD)
OPEN(openat, AT_PARAMETER, at)
OPEN(openat64, AT_PARAMETER, at)

int close(int file)
{
    int result;
    if (!ours(file))
        return syscall(SYS_close, file);
    pthread_mutex_lock(&one_at_a_time);
    is_ours[file] = 0;
    note('c', file, 0, NULL, 0);
    result = syscall(SYS_close, file);
    pthread_mutex_unlock(&one_at_a_time);
    return result;
}

ssize_t pwrite64(int file, const void *bytes, size_t length, off64_t offset)
{
    ssize_t written;
    if (!ours(file))
        return syscall(SYS_pwrite64, file, bytes, length, offset);
    pthread_mutex_lock(&one_at_a_time);
    written = syscall(SYS_pwrite64, file, bytes, length, offset);
    if (written > 0)
        note('w', file, offset, bytes, written);
    pthread_mutex_unlock(&one_at_a_time);
    return written;
}

ssize_t pwrite(int file, const void *bytes, size_t length, off_t offset)
{
    return pwrite64(file, bytes, length, offset);
}

ssize_t write(int file, const void *bytes, size_t length)
{
    ssize_t written;
    if (!ours(file))
        return syscall(SYS_write, file, bytes, length);
    pthread_mutex_lock(&one_at_a_time);
    written = syscall(SYS_write, file, bytes, length);
    if (written > 0)
        note('w', file, lseek(file, 0, SEEK_CUR) - written, bytes, written);
    pthread_mutex_unlock(&one_at_a_time);
    return written;
}

int ftruncate64(int file, off64_t length)
{
    int result;
    if (!ours(file))
        return syscall(SYS_ftruncate, file, length);
    pthread_mutex_lock(&one_at_a_time);
    result = syscall(SYS_ftruncate, file, length);
    if (result == 0)
        note('t', file, length, NULL, 0);
    pthread_mutex_unlock(&one_at_a_time);
    return result;
}

int ftruncate(int file, off_t length)
{
    return ftruncate64(file, length);
}

static int sync_and_note(long call, int file)
{
    int result;
    if (!ours(file))
        return syscall(call, file);
    /* Recorded before the lock is given back: nothing that comes later may seem to have been synced. */
    pthread_mutex_lock(&one_at_a_time);
    result = syscall(call, file);
    if (result == 0)
        note('s', file, 0, NULL, 0);
    pthread_mutex_unlock(&one_at_a_time);
    return result;
}

int fdatasync(int file)
{
    return sync_and_note(SYS_fdatasync, file);
}

int fsync(int file)
{
    return sync_and_note(SYS_fsync, file);
}

int unlink(const char *path)
{
    int result;
    if (!in_folder(path))
        return syscall(SYS_unlinkat, AT_FDCWD, path, 0);
    pthread_mutex_lock(&one_at_a_time);
    result = syscall(SYS_unlinkat, AT_FDCWD, path, 0);
    if (result == 0)
        note('u', -1, 0, path, strlen(path));
    pthread_mutex_unlock(&one_at_a_time);
    return result;
}
