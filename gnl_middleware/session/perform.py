"""One call, from beginning to end, for bodies that are plain functions or coroutines."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from gnl_middleware.identity import inner_scope
from gnl_middleware.replay.call import AnyCall

from .context import step_entered
from .ending import Live, abandon, fail, start, succeed, withdraw
from .engine import Served, begin
from .session import Session
from .waiting import Cancellable, drive


def perform(session: Session, call: AnyCall, body: Callable[[], Any]) -> Any:
    """Answer a call from the record, or run its body once and record how it ends.

    Raises:
        GnlError: The call may not run, or cannot be recorded.
        Exception: What the body raised, or the recorded error that the agent handled.

    Example:
        >>> reply = perform(session, call, lambda: model.ask(messages))     # doctest: +SKIP
    """
    opened = drive(begin(session, call))
    if isinstance(opened, Served):
        return opened.given()
    start(session, opened)
    try:
        with step_entered(session, opened.current, _scope_inside(opened)):
            value = body()
    except Exception as error:  # noqa: BLE001 - recorded and raised again
        raise drive(fail(session, opened, error))  # noqa: B904 - the very error, with its own history
    except BaseException:
        abandon(session, opened)
        raise
    return drive(succeed(session, opened, value))


async def perform_async(
    session: Session, call: AnyCall, body: Callable[[], Awaitable[Any]], *, in_thread: bool = False
) -> Any:
    """As ``perform``, without blocking the event loop.

    A cancellation before the body begins takes the intent back; inside the body it leaves an intent without outcome;
    afterwards the outcome is still written before the cancellation goes on.

    Args:
        session: The open run.
        call: The call.
        body: What it does.
        in_thread: The body waits for a thread, which no cancellation stops: its outcome is recorded when it ends.

    Example:
        >>> reply = await perform_async(session, call, ask)     # doctest: +SKIP
    """
    waiting = Cancellable()
    opened = await begin_async(session, call, waiting)
    if isinstance(opened, Served):
        return opened.given()
    running = _run_body(session, opened, body, waiting)
    value = await (asyncio.shield(running) if in_thread else running)
    if waiting.cancelled is not None:
        session.gone(opened.step.key, call)
        raise waiting.cancelled
    return value


async def begin_async(session: Session, call: AnyCall, waiting: Cancellable) -> Served | Live:
    """As ``begin``; a try whose body has not begun when a cancellation arrives is taken back."""
    opened = await waiting.drive(begin(session, call))
    if waiting.cancelled is not None:
        if isinstance(opened, Live):
            withdraw(session, opened)
        else:
            session.gone(opened.key, call)
        raise waiting.cancelled
    return opened


async def _run_body(
    session: Session, live: Live, body: Callable[[], Awaitable[Any]], waiting: Cancellable
) -> Any:
    start(session, live)
    try:
        with step_entered(session, live.current, _scope_inside(live)):
            value = await body()
    except Exception as error:  # noqa: BLE001 - recorded and raised again
        failure = await waiting.drive(fail(session, live, error))
        if waiting.cancelled is not None:
            raise waiting.cancelled from failure
        raise failure  # noqa: B904 - the very error, with its own history
    except BaseException:
        abandon(session, live)
        raise
    return await waiting.drive(succeed(session, live, value))


def _scope_inside(live: Live) -> str:
    return inner_scope(live.step.key)
