"""A worker that froze past its lease: another takes over, and what the first one does after it wakes changes nothing.

The frozen worker is a process stopped by SIGSTOP in the body of ``charge``.
"""

import contextlib
import json
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from gnl_middleware import Done, LeaseLostError, NotDone, journaled, never
from tests.leases import workers
from tests.leases.clocks import TurnedClock
from tests.leases.workers import RUN, Shop, effects_in
from tests.processes.children import Child
from tests.storage import rows, writers

LEASE = 0.5


@pytest.fixture
def frozen(path, effects):
    """A worker that stands still in the body of its charge."""
    with Child(workers.hold, path, effects, LEASE) as child:
        assert child.hear() == "charging"
        child.stop()
        yield child


def finish(journal, effects, answer):
    """Take the run over when its lease has ended, and finish it."""
    shop = Shop(effects, answer=answer)
    with journal.run(RUN, on_busy="wait") as run:
        return run.attempt, shop.charge(), shop.mail()


def wake(frozen, result):
    """Let the frozen worker go on: its charge returns, then it tries to mail, then it leaves."""
    frozen.go_on()
    frozen.tell(result)
    charged = frozen.hear()
    frozen.tell()
    return charged, frozen.hear(), frozen.hear()


def test_another_worker_takes_over_when_the_lease_has_ended(frozen, effects, open_journal):
    """A holder that stands still loses the run when its lease ends; the next one asks recover and finishes."""
    assert finish(open_journal(), effects, NotDone()) == (2, "charged", "mailed")

    assert effects_in(effects) == ["charge", "charge", "mail"]


@pytest.mark.parametrize("answer", [NotDone(), Done("found")], ids=["ran again", "recovered"])
def test_woken_worker_starts_nothing_more(frozen, effects, open_journal, answer):
    """A worker that wakes after the takeover gets LeaseLostError before its next effect, and again when it leaves."""
    finish(open_journal(), effects, answer)
    before = effects_in(effects)

    _, mailed, left = wake(frozen, "too late")

    assert mailed["mail"] == "LeaseLostError"
    assert left == {"left": "LeaseLostError"}
    assert effects_in(effects) == before
    assert frozen.end() == (0, "")


@pytest.mark.parametrize(
    ("answer", "recorded"),
    [(NotDone(), "charged"), (Done("found"), "found")],
    ids=["ran again", "recovered"],
)
def test_the_record_stands(frozen, path, effects, open_journal, answer, recorded):  # noqa: PLR0917 - fixtures
    """The late outcome of a woken worker never replaces what the new one recorded; it is kept beside it as news."""
    journal = open_journal()
    finish(journal, effects, answer)

    wake(frozen, "too late")

    charge = next(step for step in journal.steps(RUN) if step.name == "charge")
    assert (charge.status, charge.value) == ("done", recorded)
    assert json.loads(rows.value(path, "SELECT late FROM gnl_steps WHERE name = 'charge'")) == "too late"


def test_a_decision_stands(frozen, path, effects, open_journal):
    """A person's decision about an interrupted call is not undone when the worker of that call wakes."""
    journal = open_journal()
    with pytest.raises(Exception, match="may have happened"), journal.run(RUN, on_busy="wait"):
        pass
    journal.resolve(RUN, "charge", Done("seen at the bank"), by="ops")

    wake(frozen, "too late")

    (charge,) = journal.steps(RUN)
    assert (charge.value, charge.resolution) == ("seen at the bank", "happened")
    assert json.loads(rows.value(path, "SELECT late FROM gnl_steps")) == "too late"


def test_late_outcome_is_the_record_where_nothing_else_is(frozen, effects, open_journal):
    """An outcome is news about the world: with its try still the step's, it is recorded though the lease was lost."""
    journal = open_journal()
    with pytest.raises(Exception, match="may have happened"), journal.run(RUN, on_busy="wait"):
        pass

    charged, _, left = wake(frozen, "in time")

    (charge,) = journal.steps(RUN)
    assert charged["charge"] == "in time"
    assert left == {"left": "LeaseLostError"}
    assert (charge.status, charge.value, charge.blocked) == ("done", "in time", None)
    assert finish(journal, effects, None) == (3, "in time", "mailed")


def test_woken_worker_learns_of_its_loss_by_renewing(frozen, effects, open_journal):
    """The renewal of a lease that changed hands is refused: it does not take the run back."""
    journal = open_journal()
    shop = Shop(effects, answer=NotDone())
    with journal.run(RUN, on_busy="wait") as run:
        (before,) = journal.runs()
        charged, mailed, left = wake(frozen, "too late")

        (after,) = journal.runs()
        assert (after.holder, after.status) == (before.holder, "running")
        assert after.lease_ends_at >= before.lease_ends_at
        assert [shop.charge(), shop.mail()] == ["too late", "mailed"]
    assert charged["lost"] is not None or mailed["lost"] is not None
    assert left == {"left": "LeaseLostError"}
    assert run.attempt == 2
    assert journal.runs()[0].status == "completed"


def test_frozen_worker_that_wakes_in_time_goes_on(path, effects, open_journal):
    """Being frozen for less than the lease costs nothing: renewal and effects go on."""
    with Child(workers.hold, path, effects, 30.0) as child:
        child.hear()
        child.stop()

        assert wake(child, "charged") == (
            {"charge": "charged", "lost": None},
            {"mail": "mailed", "lost": None},
            {"left": None},
        )
    assert open_journal().runs()[0].status == "completed"


def test_outcome_of_the_last_moment_is_loaded(path, effects, ahead):
    """The new owner loads after its takeover has committed: an outcome committed just before is part of the record."""
    shop = Shop(effects, answer=NotDone())

    # The first worker's clock stands still and its lease is long, so that it neither notices nor renews.
    with Child(workers.hold, path, effects, 3600.0, True) as first:
        first.hear()

        def return_at_the_last_moment():
            first.tell("charged in time")
            assert first.hear() == {"charge": "charged in time", "lost": None}

        assert [record.status for record in ahead.runs()] == ["interrupted"]
        writers.before_statement(ahead._database(), "BEGIN IMMEDIATE", return_at_the_last_moment)
        with ahead.run(RUN) as run:
            assert shop.charge() == "charged in time"

    assert (run.attempt, shop.asked) == (2, 0)
    assert effects_in(effects) == ["charge"]


def test_slow_answer_of_the_old_worker_changes_nothing(path, effects, open_journal, ahead):
    """Two workers that ask `recover` about one call, the first before its takeover: the answer that was recorded stands."""
    with Child(workers.hold, path, effects, 30.0) as dead:
        dead.hear()
        dead.kill()
    asked, answer = threading.Event(), threading.Event()

    def recover_slowly(call):
        asked.set()
        answer.wait()
        return Done("the old worker's answer")

    def settle(journal, recover):
        with contextlib.suppress(LeaseLostError), journal.run(RUN):
            return journaled(lambda: "charged", replay=never(recover=recover), name="charge")()

    old, new = open_journal(clock=TurnedClock(frozen=True)), ahead
    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(settle, old, recover_slowly)
        asked.wait()
        assert settle(new, lambda call: Done("the new worker's answer")) == "the new worker's answer"
        answer.set()
        slow.result()

    assert [step.value for step in new.steps(RUN)] == ["the new worker's answer"]
