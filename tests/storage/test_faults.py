"""A journal that cannot be written: nothing runs that could not be recorded, nothing runs twice, and the error says what to do."""

import contextlib
import subprocess
import sys
import threading

import pytest
import sqlalchemy as sa

from gnl_middleware import Done, Journal, JournalUnavailableError, journaled, never
from gnl_middleware.storage.link import RETRIES
from gnl_middleware.storage.protocol import Task
from tests.lacking import lack
from tests.processes.children import Child
from tests.processes.nursery import ROOT
from tests.storage import faults, writers
from tests.storage.faults import RUN

CANNOT = "JournalUnavailableError"


@pytest.fixture
def small_disk(tmp_path):
    """A disk of a few hundred kilobytes, mounted where only this process and its children see it."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = f"mount -t tmpfs -o size=600k none {folder} && exec {sys.executable} -W error -m tests.storage.on_a_small_disk"
    if subprocess.run(["unshare", "-rm", "mount", "-t", "tmpfs", "none", folder], check=False).returncode:
        lack("this system lets no test mount a disk of its own")

    def run(program):
        ended = subprocess.run(
            ["unshare", "-rm", "sh", "-c", f"{mount} {program} {folder}/runs.db"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert (ended.returncode, ended.stderr) == (0, ""), ended.stdout
        return ended.stdout

    return run


def words_of(child, number):
    """What a program says, to its end."""
    words = [child.hear() for _ in range(number)]
    assert child.end() == (0, "")
    return words


def check_intents(words):
    """No space for an intent: the effect does not happen, and nothing after it; with space again the run goes on."""
    second, third, fourth, left, ran, again, after = words
    assert [answer[0] for answer in (second, third, fourth, left)] == [CANNOT] * 4
    assert ran == ["first"]
    assert again == ["returned", "ran"]
    assert after == [["first", "second"], "completed"]
    return second[1]


def check_outcomes(words):
    """No space for an outcome: the effect is not repeated in this attempt, and the next one asks recover."""
    second, repeated, third, left, ran, again, after = words
    assert [answer[0] for answer in (second, repeated, third, left)] == [CANNOT] * 4
    assert ran == ["second"]
    assert again == ["returned", "recovered"]
    assert after == [["second"], "completed"]


def test_no_room_for_an_intent(path):
    """Where the journal's file cannot grow, the body does not run; with room again the same process goes on at once."""
    with Child(faults.no_space_for_an_intent, path, "limit") as child:
        message = check_intents(words_of(child, 7))

    assert f"Check the disk under {path}, then run again" in message


def test_no_room_for_an_outcome(path):
    """Where the outcome finds no room, the body is not run again because of that; the next attempt settles it."""
    with Child(faults.no_space_for_an_outcome, path, "limit") as child:
        check_outcomes(words_of(child, 7))


def test_full_disk_before_an_effect(small_disk):
    """The same on a disk that is really full; the error says to free space."""
    said = small_disk("no_space_for_an_intent")

    assert "Free space on that disk, then run again" in said
    assert said.splitlines()[-1] == "held"


def test_full_disk_after_an_effect(small_disk):
    """The same for an outcome."""
    said = small_disk("no_space_for_an_outcome")

    assert said.splitlines()[-1] == "held"


def test_read_only_file(path, journal):
    """A file that may not be written is an error that says so before anything runs."""
    with journal.run(RUN):
        pass
    journal.close()
    path.chmod(0o444)

    with Child(faults.open_it, path) as child:
        opened, _, ran = words_of(child, 3)

    assert opened[0] == CANNOT
    assert f"Make {path} and its folder writable for this user, then run again" in opened[1]
    assert ran == []


def test_read_only_folder(path, journal):
    """A folder that may not be written, where SQLite must put its log, is the same."""
    with journal.run(RUN):
        pass
    journal.close()
    path.parent.chmod(0o555)

    with Child(faults.open_it, path) as child:
        opened, _, ran = words_of(child, 3)
    path.parent.chmod(0o755)

    assert opened[0] == CANNOT
    assert "writable for this user, then run again" in opened[1]
    assert ran == []


def test_missing_folder(journal_at, tmp_path):
    """A folder that does not exist is an error that names it; nothing is created behind the user's back."""
    path = tmp_path / "missing" / "runs.db"

    with pytest.raises(JournalUnavailableError) as caught:
        journal_at(path).run(RUN).__enter__()

    assert f"Create the folder {path.parent}" in str(caught.value)
    assert not path.parent.exists()


def test_folder_instead_of_a_file(journal_at, tmp_path):
    """A folder where the file should be is an error that says what is wrong with the path."""
    with pytest.raises(JournalUnavailableError) as caught:
        journal_at(tmp_path).run(RUN).__enter__()

    assert "is a folder" in str(caught.value)


class Gone:
    """The ways in which an open journal's file gets lost, and how it is put back."""

    def __init__(self, path):
        self._path, self._aside = path, path.with_name("aside.db")

    def move(self):
        """The file is moved away."""
        self._path.rename(self._aside)

    def replace(self):
        """Another file takes its place."""
        self.move()
        self._path.touch()

    def put_back(self):
        """The file itself comes back."""
        self._aside.replace(self._path)


