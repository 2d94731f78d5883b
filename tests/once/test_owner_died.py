"""The owner of a piece of business died at a point of its step; whoever waits settles it (DESIGN 3.4)."""

import pytest

from gnl_middleware import Done, NotDone, SideEffectRetryBlockedError
from gnl_middleware.testing import POINTS
from tests.functions.crashing import die_at
from tests.once.bank import ANSWERS, Bank, refund_in
from tests.once.refunds import IN_JOURNAL, Killed, Refund, attempt, both_colours, died, run_status

HAPPENED = {"after_body", "before_outcome", "after_outcome"}
IN_DOUBT = {"after_intent", "before_body", "after_body", "before_outcome"}
every_point = pytest.mark.parametrize("point", POINTS)
# One kind of not knowing at every point; the others behave alike, which the long campaign confirms.
IGNORANT = [ANSWERS[1], *(pytest.param(answers, marks=pytest.mark.long) for answers in ANSWERS[2:])]


def owner_dies(folder, point, answers="looks", *, window="journal", asynchronous=False):
    """The owner's process dies in its refund; gives the bank as the next process finds it."""
    die_at(f"refund:{point}", refund_in, folder, answers, window, asynchronous, "owner", "owner")
    return Bank(folder, answers, window=window, asynchronous=asynchronous)


class TestInAnotherRun:
    @both_colours
    @every_point
    def test_recover_tells(self, tmp_path, point, asynchronous):
        """Where `recover` looks, the waiter gets the owner's refund if it happened and makes it if not: one effect."""
        bank = owner_dies(tmp_path, point, asynchronous=asynchronous)

        (result,) = bank.refund_in("waiter", "waiter")

        assert len(bank.effects()) == 1
        assert result == {
            "after_outcome": "refunded o-7 for owner",
            "after_body": "refunded o-7: found",
            "before_outcome": "refunded o-7: found",
        }.get(point, "refunded o-7 for waiter")

    @every_point
    @pytest.mark.parametrize("answers", IGNORANT)
    def test_nothing_can_tell(self, tmp_path, point, answers):
        """Where nothing can tell, the waiter blocks and both steps are listed; nothing runs."""
        bank = owner_dies(tmp_path, point, answers)
        before = len(bank.effects())

        if point in IN_DOUBT:
            with pytest.raises(SideEffectRetryBlockedError) as blocked:
                bank.refund_in("waiter", "waiter")
            assert len(bank.effects()) == before
            assert (blocked.value.run_id, blocked.value.tool) == ("waiter", "refund")
            with bank.journal() as journal:
                assert run_status(journal, "waiter") == "blocked"
                waiting = [step.blocked for run in ("owner", "waiter") for step in journal.steps(run)]
            assert None not in waiting
        else:
            bank.refund_in("waiter", "waiter")
            assert len(bank.effects()) == 1

    @every_point
    @pytest.mark.parametrize("order", [("owner", "waiter"), ("waiter", "owner")], ids="-".join)
    def test_every_later_attempt_is_stable(self, tmp_path, point, order):
        """Whoever comes back first and however often, both runs end with the values of their first attempts."""
        bank = owner_dies(tmp_path, point)

        first = [bank.refund_in(run, run) for run in order]
        later = [[bank.refund_in(run, run) for run in order] for _ in range(2)]

        assert later == [first, first]
        assert len(bank.effects()) == 1

    @pytest.mark.parametrize("point", sorted(IN_DOUBT))
    def test_owner_blocks_too_when_it_comes_back(self, tmp_path, point):
        """The owner's own retry blocks as well, so that both runs are listed as blocked until a person decides."""
        bank = owner_dies(tmp_path, point, "no hook")

        for run in ("waiter", "owner", "waiter"):
            with pytest.raises(SideEffectRetryBlockedError):
                bank.refund_in(run, run)

        with bank.journal() as journal:
            assert {run.run_id for run in journal.runs(status="blocked")} == {"waiter", "owner"}
        assert len(bank.effects()) == (point in HAPPENED)

    @every_point
    def test_a_crowd_comes_after_it(self, tmp_path, point):
        """However many runs come, and whichever of them the owner is, the order is refunded once."""
        bank = owner_dies(tmp_path, point)

        results = [bank.refund_in(run, run)[0] for run in ("one", "two", "owner", "three", "one", "owner")]

        assert len(bank.effects()) == 1
        assert (
            len(set(results)) <= 2
        )  # a recover hook finds the refund without the note that it was made with


