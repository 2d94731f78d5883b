"""Callers that go without their answer, as when a time runs out: who calls again makes that call, and no further one."""

import asyncio
import contextlib
import contextvars
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from gnl_middleware import journaled, keyed, never, safe
from gnl_middleware.adapter import perform_async, perform_stream_async, session_for
from tests.functions.asking import model_call
from tests.functions.scripted import PATIENCE, RUN, run_async

LABELS = [pytest.param(policy, id=policy.label) for policy in (safe, keyed, never)]


class Body:
    """Counts how often it runs, in any of its forms; what it gives tells which time that was."""

    def __init__(self):
        self.ran = 0
        self.inside, self.go = threading.Event(), threading.Event()

    def held_up(self):
        """Stays where it is until it may go on."""
        given = self.given()
        self.inside.set()
        self.go.wait(PATIENCE)
        return given

    async def coroutine(self):
        """Ends at once."""
        return self.given()

    async def chunks(self):
        """In one chunk."""
        yield self.given()

    def given(self):
        self.ran += 1
        return f"the {self.ran}. time"


async def asked(body):
    """What a model says."""
    return await perform_async(session_for(name="model"), model_call("pay order 7", []), body.coroutine)


async def streamed(body):
    """The same in chunks."""
    call = model_call("pay order 7", [])
    chunks = perform_stream_async(session_for(name="model"), call, body.chunks, lambda chunk: chunk)
    (said,) = [chunk async for chunk in chunks]
    return said


def paying(policy):
    """A plain coroutine."""
    return lambda body: journaled(body.coroutine, replay=policy, name="pay")()


CALLS = [
    *[pytest.param(paying(policy), id=policy.label) for policy in (safe, keyed, never)],
    pytest.param(asked, id="model"),
    pytest.param(streamed, id="stream"),
]


@pytest.mark.parametrize("call", CALLS)
def test_caller_that_goes_while_the_outcome_is_written(journal, watch_points, call):
    """A call that is cancelled after its body has ended has its outcome: called again it gives that, as on each replay."""
    body = Body()

    async def cancelled():
        calling = asyncio.ensure_future(call(body))
        watch_points(lambda point, *_: point == "before_outcome" and calling.cancel())
        await asyncio.gather(calling, return_exceptions=True)
        watch_points(None)
        return calling.cancelled()

    async def attempt(again):
        async with journal.run(RUN):
            assert not again or await cancelled()
            return [await call(body), await call(body)]

    first = run_async(attempt(True))

    assert first == ["the 1. time", "the 2. time"]
    assert run_async(attempt(False)) == first
    assert body.ran == 2


@contextlib.contextmanager
def left_behind(journal, body, call):
    """An attempt was left while its body went on in a thread."""
    with ThreadPoolExecutor(1) as pool:
        with journal.run(RUN, grace=0.0):
            left = pool.submit(contextvars.copy_context().run, call)
            assert body.inside.wait(PATIENCE)
        yield
        body.go.set()
        assert left.result(PATIENCE) == "the 1. time"


async def come_to_wait(call):
    """A call that has come to where it waits for another one, as far as it can come."""
    calling = asyncio.ensure_future(call)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert not calling.done()
    return calling


@pytest.mark.parametrize("policy", LABELS)
def test_caller_that_goes_while_it_waits_for_an_earlier_try(journal, policy):
    """A call that waited for a body of an earlier attempt, and was cancelled, waits for it again: it is no further call."""
    body = Body()
    held_up = journaled(body.held_up, replay=policy, name="pay")

    async def pay():
        return await journaled(body.coroutine, replay=policy, name="pay")()

    async def wait_twice():
        async with journal.run(RUN):
            waiting = await come_to_wait(pay())
            beside = await pay() if policy is safe else None  # a call of its own
            waiting.cancel()
            await asyncio.wait([waiting])
            again = await come_to_wait(pay())
            body.go.set()
            return await again, beside

    beside = "the 2. time" if policy is safe else None
    with left_behind(journal, body, held_up):
        assert run_async(wait_twice()) == ("the 1. time", beside)
    assert body.ran == (1 if beside is None else 2)


def test_caller_that_goes_while_the_model_is_asked_by_an_earlier_attempt(journal):
    """A request that waited for the reply to an earlier attempt's, and was cancelled, waits for it again."""
    body = Body()

    async def in_thread():
        return await asyncio.to_thread(body.held_up)

    async def ask_with(speak):
        return await perform_async(session_for(name="model"), model_call("pay order 7", []), speak)

    async def wait_twice():
        async with journal.run(RUN):
            waiting = await come_to_wait(ask_with(body.coroutine))
            waiting.cancel()
            await asyncio.wait([waiting])
            again = await come_to_wait(ask_with(body.coroutine))
            body.go.set()
            return await again

    with left_behind(journal, body, lambda: asyncio.run(ask_with(in_thread))):
        assert run_async(wait_twice()) == "the 1. time"
    assert body.ran == 1
