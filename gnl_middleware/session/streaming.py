"""One call whose value arrives in chunks: given on as they come, recorded as they came.

The outcome is committed before the last chunk is given, so a consumer that has seen the end never loses it. A stream
that is cut half way, by the provider or by its consumer, is no outcome.
"""

import contextlib
import functools
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterator
from typing import Any

from gnl_middleware.identity import inner_scope
from gnl_middleware.replay.call import AnyCall, ModelCall

from .context import step_entered
from .ending import Live, abandon, fail, start, succeed
from .engine import Served, begin
from .perform import begin_async
from .points import reach
from .session import Session
from .waiting import Cancellable, drive

_END: Any = object()
_SECOND = 2


def perform_stream(
    session: Session, call: AnyCall, body: Callable[[], Iterator[Any]], keep: Callable[[Any], Any]
) -> Generator[Any]:
    """Give the recorded chunks, or run the body and give its chunks on.

    Args:
        session: The open run.
        call: Its ``encode`` gets the list of what was kept of the chunks; its ``decode`` gives the chunks.
        body: Makes the live chunks.
        keep: What to record of a chunk, taken before it is given on: consumers change chunks.

    Raises:
        GnlError: The call may not run, or cannot be recorded.
        Exception: What the body raised.

    Example:
        >>> for chunk in perform_stream(session, call, ask, kept): ...     # doctest: +SKIP
    """
    whole = _whole(session, call)
    opened = drive(begin(session, call))
    if isinstance(opened, Served):
        yield from opened.given()
        return
    start(session, opened)
    kept: list[Any] = []
    held: list[Any] = []
    try:
        # Entered for each chunk anew: a generator shares its consumer's context between chunks.
        iterator = _entered(session, opened, body)
        while (chunk := _entered(session, opened, lambda: next(iterator, _END))) is not _END:
            kept.append(keep(chunk))
            if whole is not None:
                continue
            with _in_its_consumers_hands(session, opened):
                yield from held
            _say_mid_stream(opened, kept)
            held = [chunk]
    except Exception as error:  # noqa: BLE001 - recorded and raised again
        raise drive(fail(session, opened, error))  # noqa: B904 - the very error, with its own history
    except BaseException:
        abandon(session, opened)
        raise
    given = drive(succeed(session, opened, kept if whole is None else whole(kept)))
    yield from held if whole is None else given


def _whole(session: Session, call: AnyCall) -> Callable[[list[Any]], Any] | None:
    """How to make one value of a stream, where its chunks must not be recorded or given as they come.

    Raises:
        TypeError: The adapter does not say.
    """
    if not session.redacts:
        return None
    if isinstance(call, ModelCall) and call.whole is not None:
        return call.whole
    raise TypeError(
        f"{call.name} streams, and this journal redacts: a secret that two chunks share would be written. Call it without "
        f"streaming, open the journal without redact=, or let the adapter say how to join the chunks (ModelCall.whole)"
    )


@contextlib.contextmanager
def _in_its_consumers_hands(session: Session, live: Live) -> Generator[None]:
    """While a chunk is given on nothing runs, and nothing may ever run again: whoever leaves the run ends the try."""
    key = live.step.key
    session.suspended[key] = functools.partial(abandon, session, live)
    try:
        yield
    finally:
        session.suspended.pop(key, None)


def _say_mid_stream(live: Live, kept: list[Any]) -> None:
    # The last chunk that came is held back: with the second one, the first has been given on.
    if len(kept) == _SECOND:
        reach("mid_stream", live.step.number, live.step.name)


def _entered(session: Session, live: Live, function: Callable[[], Any]) -> Any:
    with step_entered(session, live.current, inner_scope(live.step.key)):
        return function()


async def perform_stream_async(
    session: Session, call: AnyCall, body: Callable[[], AsyncIterator[Any]], keep: Callable[[Any], Any]
) -> AsyncGenerator[Any]:
    """As ``perform_stream``, without blocking the event loop.

    Example:
        >>> async for chunk in perform_stream_async(session, call, ask, kept): ...     # doctest: +SKIP
    """
    waiting = Cancellable()
    whole = _whole(session, call)
    opened = await begin_async(session, call, waiting)
    if isinstance(opened, Served):
        for chunk in opened.given():
            yield chunk
        return
    start(session, opened)
    kept: list[Any] = []
    held: list[Any] = []
    try:
        iterator = _entered(session, opened, body)
        while (chunk := await _next(session, opened, iterator)) is not _END:
            kept.append(keep(chunk))
            if whole is not None:
                continue
            with _in_its_consumers_hands(session, opened):
                for given in held:
                    yield given
            _say_mid_stream(opened, kept)
            held = [chunk]
    except Exception as error:  # noqa: BLE001 - recorded and raised again
        raise await waiting.drive(fail(session, opened, error))  # noqa: B904 - the very error, with its own history
    except BaseException:
        abandon(session, opened)
        raise
    recorded = await waiting.drive(succeed(session, opened, kept if whole is None else whole(kept)))
    if waiting.cancelled is not None:
        session.gone(opened.step.key, call)
        raise waiting.cancelled
    for given in held if whole is None else recorded:
        yield given


async def _next(session: Session, live: Live, iterator: AsyncIterator[Any]) -> Any:
    with step_entered(session, live.current, inner_scope(live.step.key)):
        return await anext(iterator, _END)