class TestWaiterThatBlockedIsAskedAnew:
    """A blocked call is evaluated anew on each attempt: by asking about the owner, never about itself."""

    @pytest.mark.parametrize("point", sorted(IN_DOUBT))
    def test_hook_that_was_down(self, tmp_path, point):
        """The bank did not answer, then it does: what it says of the owner's refund counts, and one is made."""
        down = owner_dies(tmp_path, point, "raises")
        with pytest.raises(SideEffectRetryBlockedError):
            down.refund_in("waiter", "waiter")
        up = Bank(tmp_path, "looks")

        results = [up.refund_in("waiter", "waiter") for _ in range(2)]

        assert len(up.effects()) == 1
        expected = "refunded o-7: found" if point in HAPPENED else "refunded o-7 for waiter"
        assert results == [[expected]] * 2

    @pytest.mark.parametrize("point", sorted(IN_DOUBT))
    def test_hook_that_was_added(self, tmp_path, point):
        """There was no hook, then there is one: both runs end, with one refund."""
        ignorant = owner_dies(tmp_path, point, "no hook")
        for run in ("waiter", "owner"):
            with pytest.raises(SideEffectRetryBlockedError):
                ignorant.refund_in(run, run)
        knowing = Bank(tmp_path, "looks")

        for run in ("waiter", "owner", "waiter"):
            knowing.refund_in(run, run)

        assert len(knowing.effects()) == 1

    def test_owner_that_came_back_and_ended(self, tmp_path):
        """The waiter blocked, then the owner's own retry was settled: the waiter gets that outcome."""
        bank = owner_dies(tmp_path, "before_body", "raises")
        with pytest.raises(SideEffectRetryBlockedError):
            bank.refund_in("waiter", "waiter")
        Bank(tmp_path, "looks").refund_in("owner", "owner")

        results = bank.refund_in("waiter", "waiter")

        assert results == ["refunded o-7 for owner"]
        assert len(bank.effects()) == 1

    def test_it_is_blocked_as_often_as_it_comes(self, tmp_path):
        """Waiting is no try: however often a blocked call comes back, it stays blocked and never runs out of tries."""
        bank = owner_dies(tmp_path, "before_body", "no hook")

        for _ in range(8):
            with pytest.raises(SideEffectRetryBlockedError):
                bank.refund_in("waiter", "waiter")

        with bank.journal() as journal:
            journal.resolve("owner", 1, NotDone(), by="ops")
        assert bank.refund_in("waiter", "waiter") == ["refunded o-7 for waiter"]


class TestInTheSameRun:
    """The branches of one run ask for one refund; the retry comes to them in another order."""

    @pytest.mark.parametrize("window", ["run", "journal"])
    @every_point
    def test_recover_tells(self, tmp_path, point, window):
        """The branch that comes first settles the dead owner with the hook of the tool that it shares: one effect."""
        die_at(f"refund:{point}", _two_branches, tmp_path, "looks", window, ["owner", "waiter"])

        results = _two_branches(tmp_path, "looks", window, ["waiter", "owner"])
        later = [_two_branches(tmp_path, "looks", window, order) for order in (["waiter", "owner"],) * 2]

        assert later == [results] * 2
        assert len(Bank(tmp_path).effects()) == 1
        if point in HAPPENED:
            assert len(set(results)) == 1

    @pytest.mark.parametrize("answers", IGNORANT)
    @pytest.mark.parametrize("point", sorted(IN_DOUBT))
    def test_nothing_can_tell(self, tmp_path, point, answers):
        """Where nothing can tell, the run is blocked, whichever branch comes first; a person's word lets it go on."""
        die_at(f"refund:{point}", _two_branches, tmp_path, answers, "run", ["owner", "waiter"])
        bank = Bank(tmp_path, answers, window="run")
        before = len(bank.effects())

        for _ in range(2):
            with pytest.raises(SideEffectRetryBlockedError) as blocked:
                _two_branches(tmp_path, answers, "run", ["waiter", "owner"])
        with bank.journal() as journal:
            status = run_status(journal)
            decision = Done("looked it up") if before else NotDone()
            journal.resolve("run", blocked.value.step_key, decision, by="ops")
        results = _two_branches(tmp_path, answers, "run", ["waiter", "owner"])

        assert status == "blocked"
        assert len(bank.effects()) == 1
        assert len(set(results)) == 1


