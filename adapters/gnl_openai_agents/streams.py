"""A streamed run: the run stays open until the SDK's loop has ended, whoever reads its events, or nobody."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextvars import Context, copy_context
from typing import Any, Literal, cast

import wrapt
from agents import RunResultStreaming
from agents.stream_events import StreamEvent

from gnl_middleware import GnlError
from gnl_middleware.adapter import Run, Session

from .errors import is_ours, passing


class DurableStream(wrapt.ObjectProxy[RunResultStreaming]):
    """The SDK's result of a streamed run, whose errors are those of the run around it.

    Args:
        result: The SDK's result.
        session: The open run; None while another worker holds it.
    """

    def __init__(self, result: RunResultStreaming, session: Session | None) -> None:
        super().__init__(result)
        self._self_session = session
        self._self_left: asyncio.Task[None] | None = None
        self._self_error: BaseException | None = None
        self._self_begun = asyncio.Event()
        if session is not None:
            self._self_begun.set()

    async def stream_events(self) -> AsyncGenerator[StreamEvent]:
        """The events of the run, as the SDK gives them.

        Raises:
            GnlError: What stopped the run, whatever the SDK or the agent's code made of it.

        Example:
            >>> async for event in streamed.stream_events(): ...     # doctest: +SKIP
        """
        await self._self_begun.wait()
        if self._self_session is None:
            await self.left()
            if self._self_error is not None:
                raise self._self_error
            return
        wrapped = self.__wrapped__
        events = cast("AsyncGenerator[StreamEvent]", wrapped.stream_events())
        try:
            async with contextlib.aclosing(events):
                async for event in events:
                    yield event
        except Exception as error:
            await self.left()
            if (stopped := self._stopped()) is not None and stopped is not error:
                raise stopped from error
            raise
        await self.left()
        if (stopped := self._stopped()) is not None:
            raise stopped

    @property
    def run_loop_exception(self) -> BaseException | None:
        """What ended the run, once it has ended."""
        wrapped = self.__wrapped__
        return self._stopped() or wrapped.run_loop_exception

    async def left(self) -> None:
        """Wait until the run has been left; for those who do not read the events.

        Example:
            >>> await streamed.left()     # doctest: +SKIP
        """
        if self._self_left is not None:
            await asyncio.wait([self._self_left])

    def _stopped(self) -> BaseException | None:
        if self._self_error is not None or self._self_session is None:
            return self._self_error
        return self._self_session.latch

    def cancel(self, mode: Literal["immediate", "after_turn"] = "immediate") -> None:
        """As the SDK's; a run that still waits for another worker does not begin at all.

        Example:
            >>> streamed.cancel(mode="after_turn")     # doctest: +SKIP
        """
        waiting = self._self_left if self._self_session is None else None
        self.__wrapped__.cancel(mode)
        if waiting is not None:
            waiting.cancel()

    def begin_when_free(
        self, run: Run, begin: Callable[[], RunResultStreaming], release: Callable[[], Awaitable[None]]
    ) -> None:
        """Begin as soon as the worker that holds the run has left it, without blocking the event loop.

        Args:
            run: The run; it waits.
            begin: Starts the SDK's run; called inside.
            release: Lets go of what was made for this run.

        Example:
            >>> streamed.begin_when_free(opening, start)     # doctest: +SKIP
        """
        waiting = self._begin_when_free(run, begin, release)
        # In a context of its own: the caller's code is not inside the run.
        self._self_left = asyncio.get_running_loop().create_task(waiting, context=copy_context())
        # Cancelled before its first step, it would never come to say so itself.
        self._self_left.add_done_callback(lambda _: self._self_begun.set())

    async def _begin_when_free(
        self, run: Run, begin: Callable[[], RunResultStreaming], release: Callable[[], Awaitable[None]]
    ) -> None:
        try:
            await run.__aenter__()
            try:
                self.__wrapped__ = begin()
            except BaseException as error:
                await run.__aexit__(type(error), error, error.__traceback__)
                raise
            self._self_session = run.session
        except Exception as error:  # noqa: BLE001 - raised to whoever reads the events
            self._self_error = passing(error) if isinstance(error, GnlError) and is_ours(error) else error
        finally:
            self._self_begun.set()
            if self._self_session is None:
                with contextlib.suppress(Exception):
                    await release()
        if self._self_session is not None:
            await self._leave(run, release, lambda: bool(self.__wrapped__.interruptions))

    def leave_when_done(
        self, run: Run, context: Context, release: Callable[[], Awaitable[None]], paused: Callable[[], bool]
    ) -> None:
        """Leave the run when the SDK's loop has ended.

        Args:
            run: The run, entered in the context.
            context: Where the run was entered: it can only be left there.
            release: Lets go of what was made for this run.
            paused: Whether it has stopped at an approval.

        Example:
            >>> streamed.leave_when_done(run)     # doctest: +SKIP
        """
        leaving = self._leave(run, release, paused)
        self._self_left = asyncio.get_running_loop().create_task(leaving, context=context)

    async def _leave(
        self, run: Run, release: Callable[[], Awaitable[None]], paused: Callable[[], bool]
    ) -> None:
        error = await self._loop_ended()
        run.session.paused = error is None and paused()
        with contextlib.suppress(Exception):
            await release()
        try:
            await run.__aexit__(type(error) if error else None, error, error.__traceback__ if error else None)
        except GnlError as stopped:
            self._self_error = passing(stopped) if is_ours(stopped) else stopped
        if (
            isinstance(error, asyncio.CancelledError)
            and (task := asyncio.current_task())
            and task.cancelling()
        ):
            raise error

    async def _loop_ended(self) -> BaseException | None:
        """Wait for the SDK's loop; gives what ended it."""
        wrapped = self.__wrapped__
        task = cast("asyncio.Task[Any]", wrapped.run_loop_task)
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as cancelled:
            task.cancel()
            await asyncio.wait([task])
            return cancelled
        if task.cancelled():
            return asyncio.CancelledError()
        return task.exception()
