"""The smallest form of what the campaigns of this folder have found, so that it is found at once if it comes back."""

import contextlib
import contextvars
import threading

import pytest

from gnl_middleware import (
    Done,
    Journal,
    JournalCorruptError,
    NotDone,
    RecordedError,
    SideEffectRetryBlockedError,
    journaled,
    never,
    safe,
)
from gnl_middleware.codec import content_hash
from tests.storage import rows

RUN = "order-7"


class Killed(BaseException):
    """The process ends in a body."""


@pytest.fixture
def path(tmp_path):
    """The journal's file."""
    return tmp_path / "runs.db"


@pytest.fixture
def order(path):
    """Play a run of two side effects; gives what they gave, and the bodies that ran."""

    def play():
        ran = []
        charge = journaled(lambda: ran.append("charge") or "charged", replay=never, name="charge")
        mail = journaled(lambda: ran.append("mail") or "mailed", replay=never, name="mail")
        with Journal(path) as journal, journal.run(RUN):
            given = [charge(), mail()]
        return given, ran

    return play


def test_decision_to_run_is_obeyed_after_the_last_try(path):
    """A person who says that a call has not happened lets it run, also where it was tried as often as it may be."""
    ran = []

    def body():
        ran.append("charge")
        if len(ran) == 1:
            raise Killed
        return "charged"

    charge = journaled(body, replay=never(max_attempts=1), name="charge")
    with Journal(path) as journal:
        with pytest.raises(Killed), journal.run(RUN):
            charge()
        with pytest.raises(SideEffectRetryBlockedError), journal.run(RUN):
            charge()
        journal.resolve(RUN, "charge", NotDone(), by="ops")

        with journal.run(RUN):
            given = charge()

    assert (given, ran) == ("charged", ["charge", "charge"])


@pytest.mark.parametrize(
    "edit",
    [
        "SET value_hash = (SELECT value_hash FROM gnl_steps WHERE name = 'mail')",
        "SET status = 'withdrawn'",
        "SET status = 'started', value_hash = NULL, finished_at = NULL, ended = NULL",
        "SET policy = 'safe'",
        "SET tries = 1000",
        "SET raw = 1",
    ],
)
def test_row_put_together_from_others(path, order, edit):
    """A row whose cells are all readable but were not written together is refused: it would be believed."""
    order()
    rows.change(path, f"UPDATE gnl_steps {edit} WHERE name = 'charge'")

    with pytest.raises(JournalCorruptError) as damaged:
        order()
    with Journal(path) as journal, pytest.raises(JournalCorruptError):
        journal.steps(RUN)

    assert damaged.value.where.startswith(f"run '{RUN}', step 'charge")


@pytest.mark.parametrize("lost", ["gnl_steps WHERE name = 'mail'", "gnl_steps", "gnl_runs"])
def test_missing_rows(path, order, lost):
    """Rows that a damaged index no longer finds are missed: their side effects do not happen once more."""
    order()
    rows.on_file(path, lambda connection: connection.execute(f"DELETE FROM {lost}"))

    with pytest.raises(JournalCorruptError) as damaged:
        order()

    assert RUN in damaged.value.where


@pytest.fixture
def rated(path):
    """Play a run that rates an order, is refused, goes on, and notes it; gives the bodies that ran."""

    def play():
        ran = []

        def refuse():
            ran.append("refuse")
            raise ValueError("no stock")

        rate = journaled(lambda: ran.append("rate") or "good", replay=safe, name="rate")
        refused = journaled(refuse, replay=safe, name="refuse")
        note = journaled(lambda: ran.append("note") or "noted", replay=safe, name="note")
        with Journal(path) as journal, journal.run(RUN):
            rate()
            with contextlib.suppress(ValueError, RecordedError):
                refused()
            note()
        return ran

    return play


@pytest.mark.parametrize("number", [1, 2, 3])
def test_missing_row_of_a_safe_step(path, rated, number):
    """A row of any step that a damaged index no longer finds is missed: what ended with its run does not run again."""
    rated()
    rows.change(path, "UPDATE gnl_steps SET run_id = 'never' WHERE number = ?", number)

    with pytest.raises(JournalCorruptError, match=RUN):
        rated()


@pytest.mark.parametrize(
    "edit",
    [
        "gnl_attempts SET status = 'withdrawn'",
        "gnl_attempts SET run_id = 'never'",
        "gnl_attempts SET ended_at = 1.5",
        "gnl_runs SET completed_at = NULL",
        "gnl_runs SET completed_at = 1.5",
    ],
)
def test_damaged_end_of_an_attempt(path, rated, edit):
    """Where the rows disagree about whether the run was completed, nobody guesses which failures were handled."""
    rated()
    rows.change(path, f"UPDATE {edit}")

    with pytest.raises(JournalCorruptError, match=RUN):
        rated()


def test_undamaged_run_reads_everything_back(rated):
    """The same run, undamaged, runs nothing, however often it is replayed."""
    assert rated() == ["rate", "refuse", "note"]
    assert (rated(), rated()) == ([], [])


def test_attempt_without_a_number(path, order):
    """An attempt whose number is none is an error of the journal that names the run, not one of Python."""
    order()
    rows.change(path, "UPDATE gnl_attempts SET attempt = 'first'")

    with pytest.raises(JournalCorruptError, match=RUN):
        order()


@pytest.mark.parametrize("column", ["arguments_hash", "value_hash"])
def test_unreadable_payload_is_listed_by_its_step(path, order, column):
    """A payload that fits its hash but cannot be read is reported with run and step where a person looks at the run."""
    order()
    body = b'{"$gnl":"tuple","value":5}'
    digest = content_hash(body)
    rows.on_file(
        path,
        lambda connection: connection.execute(
            "INSERT INTO gnl_blobs (run_id, hash, compressed, body) VALUES (?, ?, 0, ?)", (RUN, digest, body)
        ),
    )
    rows.change(path, f"UPDATE gnl_steps SET {column} = ? WHERE name = 'charge'", digest)

    with Journal(path) as journal, pytest.raises(JournalCorruptError) as damaged:
        journal.steps(RUN)

    assert damaged.value.where.startswith(f"run '{RUN}', step 'charge")


def test_body_left_behind_that_has_ended_is_settled(path):
    """A body that outlived its attempt and has died since may have had its effect: it is settled before the run ends."""
    began, dies, asked = threading.Event(), threading.Event(), []

    def body():
        began.set()
        dies.wait()
        raise Killed

    def recover(call):
        asked.append(call.tool)
        return Done("seen")

    def left_behind():
        with contextlib.suppress(Killed):
            refund()

    refund = journaled(body, replay=never(recover=recover), name="refund")
    with Journal(path) as journal:
        with journal.run(RUN, grace=0.0):
            thread = threading.Thread(target=contextvars.copy_context().run, args=(left_behind,))
            thread.start()
            began.wait()
        with journal.run(RUN):
            dies.set()
            thread.join()
        (record,), (step,) = journal.runs(), journal.steps(RUN)

    assert (record.status, step.status, step.value, asked) == ("completed", "done", "seen", ["refund"])
