"""The one writer of a journal: everything that waits is committed in one transaction, in the order of its coming.

Every write is committed before its caller is told; what differs is who waits for the disk. A durable write (the intent
of a side effect) is synced with its commit, and so is all that stands before it; the rest is synced by the next durable
commit, or within ``SYNC_WITHIN`` seconds.

One thread commits at a time. A thread that waits for its write commits what waits itself, where nobody is at it: to hand
it to another thread and to be woken takes longer than the commit. Otherwise, and for all that cannot wait (event loops,
writes that only tell), the writer's own thread does it.
"""

import threading
from collections import deque
from contextvars import Context

import sqlalchemy as sa

from gnl_middleware import clock

from . import operations
from .batches import Result, write_at_once, write_batch
from .counters import Counters
from .gate import Gate
from .link import Link
from .prepared import execute
from .protocol import Task, Write

SYNC_WITHIN = 0.05
"""Seconds within which a commit that nobody waits for reaches the disk."""


class Writer:
    """Commits writes in the order in which they were handed over.

    It holds no reference to the journal, so that a forgotten journal can be collected and its thread ends.

    Args:
        link: The database.
        counters: Where commits and syncs are counted.
        gate: Stood in during a transaction.
    """

    def __init__(
        self,
        link: Link,
        counters: Counters,
        gate: Gate,
    ) -> None:
        self._link, self._counters, self._gate = link, counters, gate
        self._clock = clock.SystemClock()
        self._wake = threading.Condition()
        self._queue: deque[Write] = deque()
        self._thread: threading.Thread | None = None
        self._wanted = self._resting = self._closed = False
        # What follows belongs to whoever commits.
        self._committing = threading.Lock()
        self._connection: sa.Connection | None = None
        self._syncing: bool | None = None
        self._unsynced_since: float | None = None

    def submit(self, write: Write) -> Write:
        """Queue a write and have the writer's thread commit it; ``write.ended`` tells when it has.

        Raises:
            JournalUnavailableError: The journal is closed.
        """
        self.hand_over(write)
        self.wake()
        return write

    def hand_over(self, write: Write) -> Write:
        """Queue a write for which its caller will wait: ``write.result()`` commits it.

        Raises:
            JournalUnavailableError: The journal is closed.
        """
        with self._wake:
            if self._closed:
                raise self._link.describe(RuntimeError("it is closed"))
            write.committer = self
            self._queue.append(write)
        return write

    def tell(self, write: Write) -> None:
        """Queue a write for which nobody waits: it is committed with the next one, or within ``SYNC_WITHIN`` seconds.

        Raises:
            JournalUnavailableError: The journal is closed.
        """
        self.hand_over(write)
        self._rouse()

    def wake(self) -> None:
        """Have the writer's thread commit what waits."""
        with self._wake:
            self._wanted = True
            self._start()
            self._wake.notify()

    def commit_here(self) -> None:
        """Commit what waits on this thread, unless another one is at it, which then sees to it."""
        if not self._committing.acquire(blocking=False):
            self.wake()
            return
        try:
            # As on the writer's thread: nothing of the caller's context has a part in what is written.
            Context().run(self._commit_queue)
        finally:
            self._committing.release()
            self._rouse()

    def _rouse(self) -> None:
        """See that the thread looks after what is left: what waits, and what has not reached the disk."""
        with self._wake:
            left = bool(self._queue) or self._unsynced_since is not None
            if left and (self._thread is None or self._resting):
                self._start()
                self._wake.notify()

    def _start(self) -> None:
        if self._thread is None and not self._closed:
            self._thread = threading.Thread(target=self._work, name="gnl-writer", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """Commit and sync what is queued, then end the thread and its connection."""
        with self._wake:
            if self._queue or self._connection is not None:
                self._start()
            self._closed = True
            self._wake.notify()
            thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def _work(self) -> None:
        while self._wait_for_work():
            with self._committing:
                self._commit_queue()
                self._sync(older_than=SYNC_WITHIN / 2)
        with self._committing:
            self._commit_queue()
            self._sync(older_than=0.0)
            self.drop_connection()

    def _wait_for_work(self) -> bool:
        """Wait until something is to be committed or synced; False where the journal is closed.

        While anything is left it looks twice in ``SYNC_WITHIN``, so that whoever commits need not wake it each time.
        """
        with self._wake:
            while not self._closed and not self._wanted:
                self._resting = not self._queue and self._unsynced_since is None
                woken = self._wake.wait(None if self._resting else SYNC_WITHIN / 2)
                self._resting = False
                if not woken and (self._queue or self._unsynced_since is not None):
                    break
            self._wanted = False
            return not self._closed

    def _commit_queue(self) -> None:
        """Commit what waits. The caller holds ``_committing``."""
        batch: list[Write] = []
        try:
            with self._wake:
                batch.extend(self._queue)
                self._queue.clear()
            for write, result, error in self._commit(batch):
                if error is None:
                    write.ended.set_result(result)
                else:
                    write.ended.set_exception(error)
        except BaseException:
            # This thread was interrupted, but others wait, too: the writer's thread goes on. What is committed already is
            # found to be so by its token.
            with self._wake:
                self._queue.extendleft(reversed([write for write in batch if not write.ended.done()]))
            self.wake()
            raise

    def _sync(self, *, older_than: float) -> None:
        """Let what nobody waits for reach the disk, if it waits for so many seconds. The caller holds ``_committing``."""
        since = self._unsynced_since
        if since is not None and self._clock.monotonic() >= since + older_than:
            now = self._clock.time()
            self._commit([_OwnSync(lambda connection: operations.touch(connection, now), durable=True)])
            # Tried once: where even that fails, the next durable commit brings along what stands before it, and a
            # journal whose file is gone can still be closed.
            self._unsynced_since = None

    def _commit(self, batch: list[Write]) -> list[Result]:
        if not batch:
            return []
        try:
            return self._link.persist(lambda: self._transaction(batch))
        except Exception as error:  # noqa: BLE001 - whatever the database raises must reach the callers, not end the thread
            if len(batch) == 1 or self._link.meets_all(error):
                described = self._link.describe(error)
                described.__cause__ = error if described is not error else None
                return [(write, None, described) for write in batch]
            # One bad row must not fail the others that happened to share its commit.
            return [result for write in batch for result in self._commit([write])]

    def _transaction(self, batch: list[Write]) -> list[Result]:
        durable = any(write.durable for write in batch)
        with self._gate:
            try:
                connection = self._ready_connection(durable=durable)
                results, left = write_at_once(connection, batch) if self._link.writes_at_once else ([], batch)
                if left:
                    self._link.begin(connection)
                    results += write_batch(connection, left)
                    execute(connection, "COMMIT")
            except BaseException:
                self.drop_connection()
                raise
        self._count(batch, durable=durable)
        if durable or self._link.always_syncs:
            self._unsynced_since = None
        elif self._unsynced_since is None:
            self._unsynced_since = self._clock.monotonic()
        return results

    def _count(self, batch: list[Write], *, durable: bool) -> None:
        if isinstance(batch[0], _OwnSync):
            self._counters.own_syncs += 1
            return
        self._counters.commits += 1
        self._counters.synced += durable
        self._counters.writes += len(batch)

    def _ready_connection(self, *, durable: bool) -> sa.Connection:
        if self._connection is None:
            self._connection, self._syncing = self._link.connect(), None
        self._link.check()
        if durable is not self._syncing:
            self._link.set_syncing(self._connection, durable=durable)
            self._syncing = durable
        return self._connection

    def drop_connection(self) -> None:
        """Close the connection; the next transaction opens another one."""
        connection, self._connection = self._connection, None
        if connection is not None:
            # A connection that failed is closed for good; returning it to the pool would hand the failure on.
            connection.invalidate()
            connection.close()


class _OwnSync(Task):
    """Lets all that was committed reach the disk, because nobody else does."""
