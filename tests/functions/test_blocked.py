"""What nothing can settle blocks the run or is told; what proves itself undone runs again; and nothing for ever."""

import contextlib
import functools
import os
import re

import pytest

from gnl_middleware import (
    Done,
    Journal,
    NotDone,
    RecordedError,
    RetryLimitError,
    SideEffectRetryBlockedError,
    journaled,
    keyed,
    never,
    safe,
)
from gnl_middleware.testing import CRASH_EXIT_CODE
from tests.functions.crashing import may_die
from tests.functions.scripted import (
    RUN,
    Function,
    Killed,
    answering,
    attempt,
    interrupted,
    only_step,
    run_status,
)

both_colours = pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])


def die_in_the_body(folder, label, limit):
    """For a process of its own: an attempt at a step that kills its process, unless it is not tried any more."""
    body = functools.partial(os._exit, CRASH_EXIT_CODE)
    pay = journaled(body, replay={"safe": safe, "keyed": keyed}[label](max_attempts=limit), name="pay")
    with Journal(folder / "runs.db") as opened, contextlib.suppress(RetryLimitError), opened.run(RUN):
        pay()


def ends_by_itself(folder, label, limit):
    """Whether the attempt ended without dying."""
    return may_die(die_in_the_body, folder, label, limit) == 0


class TestBlocked:
    @both_colours
    def test_no_hook_blocks(self, journal, asynchronous):
        """Without a hook the run stops, is listed as blocked, and the error names the facts and the command."""
        pay = interrupted(journal, never, asynchronous=asynchronous)

        with pytest.raises(SideEffectRetryBlockedError) as blocked:
            attempt(journal, pay, asynchronous=asynchronous)

        error, step = blocked.value, only_step(journal)
        assert (error.run_id, error.step_key, error.tool) == (RUN, step.key, "pay")
        assert (error.arguments, error.started_at) == ({"order": "o-7"}, step.started_at)
        assert "may have happened" in str(error)
        assert re.search(f"gnl resolve {RUN} {re.escape(step.key)} .*--happened", str(error))
        assert [record.run_id for record in journal.runs(status="blocked")] == [RUN]
        assert (step.blocked, len(pay.ran)) == (error.reason, 1)

    def test_nothing_new_starts_while_one_is_unsettled(self, journal):
        """While an interrupted call is unsettled, no other side effect starts, and the run cannot complete."""
        interrupted(journal, never)
        refund, mail, look = (
            Function(policy, "ran", name=name) for policy, name in ((never, "a"), (keyed, "b"), (safe, "c"))
        )

        for effect in (refund, mail):
            with pytest.raises(SideEffectRetryBlockedError):
                attempt(journal, effect)
        with pytest.raises(SideEffectRetryBlockedError):
            attempt(journal, look)

        assert (refund.ran, mail.ran, look.ran) == ([], [], ["o-7"])
        assert run_status(journal) == "blocked"

    @pytest.mark.parametrize("policy", [safe, keyed], ids=["safe", "keyed"])
    def test_other_labels_never_block(self, journal, policy):
        """An interrupted `safe` or `keyed` call stops nothing else; it simply runs again when it is reached."""
        pay = interrupted(journal, policy)
        refund = Function(never, "refunded", name="refund")

        results = attempt(journal, pay, refund)

        assert results == ["paid", "refunded"]

    def test_unknown_tells_the_caller(self, journal):
        """With `on_interrupted="tell_model"` the caller gets a text that says what is not known, on every replay alike."""
        pay = interrupted(journal, never)

        told = [attempt(journal, pay, on_interrupted="tell_model") for _ in range(2)]

        assert told[0] == told[1]
        assert "may or may not have happened" in told[0][0]
        assert "Check" in told[0][0]
        assert (len(pay.ran), only_step(journal).resolution) == (1, "told")

    @pytest.mark.parametrize(
        ("of_policy", "of_run", "blocks"),
        [
            (None, "block", True),
            (None, "tell_model", False),
            ("block", "tell_model", True),
            ("tell_model", "block", False),
        ],
    )
    def test_policy_decides_before_the_run(self, journal, of_policy, of_run, blocks):
        """What a policy says about interrupted calls goes before what the run says."""
        pay = interrupted(journal, never(on_interrupted=of_policy))

        try:
            attempt(journal, pay, on_interrupted=of_run)
        except SideEffectRetryBlockedError:
            blocked = True
        else:
            blocked = False

        assert blocked is blocks

    @pytest.mark.parametrize("answer", [TimeoutError("desk down"), "rubbish"], ids=["raises", "rubbish"])
    def test_failed_hook_never_tells(self, journal, answer):
        """A hook that failed always blocks: with `tell_model`, too, the caller is told nothing."""
        pay = interrupted(
            journal, never(recover=answering(answer, awaited=False), on_interrupted="tell_model")
        )

        with pytest.raises(SideEffectRetryBlockedError):
            attempt(journal, pay)

        assert only_step(journal).status == "started"


