"""Streams that are left half consumed: nobody waits for ever for what may never go on (DESIGN 3.1)."""

import contextlib
import contextvars
from concurrent.futures import ThreadPoolExecutor

import pytest

from gnl_middleware.adapter import perform_stream, perform_stream_async, session_for
from tests.functions.asking import model_call
from tests.functions.scripted import PATIENCE, RUN, run_async

OPTIONS = [
    pytest.param({"lock": lock, "grace": 0.0}, id="lock" if lock else "no lock") for lock in (True, False)
]
CHUNKS = ["paid ", "order ", "7"]


def streamed():
    """What a model says, in chunks."""
    call = model_call("pay order 7", [])
    yield from perform_stream(session_for(name="model"), call, lambda: iter(CHUNKS), lambda chunk: chunk)


def streamed_async():
    """The same on an event loop."""

    async def chunks():
        for chunk in CHUNKS:
            yield chunk

    call = model_call("pay order 7", [])
    return perform_stream_async(session_for(name="model"), call, chunks, lambda chunk: chunk)


@pytest.mark.parametrize("options", OPTIONS)
def test_next_attempt_asks_again(journal, options):
    """A stream whose consumer left the run and keeps it is no call that goes on: the next attempt asks the model."""
    with journal.run(RUN, **options):
        kept = streamed()
        assert next(kept) == CHUNKS[0]

    def again():
        with journal.run(RUN, **options):
            return list(streamed())

    with ThreadPoolExecutor(1) as pool, contextlib.closing(kept):
        assert pool.submit(contextvars.Context().run, again).result(PATIENCE) == CHUNKS
    assert (len(journal.steps(RUN)), journal.runs()[0].status) == (1, "completed")
    assert again() == CHUNKS


@pytest.mark.parametrize("options", OPTIONS)
def test_next_attempt_asks_again_on_an_event_loop(journal, options):
    """The same for a stream that an event loop has left."""

    async def attempts():
        async with journal.run(RUN, **options):
            kept = streamed_async()
            assert await anext(kept) == CHUNKS[0]
        async with journal.run(RUN, **options):
            again = [chunk async for chunk in streamed_async()]
        await kept.aclose()
        return again

    assert run_async(attempts()) == CHUNKS
    assert len(journal.steps(RUN)) == 1


@pytest.mark.parametrize("options", OPTIONS)
def test_consumer_that_goes_on_later(journal, options):
    """Who consumes the stream to its end after the run was left has all of it, and the record has it, too."""
    with journal.run(RUN, **options):
        kept = streamed()
        assert next(kept) == CHUNKS[0]
    assert list(kept) == CHUNKS[1:]
    assert [step.status for step in journal.steps(RUN)] == ["done"]
