"""An owner that failed: only an error that proves that nothing happened frees its key (DESIGN 3.4)."""

import pytest

from gnl_middleware import Done, NotDone, SideEffectRetryBlockedError, Unknown, safe
from tests.once.refunds import (
    IN_JOURNAL,
    Refund,
    attempt,
    both_colours,
    both_windows,
    per_order,
    run_status,
    steps,
)

REFUSED = ConnectionRefusedError("refused")
LOST = TimeoutError("no answer")
PROVEN = {"not_performed": (ConnectionRefusedError,)}
OWNER, LATER = ("o-7", "owner"), ("o-7", "later")


def two_runs(journal, refund):
    """The owner fails in a run of its own; gives what a later run's call gets."""
    with pytest.raises(type(refund.endings[0])):
        attempt(journal, refund, OWNER, run_id="owner")
    return attempt(journal, refund, LATER, run_id="later")


def one_run(journal, refund, **options):
    """The owner fails and the program goes on; gives what the later call of the same attempt gets."""
    return attempt(journal, refund, OWNER, LATER, catch=(ConnectionRefusedError, TimeoutError), **options)[1:]


both_places = pytest.mark.parametrize("fails", [one_run, two_runs])


@both_places
@both_colours
class TestProven:
    def test_frees_the_key(self, journal, fails, asynchronous):
        """After an error that is listed in `not_performed`, the later call runs and owns the key from then on."""
        refund = Refund(REFUSED, "refunded", policy=IN_JOURNAL(**PROVEN), asynchronous=asynchronous)

        results = fails(journal, refund)
        third = attempt(journal, refund, ("o-7", "third"), run_id="third")

        assert (results, third, refund.ran) == (["refunded"], ["refunded"], ["owner", "later"])

    def test_asks_nobody(self, journal, fails, asynchronous):
        """What is proven needs no question."""
        asked = []
        policy = IN_JOURNAL(recover=lambda call: asked.append(call) or Unknown(), **PROVEN)
        refund = Refund(REFUSED, "refunded", policy=policy, asynchronous=asynchronous)

        assert (fails(journal, refund), asked) == (["refunded"], [])


@both_places
class TestNotProven:
    def test_blocks_where_nothing_can_tell(self, journal, fails):
        """Any other error may hide the effect: the later call blocks, does not run, and is listed."""
        refund = Refund(LOST, "refunded")

        with pytest.raises(SideEffectRetryBlockedError):
            fails(journal, refund)

        assert refund.ran == ["owner"]
        (blocked,) = [run.run_id for run in journal.runs(status="blocked")]
        assert any(step.blocked for step in journal.steps(blocked))

    def test_shares_what_recover_found(self, journal, fails):
        """`recover` finds the effect of the owner that failed: the later call gets it."""
        asked = []
        policy = IN_JOURNAL(recover=lambda call: asked.append(call) or Done("found"))
        refund = Refund(LOST, "refunded", policy=policy)

        results = fails(journal, refund)

        assert (results, refund.ran) == (["found"], ["owner"])
        assert {(call.arguments["note"], call.error) for call in asked} == {
            ("owner", "TimeoutError: no answer")
        }

    def test_takes_the_place_where_recover_found_nothing(self, journal, fails):
        """`recover` says that nothing happened and nothing can happen any more: the later call runs."""
        refund = Refund(LOST, "refunded", policy=IN_JOURNAL(recover=lambda call: NotDone()))

        assert (fails(journal, refund), refund.ran) == (["refunded"], ["owner", "later"])

    def test_does_not_tell_the_model_in_place_of_blocking(self, journal, fails):
        """A key that is taken is no call of the waiter's that was interrupted: it blocks also with `tell_model`."""
        refund = Refund(LOST, "refunded", policy=IN_JOURNAL(on_interrupted="tell_model"))

        with pytest.raises(SideEffectRetryBlockedError):
            fails(journal, refund)

        assert refund.ran == ["owner"]


@both_windows
def test_a_handled_failure_replays_and_still_holds_the_key(journal, policy):
    """The program handled the owner's error: each attempt raises it again, and a later call of the order blocks."""
    refund = Refund(LOST, "refunded", policy=policy)
    other = Refund(policy=safe, name="note")

    def run():
        with journal.run("run"):
            with pytest.raises(TimeoutError, match="no answer"):
                refund.call(*OWNER)
            other.call("o-7", "refund failed")
            refund.call(*LATER)

    for _ in range(3):
        with pytest.raises(SideEffectRetryBlockedError):
            run()

    assert (refund.ran, other.ran) == (["owner"], ["refund failed"])
    assert run_status(journal) == "blocked"


def test_retries_of_the_owner_are_its_own(journal):
    """An owner that is called again after a proven failure is the same step, and its outcome is what others share."""
    refund = Refund(REFUSED, REFUSED, "refunded", policy=IN_JOURNAL(**PROVEN))
    with journal.run("run"):
        for _ in range(2):
            with pytest.raises(ConnectionRefusedError):
                refund.call(*OWNER)
        first = refund.call(*OWNER)
        later = refund.call(*LATER)

    assert [first, later] == ["refunded"] * 2
    assert refund.ran == ["owner"] * 3
    assert len(set(refund.keys)) == 1
    assert steps(journal) == [("done", None), ("done", "shared")]


def test_a_failure_of_a_safe_call_frees_its_key(journal):
    """A `safe` call may run twice: whatever it failed with, the next one of the key runs."""
    read = Refund(LOST, "read", policy=safe(once_per=per_order, window="journal"))

    assert two_runs(journal, read) == ["read"]


def test_an_error_that_only_shares_its_name_with_a_listed_one(journal):
    """The owner's error must be of a listed class, not of another library's class of the same name."""
    theirs = type("ConnectionRefusedError", (Exception,), {"__module__": "library.errors"})
    refund = Refund(theirs("after sending"), "refunded", policy=IN_JOURNAL(**PROVEN))
    with pytest.raises(theirs):
        attempt(journal, refund, OWNER, run_id="owner")

    with pytest.raises(SideEffectRetryBlockedError):
        attempt(journal, refund, LATER, run_id="later")

    assert refund.ran == ["owner"]