class TestNotPerformed:
    """Errors that prove that the effect did not happen."""

    @both_colours
    def test_runs_again(self, journal, asynchronous):
        """A listed error lets a `never` function run again, in the same attempt and in the next."""
        pay = Function(
            never(not_performed=(ConnectionRefusedError,)),
            *[ConnectionRefusedError("refused")] * 2,
            "paid",
            asynchronous=asynchronous,
        )

        with pytest.raises(ConnectionRefusedError) as first:
            attempt(journal, pay, asynchronous=asynchronous)
        results = attempt(journal, pay, pay, catch=(ConnectionRefusedError,), asynchronous=asynchronous)

        assert str(first.value) == "refused"
        assert results[1] == "paid"
        assert len(pay.ran) == 3

    def test_subclasses_are_listed_too(self, journal):
        """A subclass of a listed error is listed, live and on the next attempt."""
        pay = Function(never(not_performed=(ConnectionError,)), ConnectionRefusedError("refused"), "paid")

        with pytest.raises(ConnectionRefusedError):
            attempt(journal, pay)

        assert attempt(journal, pay) == ["paid"]

    def test_same_name_is_not_enough(self, journal):
        """An error that only shares its name with a listed one proves nothing: the call is settled, not repeated."""
        theirs = type("ConnectionRefusedError", (Exception,), {"__module__": "library.errors"})
        pay = Function(never(not_performed=(ConnectionRefusedError,)), theirs("after sending"), "paid")

        with pytest.raises(theirs):
            attempt(journal, pay)
        with pytest.raises(SideEffectRetryBlockedError):
            attempt(journal, pay)

        assert len(pay.ran) == 1

    def test_hook_is_not_asked(self, journal):
        """Where the error proves it, `recover` is not asked."""
        asked = []
        policy = never(
            not_performed=(ValueError,), recover=answering(Done("found"), awaited=False, asked=asked)
        )
        pay = Function(policy, ValueError("bad order"), "paid")

        with pytest.raises(ValueError, match="bad order"):
            attempt(journal, pay)

        assert (attempt(journal, pay), asked) == (["paid"], [])

    def test_others_may_start(self, journal):
        """A failure that is proven not to have happened does not stop other side effects."""
        pay = Function(never(not_performed=(ValueError,)), ValueError("bad order"))
        refund = Function(never, "refunded", name="refund")

        with pytest.raises(ValueError, match="bad order"):
            attempt(journal, pay)

        assert attempt(journal, pay, refund, catch=(ValueError,))[1] == "refunded"


class TestLimit:
    @pytest.mark.parametrize("limit", [1, 3])
    @pytest.mark.parametrize("policy", [safe, keyed, never(recover=answering(NotDone(), awaited=False))])
    def test_step_that_kills_its_worker_is_not_tried_for_ever(self, journal, policy, limit):
        """Tries are counted across crashes; after `max_attempts` of them the step is not tried again."""
        pay = Function(policy(max_attempts=limit), Killed())
        for _ in range(limit):
            with pytest.raises(Killed):
                attempt(journal, pay)

        with pytest.raises(RetryLimitError) as caught:
            attempt(journal, pay)

        error = caught.value
        assert (error.run_id, error.step_key, error.name, error.attempts) == (
            RUN,
            only_step(journal).key,
            "pay",
            limit,
        )
        assert (len(pay.ran), only_step(journal).attempts) == (limit, limit)

    @pytest.mark.parametrize("label", ["safe", "keyed"])
    def test_step_that_kills_its_process_at_once(self, tmp_path, label):
        """A body that kills its process before anything else can happen is not tried for ever either."""
        limit = 2
        deaths = 0
        while deaths <= limit + 1 and not ends_by_itself(tmp_path, label, limit):
            deaths += 1

        assert limit <= deaths <= limit + 1

    def test_limit_is_five_unless_said_otherwise(self):
        """A step is tried five times by default."""
        assert [policy.max_attempts for policy in (safe, keyed, never)] == [5, 5, 5]

    def test_higher_limit_lets_it_run(self, journal):
        """A policy with a higher limit takes the step up again."""
        pay = interrupted(journal, safe(max_attempts=1))
        with pytest.raises(RetryLimitError):
            attempt(journal, pay)

        assert attempt(journal, Function(safe(max_attempts=2), "paid")) == ["paid"]

    def test_finished_step_is_read_back_whatever_the_limit(self, journal):
        """A step that ended within its limit is read back for ever."""
        pay = Function(safe(max_attempts=1), "paid")

        assert [attempt(journal, pay) for _ in range(4)] == [["paid"]] * 4

    def test_handled_errors_are_no_new_tries(self, journal):
        """Reading a handled error back is not a try."""
        pay = Function(safe(max_attempts=1), ValueError("no"))

        results = [attempt(journal, pay, catch=(ValueError, RecordedError)) for _ in range(3)]

        assert [str(error) for (error,) in results] == ["no"] * 3
