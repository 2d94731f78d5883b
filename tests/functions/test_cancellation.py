"""Cancelled coroutines: before the body nothing happened, inside it nobody knows, after it the outcome is kept."""

import asyncio

import pytest

from gnl_middleware import (
    Done,
    SideEffectRetryBlockedError,
    journaled,
    keyed,
    never,
    safe,
)
from tests.functions.asking import ask, tool_call, use_async
from tests.functions.scripted import (
    FOREVER,
    RUN,
    Function,
    Killed,
    answering,
    attempt,
    cut_off_together,
    only_step,
    run_async,
    run_status,
)

PROTECTED = [pytest.param(never, id="never"), pytest.param(keyed, id="keyed")]
LABELS = [pytest.param(policy, id=policy.label) for policy in (safe, keyed, never)]


def cancelled_at(journal, watch_points, point, pay):
    """An attempt whose call is cancelled when it comes to a point; gives how the call and the run ended."""

    async def cancel():
        async with journal.run(RUN) as run:
            call = asyncio.ensure_future(pay.call())
            watch_points(lambda reached, *_: reached == point and call.cancel())
            (ending,) = await asyncio.gather(call, return_exceptions=True)
            watch_points(None)
            return type(ending), run.steps_ran

    return run_async(cancel())


class TestBeforeTheBody:
    @pytest.mark.parametrize("policy", PROTECTED)
    def test_intent_is_withdrawn(self, journal, watch_points, policy):
        """A call cancelled while its intent is written has not begun: it is not listed, and blocks nothing."""
        pay = Function(policy, "paid", asynchronous=True)

        ending, ran = cancelled_at(journal, watch_points, "before_intent", pay)

        assert ending is asyncio.CancelledError
        assert (pay.ran, ran, journal.steps(RUN), run_status(journal)) == ([], 0, [], "completed")

    @pytest.mark.parametrize("policy", PROTECTED)
    def test_next_attempt_runs_it_as_the_first_try(self, journal, watch_points, policy):
        """A withdrawn call is not counted as a try."""
        pay = Function(policy(max_attempts=1), "paid", asynchronous=True)
        for _ in range(3):
            cancelled_at(journal, watch_points, "before_intent", pay)

        results = attempt(journal, pay, asynchronous=True)

        assert (results, only_step(journal).attempts) == (["paid"], 1)

    def test_same_attempt_runs_it(self, journal, watch_points):
        """A call that was withdrawn can be made again in the same attempt."""
        pay = Function(never, "paid", asynchronous=True)

        async def cancel_and_call_again():
            async with journal.run(RUN):
                call = asyncio.ensure_future(pay.call())
                watch_points(lambda point, *_: point == "before_intent" and call.cancel())
                await asyncio.gather(call, return_exceptions=True)
                watch_points(None)
                return await pay.call()

        assert run_async(cancel_and_call_again()) == "paid"
        assert len(pay.ran) == 1

    def test_withdrawn_call_is_no_record_to_hold_against(self, journal, watch_points):
        """A call that never began is no record: with other arguments, a strict replay simply makes the new one."""
        first = Function(never, "paid", asynchronous=True)
        cancelled_at(journal, watch_points, "before_intent", first)
        pay = journaled(lambda order: f"paid {order}", replay=never, name="pay")

        with journal.run(RUN, replay="strict"):
            result = pay("o-8")

        assert result == "paid o-8"

    def test_interrupted_try_stays_interrupted(self, journal, watch_points):
        """A call that may have happened in an earlier attempt is not forgotten when its next try is cancelled early."""
        pay = Function(never, FOREVER, "paid", asynchronous=True)
        cut_off_together(journal, pay)

        async def cancel_the_question():
            async with journal.run(RUN):
                call = asyncio.ensure_future(hooked.call())
                await asked.wait()
                call.cancel()
                await asyncio.gather(call, return_exceptions=True)
                raise Killed

        async def recover(_):
            asked.set()
            await asyncio.Event().wait()

        asked = asyncio.Event()
        hooked = Function(never(recover=recover), "paid", asynchronous=True)
        with pytest.raises(Killed):
            run_async(cancel_the_question())

        with pytest.raises(SideEffectRetryBlockedError):
            attempt(journal, pay, asynchronous=True)
        assert (len(pay.ran), hooked.ran) == (1, [])


