"""Leaving a run writes too: it gives back only what is still its own."""

import contextlib
import contextvars
import threading

import pytest

from gnl_middleware import GnlError, LeaseLostError, journaled, never
from tests.leases.clocks import TurnedClock
from tests.leases.workers import RUN
from tests.storage import rows

LONG = 3600.0
_RUN = "SELECT status, attempts, fence, holder, completed_at, updated_at, lease_ends_at FROM gnl_runs"


@pytest.mark.parametrize("error", [None, ValueError("broken"), KeyboardInterrupt()], ids=repr)
def test_leaving_after_a_takeover_changes_nothing_of_the_new_holder(frozen, ahead, path, error):
    """However the old worker leaves, the new one keeps the run: its holder, its fence, its lease, its status."""
    # In a context of its own, as another worker has: the two do not end in the order in which they began.
    old, elsewhere = frozen.run(RUN, lease=LONG), contextvars.copy_context()
    elsewhere.run(old.__enter__)
    with ahead.run(RUN) as new:
        (before,) = rows.rows(path, _RUN)

        with pytest.raises(GnlError) if error is None else contextlib.nullcontext():
            elsewhere.run(old.__exit__, type(error) if error else None, error, None)

        (after,) = rows.rows(path, _RUN)
        assert after[:-1] == before[:-1]
        # The new worker may have renewed meanwhile; nobody has shortened its lease.
        assert after[-1] >= before[-1]
        assert new.value("alive", lambda: "yes") == "yes"
    assert ahead.runs()[0].status == "completed"


def test_failing_after_a_takeover_does_not_fail_the_run(frozen, ahead):
    """The old worker's error belongs to its own attempt, not to the run that the new worker has completed."""
    with pytest.raises(ValueError, match="old worker"), frozen.run(RUN, lease=LONG):
        with ahead.run(RUN):
            pass
        raise ValueError("the old worker broke")

    assert [record.status for record in ahead.runs()] == ["completed"]


def test_attempts_keep_their_own_endings(frozen, ahead, path):
    """An attempt that lost its lease has not ended the run: it is told apart from the one that has."""
    with pytest.raises(LeaseLostError), frozen.run(RUN, lease=LONG), ahead.run(RUN):
        pass

    endings = rows.rows(path, "SELECT attempt, status FROM gnl_attempts ORDER BY attempt")
    assert endings == [(1, "interrupted"), (2, "completed")]


def test_run_can_be_opened_again_after_a_passed_deadline(open_journal):
    """After LeaseLostError the run can be opened again at once, as the error says: its holder has left it."""
    clock = TurnedClock(frozen=True)
    journal = open_journal(clock=clock)
    with pytest.raises(LeaseLostError), journal.run(RUN, lease=LONG) as run:
        clock.ahead = LONG
        run.now()

    clock.ahead = 1.0  # the clock of the machine has not jumped: only this process was too slow
    with journal.run(RUN) as run:
        assert run.attempt == 2


def test_bodies_that_still_run_are_waited_for(open_journal):
    """The lease is given back after the bodies that still run have ended, so that no other worker meets them."""
    journal = open_journal()
    began, leaving, held = threading.Event(), threading.Event(), []

    @journaled(replay=never)
    def charge():
        began.set()
        leaving.wait()
        held.append(journal.runs()[0].holder)
        return "charged"

    with journal.run(RUN, grace=30.0):
        thread = threading.Thread(target=contextvars.copy_context().run, args=(charge,))
        thread.start()
        began.wait()
        leaving.set()
    thread.join()

    assert held != [None]
    assert [step.status for step in journal.steps(RUN)] == ["done"]
    assert journal.runs()[0].status == "completed"


def test_grace_is_the_most_that_leaving_waits(open_journal):
    """A body that outlasts the grace does not keep the run for ever; its outcome is recorded when it comes."""
    journal = open_journal()
    began, go = threading.Event(), threading.Event()

    @journaled(replay=never)
    def charge():
        began.set()
        go.wait()
        return "charged"

    with journal.run(RUN, grace=0.0):
        thread = threading.Thread(target=contextvars.copy_context().run, args=(charge,))
        thread.start()
        began.wait()
    (left,) = journal.runs()
    go.set()
    thread.join()

    assert left.holder is None
    assert [(step.status, step.value) for step in journal.steps(RUN)] == [("done", "charged")]


def test_run_is_not_completed_while_a_side_effect_has_no_outcome(open_journal):
    """A run that is left while the body of a side effect still runs has not completed: nobody knows its outcome yet."""
    journal = open_journal()
    began, go = threading.Event(), threading.Event()

    @journaled(replay=never)
    def charge():
        began.set()
        go.wait()

    with journal.run(RUN, grace=0.0):
        thread = threading.Thread(target=contextvars.copy_context().run, args=(charge,))
        thread.start()
        began.wait()
    (left,) = journal.runs()
    go.set()
    thread.join()

    assert left.status != "completed"