def _two_branches(folder, answers, window, order):
    bank = Bank(folder, answers, window=window)
    return bank.refund_in("run", *order, scopes=order)


class TestSettlingWithTheOwnersCall:
    def test_hook_gets_the_owners_call(self, journal):
        """The waiter's hook is asked about the owner: its run, step, arguments, key and start, not the waiter's."""
        asked = []
        refund = died(journal, policy=IN_JOURNAL, run_id="owner")
        (owner,) = journal.steps("owner")
        waiting = Refund(policy=IN_JOURNAL(recover=lambda call: asked.append(call) or Done("found")))

        with journal.run("waiter"):
            result = waiting.call("o-7", "of the living")

        (call,) = asked
        assert result == "found"
        assert (call.run_id, call.step_key, call.tool) == ("owner", owner.key, "refund")
        assert call.arguments == {"order": "o-7", "note": "of the dead"}
        assert (call.idempotency_key, call.started_at, call.attempts) == (refund.keys[0], owner.started_at, 1)

    def test_recover_after_counts_from_the_owners_start(self, journal):
        """Requests still in flight get their time: the owner's start counts, not the waiter's."""
        asked = []
        died(journal, run_id="owner")
        (owner,) = journal.steps("owner")
        waiting = Refund(
            policy=IN_JOURNAL(recover=lambda call: asked.append(call) or NotDone(), recover_after=0.6)
        )

        with journal.run("waiter"):
            waiting.call("o-7", "of the living")
        (mine,) = journal.steps("waiter")

        assert mine.started_at >= owner.started_at + 0.6
        assert len(asked) == 1

    @both_colours
    def test_hook_may_be_a_coroutine(self, journal, asynchronous):
        """A coroutine hook is awaited, for a waiting function and for a waiting coroutine."""

        async def look(call):
            return Done("found")

        died(journal, run_id="owner", asynchronous=asynchronous)
        waiting = Refund(policy=IN_JOURNAL(recover=look), asynchronous=asynchronous)

        assert attempt(journal, waiting, ("o-7", ""), run_id="waiter") == ["found"]

    def test_hook_finds_what_cannot_be_recorded(self, journal):
        """An answer that the journal cannot keep is no answer: the waiter blocks and nothing runs."""
        died(journal, run_id="owner")
        waiting = Refund(policy=IN_JOURNAL(recover=lambda call: Done(object())))

        with pytest.raises(SideEffectRetryBlockedError, match="recover raised"), journal.run("waiter"):
            waiting.call("o-7", "")

        assert waiting.ran == []

    def test_message_names_the_owner(self, journal):
        """The error of a waiter says whose effect to look for: the owner's run, step and idempotency key."""
        refund = died(journal, run_id="owner")
        (owner,) = journal.steps("owner")
        waiting = Refund()

        with pytest.raises(SideEffectRetryBlockedError) as blocked, journal.run("waiter"):
            waiting.call("o-7", "")

        assert "'owner'" in str(blocked.value) or "run owner" in str(blocked.value)
        assert owner.key in str(blocked.value)
        assert refund.keys[0] in str(blocked.value)


def test_dead_takers_upon_dead_owners(tmp_path):
    """Each run that takes the place dies in its turn, before and after the effect: the order is refunded once."""
    for run, point in (
        ("one", "after_intent"),
        ("two", "before_body"),
        ("three", "before_intent"),
        ("four", "after_body"),
        ("five", "after_intent"),
    ):
        if run == "five":
            # It shares what four has done, and so never comes to an intent of its own.
            assert Bank(tmp_path).refund_in(run, run) == ["refunded o-7: found"]
        else:
            die_at(f"refund:{point}", refund_in, tmp_path, "looks", "journal", False, run, run)

    results = [Bank(tmp_path).refund_in(run, run) for run in ("four", "three", "two", "one", "five")]

    assert results == [["refunded o-7: found"]] * 5
    assert len(Bank(tmp_path).effects()) == 1


def test_one_killed_again_and_again_waits_for_the_limit_of_its_own(journal):
    """An owner that reached `max_attempts` stops its own run, not the others: they settle it and go on."""
    refund = Refund(
        Killed(), Killed(), "refunded", policy=IN_JOURNAL(recover=lambda call: NotDone(), max_attempts=2)
    )
    for _ in range(2):
        with pytest.raises(Killed), journal.run("owner"):
            refund.call("o-7", "owner")

    with journal.run("waiter"):
        result = refund.call("o-7", "waiter")

    assert result == "refunded"
