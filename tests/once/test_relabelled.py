"""Policies that change while their tries are open, or between the runs that share a key (DESIGN 3.1, 3.4)."""

import contextlib

import pytest

from gnl_middleware import NotDone, SideEffectRetryBlockedError, keyed, never, safe
from tests.once.refunds import IN_JOURNAL, IN_RUN, Killed, Refund, attempt, died, per_order

ONCE = {"once_per": per_order, "window": "journal"}
WAITER = ("o-7", "waiter")


class TestLabel:
    @pytest.mark.parametrize("label", [safe, keyed], ids=lambda policy: policy.label)
    def test_made_milder(self, journal, label):
        """A try that began as `never` keeps its promise: who waits for it blocks, whatever its own label is now."""
        died(journal, policy=never(**ONCE), run_id="owner")
        waiting = Refund(policy=label(**ONCE))

        for _ in range(7):
            with pytest.raises(SideEffectRetryBlockedError):
                attempt(journal, waiting, WAITER, run_id="waiter")

        assert waiting.ran == []

    @pytest.mark.parametrize("label", [safe, keyed], ids=lambda policy: policy.label)
    def test_made_milder_in_one_run(self, journal, label):
        """The same where owner and waiter are branches of one run."""
        policies = [never(**ONCE), label(**ONCE)]
        refunds = [
            Refund(ending, policy=policy)
            for ending, policy in zip((Killed(), "twice"), policies, strict=True)
        ]
        with pytest.raises(Killed), journal.run("run") as run, run.scope("owner"):
            refunds[0].call("o-7", "owner")

        with pytest.raises(SideEffectRetryBlockedError), journal.run("run") as run, run.scope("waiter"):
            refunds[1].call(*WAITER)

        assert refunds[1].ran == []

    def test_made_stricter(self, journal):
        """A try that began as `safe` is treated as `never` says from now on: nothing runs unless somebody can tell."""
        died(journal, policy=safe(**ONCE), run_id="owner")
        waiting = Refund(policy=never(**ONCE))

        with pytest.raises(SideEffectRetryBlockedError):
            attempt(journal, waiting, WAITER, run_id="waiter")

        assert waiting.ran == []

    def test_safe_all_along(self, journal):
        """A `safe` owner that died may be run again by anybody: who waits for it takes its place at once."""
        read = died(journal, policy=safe(**ONCE), run_id="owner")

        results = [attempt(journal, read, WAITER, run_id=run) for run in ("waiter", "third")]
        owner = attempt(journal, read, ("o-7", "of the dead"), run_id="owner")

        assert (results, owner, read.ran) == ([["refunded"]] * 2, ["refunded"], ["of the dead", "waiter"])

    def test_safe_all_along_in_one_run(self, journal):
        """The same between the branches of one run."""
        read = Refund(Killed(), "read", policy=safe(once_per=per_order))
        with pytest.raises(Killed), journal.run("run") as run, run.scope("owner"):
            read.call("o-7", "owner")

        with journal.run("run") as run:
            with run.scope("waiter"):
                waiter = read.call(*WAITER)
            with run.scope("owner"):
                owner = read.call("o-7", "owner")

        assert (waiter, owner, read.ran) == ("read", "read", ["owner", "waiter"])

    def test_keyed_runs_again_under_no_other_key(self, journal):
        """A `keyed` owner's effect may have happened under its idempotency key: nobody repeats it under another one."""
        charge = died(journal, policy=keyed(**ONCE), run_id="owner")

        with contextlib.suppress(SideEffectRetryBlockedError):
            attempt(journal, charge, WAITER, run_id="waiter")
        attempt(journal, charge, ("o-7", "of the dead"), run_id="owner")
        attempt(journal, charge, WAITER, run_id="waiter")

        assert len(set(charge.keys)) == 1


class TestHook:
    def test_added(self, journal):
        """A hook that was added after the owner died settles it."""
        died(journal, policy=IN_JOURNAL, run_id="owner")
        waiting = Refund(policy=IN_JOURNAL(recover=lambda call: NotDone()))

        results = attempt(journal, waiting, WAITER, run_id="waiter")

        assert (results, waiting.ran) == (["refunded"], ["waiter"])

    def test_taken_away(self, journal):
        """Without the hook that it had, the owner's try can be settled by nobody: who waits blocks."""
        died(journal, policy=IN_JOURNAL(recover=lambda call: NotDone()), run_id="owner")
        waiting = Refund(policy=IN_JOURNAL)

        with pytest.raises(SideEffectRetryBlockedError):
            attempt(journal, waiting, WAITER, run_id="waiter")


class TestOncePer:
    def test_added_between_attempts(self, journal):
        """A call that ran before its policy knew of keys is read back, and runs no second time."""
        refund = Refund(policy=never)
        attempt(journal, refund, ("o-7", "first"))
        relabelled = Refund(policy=IN_RUN)

        results = attempt(journal, relabelled, ("o-7", "first"))

        assert (results, relabelled.ran) == (["refunded"], [])

    def test_taken_away_between_attempts(self, journal):
        """What was shared stays recorded as it was; a new call is one of its own."""
        refund = Refund(policy=IN_RUN)
        attempt(journal, refund, ("o-7", "first"), ("o-7", "second"))
        relabelled = Refund("again", policy=never)

        results = attempt(journal, relabelled, ("o-7", "first"), ("o-7", "second"), ("o-7", "third"))

        assert (results, relabelled.ran) == (["refunded", "refunded", "again"], ["third"])

    def test_the_key_function_changed(self, journal):
        """Recorded calls keep their outcomes whatever the key function says of them now."""
        refund = Refund(policy=IN_RUN)
        attempt(journal, refund, ("o-7", "first"), ("o-7", "second"))
        relabelled = Refund(policy=never(once_per="args"))

        results = attempt(journal, relabelled, ("o-7", "first"), ("o-7", "second"))

        assert (results, relabelled.ran) == (["refunded"] * 2, [])
