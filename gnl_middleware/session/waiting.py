"""Sync and async share everything but the waiting: both drive the same generator of commands."""

import asyncio
import inspect
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Generator
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, TypeVar

from gnl_middleware.model import Answer, InterruptedCall
from gnl_middleware.policy import Recover
from gnl_middleware.storage.protocol import Write

from .context import outside

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Commit:
    """Wait until a write, handed over already, is committed; gives its result."""

    write: Write


class Ended(Future[None]):
    """Resolved when a try, or the settling of one, is over.

    Attributes:
        loop: The event loop that it goes on in, or None.
    """

    def __init__(self) -> None:
        super().__init__()
        self.loop = _running_loop()


@dataclass(frozen=True, slots=True)
class Join:
    """Wait until a try that runs elsewhere in this process has ended."""

    ended: "Future[None]"


@dataclass(frozen=True, slots=True)
class Pause:
    """Wait some seconds."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Ask:
    """Call a ``recover`` hook, synchronous or asynchronous; gives its answer."""

    recover: Recover
    call: InterruptedCall


@dataclass(frozen=True, slots=True)
class Look:
    """Read something from the journal; gives what was read."""

    read: Callable[[], Any]


Command = Commit | Join | Pause | Ask | Look
Steps = Generator[Command, Any, _T]


def drive(steps: Steps[_T]) -> _T:
    """Carry the commands out, blocking this thread."""
    return _advance(steps, _carry_out)


def _advance(steps: Steps[_T], carry_out: Callable[[Command], Any]) -> _T:
    try:
        command = next(steps)
        while True:
            try:
                result = carry_out(command)
            except BaseException as error:  # noqa: BLE001 - the generator decides what an error of a command means
                command = steps.throw(error)
            else:
                command = steps.send(result)
    except StopIteration as stop:
        return stop.value


def _carry_out(command: Command) -> Any:
    match command:
        case Commit(write):
            return write.result()
        case Join(ended):
            return _joined(ended)
        case Pause(seconds):
            return time.sleep(seconds)
        case Ask(recover, call):
            return _answer(recover, call)
        case Look(read):
            return read()


def _joined(ended: "Future[None]") -> None:
    loop = ended.loop if isinstance(ended, Ended) else None
    if loop is not None and not ended.done() and loop is _running_loop():
        raise RuntimeError(
            "this synchronous call must wait for an asynchronous one that goes on in the event loop of this thread, and "
            "would stop that loop by waiting: call an async function here and await it, or use asyncio.to_thread()"
        )
    ended.result()


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def _answer(recover: Recover, call: InterruptedCall) -> Answer:
    with outside():
        answer = recover(call)
        if not inspect.isawaitable(answer):
            return answer
        return run_coroutine(awaited(answer))


async def awaited(awaitable: Any) -> Any:
    """What an awaitable gives, as a coroutine."""
    return await awaitable


def run_coroutine(coroutine: Coroutine[Any, Any, _T]) -> _T:
    """Run a coroutine to its end from synchronous code, also where this thread's event loop is running."""
    if _running_loop() is None:
        return asyncio.run(coroutine)
    result: Future[_T] = Future()
    thread = threading.Thread(target=_run_into, args=(result, coroutine), name="gnl-recover")
    thread.start()
    thread.join()
    return result.result()


def _run_into(result: "Future[_T]", coroutine: Coroutine[Any, Any, _T]) -> None:
    try:
        result.set_result(asyncio.run(coroutine))
    except BaseException as error:  # noqa: BLE001 - handed to the thread that waits
        result.set_exception(error)


class Cancellable:
    """Carries commands out on the event loop; a cancellation never interrupts a write half way.

    Attributes:
        cancelled: The cancellation that arrived while a write was awaited; the caller raises it afterwards.
    """

    def __init__(self) -> None:
        self.cancelled: asyncio.CancelledError | None = None

    async def drive(self, steps: Steps[_T]) -> _T:
        """Carry the commands out without blocking the event loop."""
        try:
            command = next(steps)
            while True:
                try:
                    result = await self._carry_out(command)
                except BaseException as error:  # noqa: BLE001 - the generator decides what an error of a command means
                    command = steps.throw(error)
                else:
                    command = steps.send(result)
        except StopIteration as stop:
            return stop.value

    async def _carry_out(self, command: Command) -> Any:
        match command:
            case Commit(write):
                write.wake()
                return await self._finished(write.ended)
            case Join(ended):
                return await asyncio.shield(asyncio.wrap_future(ended))
            case Pause(seconds):
                return await asyncio.sleep(seconds)
            case Ask(recover, call):
                return await _answer_async(recover, call)
            case Look(read):
                return await asyncio.to_thread(read)

    async def _finished(self, ended: "Future[Any]") -> Any:
        waiting = asyncio.wrap_future(ended)
        while not waiting.done():
            try:
                await asyncio.shield(waiting)
            except asyncio.CancelledError as cancelled:
                self.cancelled = cancelled
            except Exception:  # noqa: BLE001, S110 - raised by result() below, once
                pass
        return waiting.result()


async def _answer_async(recover: Recover, call: InterruptedCall) -> Answer:
    with outside():
        if inspect.iscoroutinefunction(recover):
            return await recover(call)
        answer = await asyncio.to_thread(_called, recover, call)
        return await answer if inspect.isawaitable(answer) else answer


def _called(recover: Recover, call: InterruptedCall) -> Answer | Awaitable[Answer]:
    try:
        return recover(call)
    except StopIteration as error:
        # No future takes a StopIteration: whoever awaits it would wait for ever.
        raise RuntimeError(f"recover raised StopIteration: {error}") from error
