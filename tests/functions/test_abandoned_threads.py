"""Bodies in threads that nobody waits for any more: they go on, and what they did is recorded when they end."""

import asyncio
import contextlib
import threading

import pytest

from gnl_middleware import SideEffectRetryBlockedError, keyed, never, safe
from tests.functions.asking import ask, tool_call, use
from tests.functions.scripted import PATIENCE, RUN, Function, attempt, only_step, run_async, run_status

LABELS = [pytest.param(policy, id=policy.label) for policy in (safe, keyed, never)]


class Thread:
    """A body that stays in its thread until it is let go.

    Attributes:
        inside: Set when the body has begun.
        go: Lets it end.
    """

    def __init__(self):
        self.inside, self.go = threading.Event(), threading.Event()
        self.ran = 0

    def body(self):
        self.ran += 1
        self.inside.set()
        self.go.wait(PATIENCE)
        return "paid"


async def give_up(thread, call):
    """Call in a thread and stop waiting as soon as the body has begun; gives the thread's end."""
    waiting = asyncio.ensure_future(asyncio.to_thread(call))
    await asyncio.to_thread(thread.inside.wait, PATIENCE)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    assert waiting.cancelled()


def slow(policy, thread):
    """A plain function whose body is the thread's."""
    pay = Function(policy, None)
    pay._play = lambda order: pay.ran.append(order) or thread.body()
    return pay


@pytest.mark.parametrize("policy", LABELS)
def test_same_call_again_waits(journal, policy):
    """A call whose abandoned try still runs in a thread is not run again: it gets that try's outcome."""
    thread = Thread()

    async def give_up_and_call_again():
        async with journal.run(RUN):
            ask("pay order 7", [("c-1", "pay", {"order": "o-7"})])
            await give_up(thread, lambda: use(tool_call(policy), thread.body))
            again = asyncio.ensure_future(asyncio.to_thread(use, tool_call(policy), thread.body))
            thread.go.set()
            return await again

    assert run_async(give_up_and_call_again()) == "paid"
    assert thread.ran == 1


@pytest.mark.parametrize("policy", LABELS)
def test_outcome_is_recorded_when_the_body_ends(journal, policy):
    """Leaving the run waits for an abandoned body; its outcome is recorded and read back by the next attempt."""
    thread = Thread()
    pay = slow(policy, thread)

    async def give_up_and_leave():
        async with journal.run(RUN):
            await give_up(thread, pay.call)
            asyncio.get_running_loop().call_soon(thread.go.set)

    run_async(give_up_and_leave())

    assert (only_step(journal).value, run_status(journal)) == ("paid", "completed")
    assert attempt(journal, pay) == ["paid"]
    assert thread.ran == 1


def test_late_outcome_of_a_run_that_was_left(journal):
    """A body that outlives its run's grace has its outcome recorded all the same: it is news about the world."""
    thread = Thread()
    pay = slow(never, thread)

    async def leave_without_it():
        with contextlib.suppress(SideEffectRetryBlockedError):
            async with journal.run(RUN, grace=0):
                await give_up(thread, pay.call)
        status = only_step(journal).status
        thread.go.set()
        return status

    assert run_async(leave_without_it()) == "started"  # the loop's end waits for its threads
    assert only_step(journal).value == "paid"
    assert (attempt(journal, pay), thread.ran) == (["paid"], 1)


def test_run_does_not_complete_over_a_running_body(journal):
    """A run that is left while the body of a `never` call still runs has not completed."""
    thread = Thread()
    pay = slow(never, thread)

    async def leave_without_it():
        with contextlib.suppress(SideEffectRetryBlockedError):
            async with journal.run(RUN, grace=0):
                await give_up(thread, pay.call)
        status = run_status(journal)
        thread.go.set()
        return status

    assert run_async(leave_without_it()) != "completed"


@pytest.mark.parametrize("policy", LABELS)
def test_next_attempt_waits_for_a_body_of_the_last_one(journal, policy):
    """A body of an attempt that was left still runs in this process: the next attempt waits for it, and runs nothing."""
    thread = Thread()
    pay = slow(policy, thread)
    again = Function(policy, "paid again", asynchronous=True)

    async def two_attempts():
        with contextlib.suppress(SideEffectRetryBlockedError):
            async with journal.run(RUN, grace=0):
                await give_up(thread, pay.call)
        async with journal.run(RUN):
            second = asyncio.ensure_future(again.call())
            await asyncio.sleep(0)  # as far as it can come
            waiting = not second.done()
            thread.go.set()
            return waiting, await second

    assert run_async(two_attempts()) == (True, "paid")
    assert again.ran == []


def test_error_of_an_abandoned_body_is_recorded(journal):
    """An abandoned body that fails in the end is recorded as failed."""
    thread = Thread()
    pay = Function(never, None)

    def fail(_):
        thread.body()
        raise ValueError("no such order")

    pay._play = fail

    async def give_up_and_leave():
        async with journal.run(RUN):
            await give_up(thread, pay.call)
            asyncio.get_running_loop().call_soon(thread.go.set)

    run_async(give_up_and_leave())

    assert (only_step(journal).status, only_step(journal).error) == ("failed", "ValueError: no such order")
