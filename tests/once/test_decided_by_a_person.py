"""A person decides about a call that waits for another one's effect, or about the owner (DESIGN 3.1, 3.4)."""

import contextlib
import threading

import pytest

from gnl_middleware import (
    Done,
    Failed,
    NotDone,
    RecordedError,
    ResolutionRefusedError,
    SideEffectRetryBlockedError,
)
from tests.once.refunds import (
    IN_JOURNAL,
    PATIENCE,
    Killed,
    Refund,
    attempt,
    died,
    run_status,
    started_thread,
    wait_for,
)

WAITER, OWNER = ("o-7", "waiter"), ("o-7", "owner")


@pytest.fixture
def refund(journal):
    """A refund whose owner was cut off in one run, and whose waiter is blocked in another; this one is whole."""
    dead = died(journal, run_id="owner")
    with pytest.raises(SideEffectRetryBlockedError):
        attempt(journal, dead, WAITER, run_id="waiter")
    return Refund()


def wait(journal, refund):
    return attempt(journal, refund, WAITER, run_id="waiter", catch=(RecordedError,))


def own(journal, refund):
    # The call of the dead, again.
    return attempt(journal, refund, ("o-7", "of the dead"), run_id="owner", catch=(RecordedError,))


class TestOnTheOwner:
    def test_it_happened(self, journal, refund):
        """The owner's result, as the person gave it, is what both get; nothing runs."""
        journal.resolve("owner", "refund", Done("refund 4711"), by="ops")

        results = [wait(journal, refund), own(journal, refund), wait(journal, refund)]

        assert (results, refund.ran) == ([["refund 4711"]] * 3, [])

    @pytest.mark.parametrize("first", [wait, own])
    def test_it_did_not_happen(self, journal, refund, first):
        """Whoever comes back first runs, and the other one shares: one refund."""
        journal.resolve("owner", "refund", NotDone(), by="ops")

        results = [first(journal, refund)] + [call(journal, refund) for call in (wait, own) * 2]

        assert (results, len(refund.ran)) == ([["refunded"]] * 5, 1)

    def test_it_failed(self, journal, refund):
        """A decision that the owner failed is no proof that its key is free: nothing runs in its place unasked."""
        journal.resolve("owner", "refund", Failed("the bank is closed"), by="ops")

        (told,) = own(journal, refund)
        with contextlib.suppress(SideEffectRetryBlockedError):
            wait(journal, refund)

        assert (str(told), refund.ran) == ("the bank is closed", [])


class TestOnTheWaiter:
    def test_it_happened(self, journal, refund):
        """The waiter gets the person's result; the owner stays undecided, and blocks its own run."""
        journal.resolve("waiter", "refund", Done("refund 4711"), by="ops")

        results = [wait(journal, refund), wait(journal, refund)]
        with pytest.raises(SideEffectRetryBlockedError):
            own(journal, refund)

        assert (results, refund.ran) == ([["refund 4711"]] * 2, [])
        assert run_status(journal, "waiter") == "completed"

    def test_it_did_not_happen(self, journal, refund):
        """The waiter takes the owner's place and runs; the owner's own retry never runs as well."""
        journal.resolve("waiter", "refund", NotDone(), by="ops")

        results = [wait(journal, refund), wait(journal, refund)]
        try:
            results.append(own(journal, refund))
        except SideEffectRetryBlockedError:
            journal.resolve("owner", "refund", NotDone(), by="ops")
            results.append(own(journal, refund))

        assert (results, refund.ran) == ([["refunded"]] * 3, ["waiter"])

    def test_it_failed(self, journal, refund):
        """The waiter's agent is told of the failure; nothing runs."""
        journal.resolve("waiter", "refund", Failed("the bank is closed"), by="ops")

        results = [str(error) for _ in range(2) for error in wait(journal, refund)]

        assert (results, refund.ran) == (["the bank is closed"] * 2, [])

    def test_the_owner_ended_meanwhile(self, journal, refund):
        """A word about the waiter is no word against an outcome: where the owner has performed, its refund is shared."""
        journal.resolve("waiter", "refund", NotDone(), by="ops")
        journal.resolve("owner", "refund", NotDone(), by="ops")
        owned = own(journal, refund)

        results = [wait(journal, refund), wait(journal, refund)]

        assert (owned, results, len(refund.ran)) == (["refunded"], [["refunded"]] * 2, 1)

    def test_the_owner_performs_it_right_now(self, journal, refund):
        """A person said that nothing has happened, but the owner's retry is alive in its body: the waiter waits for it."""
        began, finish = threading.Event(), threading.Event()

        def slowly(order, note):
            began.set()
            wait_for(finish)
            return "refunded"

        journal.resolve("waiter", "refund", NotDone(), by="ops")
        journal.resolve("owner", "refund", NotDone(), by="ops")
        slow = Refund(slowly)

        owner = started_thread(lambda: own(journal, slow))
        wait_for(began)
        waiter = started_thread(lambda: wait(journal, slow))
        while run_status(journal, "waiter") != "running":
            pass
        finish.set()

        assert [owner.result(PATIENCE), waiter.result(PATIENCE)] == [["refunded"]] * 2
        assert slow.ran == ["of the dead"]

    def test_twice(self, journal, refund):
        """The first decision wins; the second is refused."""
        journal.resolve("waiter", "refund", Done("one"), by="ops")

        with pytest.raises(ResolutionRefusedError):
            journal.resolve("waiter", "refund", Done("two"), by="ops")

        assert wait(journal, refund) == ["one"]


def test_a_taker_that_was_cleared_by_a_person_and_died(journal):
    """The waiter took the place at a person's word and was cut off itself: the word counts for the try it was given for."""
    refund = Refund(Killed(), Killed(), "refunded", policy=IN_JOURNAL)
    with pytest.raises(Killed):
        attempt(journal, refund, OWNER, run_id="owner")
    with pytest.raises(SideEffectRetryBlockedError):
        attempt(journal, refund, WAITER, run_id="waiter")
    journal.resolve("waiter", "refund", NotDone(), by="ops")
    with pytest.raises(Killed):
        attempt(journal, refund, WAITER, run_id="waiter")

    with pytest.raises(SideEffectRetryBlockedError):
        attempt(journal, refund, WAITER, run_id="waiter")
    with pytest.raises(SideEffectRetryBlockedError):
        attempt(journal, refund, ("o-7", "third"), run_id="third")

    assert refund.ran == ["owner", "waiter"]