class TestInsideTheBody:
    @pytest.mark.parametrize("policy", LABELS)
    def test_next_attempt_decides_by_label(self, journal, policy):
        """A call cancelled inside its body may have happened: `never` blocks, the others run again."""
        pay = Function(policy, FOREVER, "paid", asynchronous=True)
        cut_off_together(journal, pay)

        try:
            results = attempt(journal, pay, asynchronous=True)
        except SideEffectRetryBlockedError:
            results = ["blocked"]

        assert results == ["blocked" if policy is never else "paid"]

    def test_timeout_and_again_in_the_same_attempt(self, journal):
        """A `never` coroutine that timed out and is called again is settled, not repeated."""
        pay = Function(never(recover=answering(Done("found"), awaited=False)), FOREVER, asynchronous=True)

        async def time_out():
            async with asyncio.timeout(None) as limit:
                pay.when_waiting = lambda: limit.reschedule(0)
                await pay.call()

        async def time_out_and_call_again():
            async with journal.run(RUN):
                with pytest.raises(TimeoutError):
                    await time_out()
                return await pay.call()

        assert run_async(time_out_and_call_again()) == "found"
        assert len(pay.ran) == 1

    def test_run_cannot_complete_over_it(self, journal):
        """A run whose code swallowed the cancellation of a `never` call does not complete: it blocks."""
        pay = Function(never, FOREVER, asynchronous=True)

        async def swallow():
            async with journal.run(RUN):
                call = asyncio.ensure_future(pay.call())
                await pay.waiting.wait()
                call.cancel()
                await asyncio.gather(call, return_exceptions=True)

        with pytest.raises(SideEffectRetryBlockedError):
            run_async(swallow())

        assert run_status(journal) == "blocked"

    def test_body_that_ends_all_the_same(self, journal):
        """A body that does not let itself be cancelled has an outcome, and it is recorded."""
        inside = asyncio.Event()

        @journaled(replay=never)
        async def pay():
            inside.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                return "paid"

        async def cancel():
            async with journal.run(RUN):
                call = asyncio.ensure_future(pay())
                await inside.wait()
                call.cancel()
                return await call

        assert run_async(cancel()) == "paid"
        assert only_step(journal).value == "paid"

    def test_siblings_of_a_failed_task(self, journal):
        """When one of two concurrent calls fails and the other is cancelled, each is recorded as what it was."""
        failing = Function(safe, TimeoutError("no answer"), name="failing", asynchronous=True)
        slow = Function(safe, FOREVER, name="slow", asynchronous=True)

        async def both():
            async with journal.run(RUN), asyncio.TaskGroup() as group:
                group.create_task(slow.call())
                await slow.waiting.wait()
                group.create_task(failing.call())

        with pytest.raises(ExceptionGroup):
            run_async(both())

        assert (only_step(journal, "failing").status, only_step(journal, "slow").status) == (
            "failed",
            "started",
        )


class TestAfterTheBody:
    @pytest.mark.parametrize("policy", LABELS)
    def test_value_is_kept(self, journal, watch_points, policy):
        """A call cancelled while its outcome is written is cancelled, and its outcome is recorded."""
        pay = Function(policy, "paid", asynchronous=True)

        ending, _ = cancelled_at(journal, watch_points, "before_outcome", pay)
        results = attempt(journal, pay, asynchronous=True)

        assert ending is asyncio.CancelledError
        assert (results, len(pay.ran)) == (["paid"], 1)

    @pytest.mark.parametrize("policy", LABELS)
    def test_error_is_kept(self, journal, watch_points, policy):
        """A call cancelled while its error is written is cancelled, and its error is recorded."""
        pay = Function(policy, ValueError("no"), asynchronous=True)

        ending, _ = cancelled_at(journal, watch_points, "before_outcome", pay)

        assert ending is asyncio.CancelledError
        assert (only_step(journal).status, only_step(journal).error) == ("failed", "ValueError: no")


class TestRuns:
    def test_cancelled_run_is_interrupted(self, journal):
        """A run whose task is cancelled is listed as interrupted and can be taken up again at once."""
        pay = Function(safe, FOREVER, "paid", asynchronous=True)

        async def cancel():
            run = asyncio.ensure_future(whole_run())
            await pay.waiting.wait()
            run.cancel()
            await asyncio.gather(run, return_exceptions=True)

        async def whole_run():
            async with journal.run(RUN):
                await pay.call()

        run_async(cancel())

        assert (run_status(journal), attempt(journal, pay, asynchronous=True)) == ("interrupted", ["paid"])

    def test_cancelled_while_waiting_for_another_call(self, journal):
        """A call that waits for a running try of the same step can be cancelled; the running one goes on."""
        call = tool_call(never)

        async def cancel_the_second():
            inside, go = asyncio.Event(), asyncio.Event()

            async def body():
                inside.set()
                await go.wait()
                return "paid"

            async with journal.run(RUN):
                ask("pay order 7", [("c-1", "pay", {"order": "o-7"})])
                first = asyncio.ensure_future(use_async(call, body))
                await inside.wait()
                second = asyncio.ensure_future(use_async(call, body))
                await asyncio.sleep(0)
                second.cancel()
                await asyncio.gather(second, return_exceptions=True)
                go.set()
                return second.cancelled(), await first

        assert run_async(cancel_the_second()) == (True, "paid")
        assert only_step(journal).value == "paid"