@pytest.mark.parametrize("way", ["move", "replace"])
def test_lost_file_before_an_effect(journal, path, way):
    """A file that was moved away or replaced while it is open: the body does not run, since nobody would find its record."""
    gone, ran = Gone(path), []
    charge = journaled(lambda: ran.append("charge"), replay=never, name="charge")

    with pytest.raises(JournalUnavailableError) as caught, journal.run(RUN):
        getattr(gone, way)()
        charge()

    assert ran == []
    for part in (str(path), "deleted or replaced", "Put the file back"):
        assert part in str(caught.value)


@pytest.mark.parametrize("way", ["move", "replace"])
def test_lost_file_during_an_effect(journal, path, way):
    """The same during a body: it is not run again in this attempt; with the file back, the next attempt settles it."""
    gone, ran = Gone(path), []

    @journaled(replay=never(recover=lambda _call: Done("recovered")))
    def charge():
        ran.append("charge")
        getattr(gone, way)()
        return "charged"

    with pytest.raises(JournalUnavailableError), journal.run(RUN):
        for _time in range(3):
            with pytest.raises(JournalUnavailableError):
                charge()
    gone.put_back()

    with journal.run(RUN):
        assert charge() == "recovered"
    assert ran == ["charge"]


def test_deleted_file_is_not_silently_created_anew(journal, path):
    """A deleted journal does not come back empty in the same process: the next run is told, not started from nothing."""
    with journal.run(RUN):
        pass
    path.unlink()

    with pytest.raises(JournalUnavailableError):
        journal.run(RUN).__enter__()

    assert not path.exists()


@pytest.mark.parametrize("way", ["move", "replace"])
def test_lost_file_is_not_read_either(journal, path, way):
    """What a lost file held is not shown as if it were the journal."""
    with journal.run(RUN):
        pass
    getattr(Gone(path), way)()

    with pytest.raises(JournalUnavailableError):
        journal.runs()


@contextlib.contextmanager
def soon(seconds, act):
    """Do something a little later, while a block waits for it."""
    timer = threading.Timer(seconds, act)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()


def test_locked_file_is_waited_for(journal, path):
    """Another process that holds the file's lock for a while delays a step, and no more than that."""
    ran = []
    charge = journaled(lambda: ran.append("charge") or "charged", replay=never, name="charge")
    with journal.run(RUN), Child(faults.lock, path) as other:
        assert other.hear() == "locked"
        with soon(1.0, other.tell):
            assert charge() == "charged"

        assert other.hear() == "free"
    assert ran == ["charge"]


@pytest.mark.parametrize("first_use", ["runs", "run"])
def test_new_file_that_another_process_creates_is_waited_for(journal, path, first_use):
    """The same at a journal's first use: whoever reads or writes a file that another process is creating waits for it."""
    with Child(faults.lock, path) as other:
        assert other.hear() == "locked"
        with soon(0.5, other.tell):
            if first_use == "runs":
                assert journal.runs() == []
            else:
                with journal.run(RUN) as run:
                    assert run.attempt == 1

        assert other.hear() == "free"


@pytest.fixture
def impatient(path):
    """A journal whose connections give up on a lock soon, and the transactions that they tried to begin."""
    begun = []
    with Journal(path) as journal:
        engine = journal._database().engine

        @sa.event.listens_for(engine, "connect")
        def wait_briefly(connection, _record):
            connection.execute("PRAGMA busy_timeout=20")

        @sa.event.listens_for(engine, "before_cursor_execute")
        def count(_connection, _cursor, statement, *_rest):
            if statement == "BEGIN IMMEDIATE":
                begun.append(statement)

        yield journal, begun


def test_file_that_stays_locked_stops_the_step(impatient, path):
    """A file that is locked at the limit: the body does not run without its intent, and the error says why."""
    journal, _ = impatient
    ran = []
    charge = journaled(lambda: ran.append("charge"), replay=never, name="charge")

    with (
        pytest.raises(JournalUnavailableError) as caught,
        journal.run(RUN),
        Child(faults.lock, path) as other,
    ):
        other.hear()
        charge()

    assert "Another process holds the file for long: end it, then run again" in str(caught.value)
    assert ran == []


def test_waiting_for_a_locked_file_is_bounded(impatient, path):
    """Steps that wait together for a locked file wait for it together: not each row anew, as long as all of them."""
    journal, begun = impatient
    database = journal._database()
    with journal.run(RUN), Child(faults.lock, path) as other:
        with writers.held(database):
            other.hear()
            begun.clear()
            waiting = [database.submit(Task(lambda _connection: None)) for _ in range(8)]
        errors = [write.ended.exception() for write in waiting]
        other.tell()
        other.hear()

    assert {type(error) for error in errors} == {JournalUnavailableError}
    assert len(begun) <= 3 * RETRIES


@pytest.mark.long
def test_file_that_stays_locked(journal, path):
    """A file that stays locked for longer than the journal waits: the body does not run, and the error says why."""
    ran = []
    charge = journaled(lambda: ran.append("charge"), replay=never, name="charge")
    with Child(faults.lock, path, patience=900) as other:
        with pytest.raises(JournalUnavailableError), journal.run(RUN, lease=3600):
            other.hear()
            with pytest.raises(JournalUnavailableError) as caught:
                charge()
        assert "Another process holds the file for long" in str(caught.value)
    assert ran == []
