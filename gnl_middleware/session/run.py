"""The handle of an open run, and the context manager that opens it."""

import asyncio
import contextlib
import random
import threading
import uuid
from collections.abc import Callable, Generator
from datetime import UTC, datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

import tenacity

from gnl_middleware.clock import Clock
from gnl_middleware.errors import GnlError, RecordedError, RunBusyError
from gnl_middleware.replay.call import FunctionCall

from .context import (
    branch_entered,
    current_session,
    current_steps,
    session_entered,
    session_held_here,
    session_known,
)
from .lifecycle import RunSettings, leave_session, open_session
from .perform import perform
from .renewal import Renewer
from .session import Session

if TYPE_CHECKING:
    from gnl_middleware.storage.database import Database

_WHILE_BUSY = tenacity.retry_if_result(lambda opened: opened is False)
# Soon at first, since most holders are about to leave; later rarely, so that a hundred who wait cost the journal little.
_BETWEEN = tenacity.wait_random_exponential(multiplier=0.02, max=0.5)
_T = TypeVar("_T")


class Run:
    """An open run: ``with journal.run("order-7") as run: ...`` (also ``async with``).

    Attributes:
        run_id: The run.
    """

    def __init__(
        self, open_database: "Callable[[], tuple[Database, Renewer]]", settings: RunSettings, clock: Clock
    ) -> None:
        self._open_database, self._settings, self._clock = open_database, settings, clock
        self._session: Session | None = None
        self._renewer: Renewer | None = None
        self._entered = contextlib.ExitStack()
        self._apart = False
        self.run_id = settings.run_id

    def __enter__(self) -> Self:
        with _stopping_the_run_around():
            patient = self._is_patient(task=None)
            tenacity.Retrying(retry=_WHILE_BUSY, wait=_BETWEEN)(self._try_open, patient=patient)
        return self._enter()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._entered.close()
        with _stopping_the_run_around(error):
            self._leave(error)

    async def __aenter__(self) -> Self:
        patient = self._is_patient(task=asyncio.current_task())
        with _stopping_the_run_around():
            # Who waits for a run must hold no thread meanwhile: its holder may need one to leave it.
            waiting = tenacity.AsyncRetrying(retry=_WHILE_BUSY, wait=_BETWEEN)
            await waiting(self._try_open_async, patient=patient)
        return self._enter()

    async def _try_open_async(self, *, patient: bool) -> bool:
        opening = asyncio.get_running_loop().run_in_executor(None, lambda: self._try_open(patient=patient))
        try:
            return await asyncio.shield(opening)
        except asyncio.CancelledError as cancelled:
            # The thread cannot be stopped: if it got the lease, give it back before the cancellation goes on.
            await asyncio.wait([opening])
            if opening.exception() is None and opening.result():
                await asyncio.to_thread(self._leave, cancelled)
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._entered.close()
        leaving = asyncio.get_running_loop().run_in_executor(None, self._leave, error)
        with _stopping_the_run_around(error):
            try:
                await asyncio.shield(leaving)
            except asyncio.CancelledError:
                await asyncio.wait([leaving])
                raise

    def _is_patient(self, *, task: "asyncio.Task[Any] | None") -> bool:
        """Whether to wait for a holder: one that cannot leave while this thread, or this task, waits would hang."""
        if self._settings.on_busy == "raise":
            return False
        holder = session_held_here(self.run_id)
        if holder is None or holder.database is not self._open_database()[0]:
            return True
        thread, its_task = holder.entered_by
        return thread != threading.get_ident() or (task is not None and its_task is not task)

    def _try_open(self, *, patient: bool) -> bool:
        """Open the run; False where another worker holds it and the caller is patient."""
        try:
            self._open()
        except RunBusyError:
            if patient:
                return False
            raise
        return True

    def _open(self) -> None:
        if self._session is not None:
            raise RuntimeError(
                f"this handle of run {self.run_id!r} was used already: call journal.run() again"
            )
        database, self._renewer = self._open_database()
        self._session = session = open_session(database, self._renewer, self._settings, self._clock)
        if session.attempt > 1 and session.status_before != "completed" and not session.options.offline:
            self._settings.hooks.resumed(self)

    def _enter(self) -> Self:
        self.session.entered_by = threading.get_ident(), _current_task()
        if self._settings.watch is not None:
            self.session.watcher = self._settings.watch(self)
        self._entered.enter_context(session_known(self.session))
        if not self._apart:
            self._entered.enter_context(session_entered(self.session))
        self.session.handle = self
        return self

    def apart(self) -> Self:
        """Open it, in ``with run.apart():``, without making it the run of the code around; ``inside()`` does that.

        For generators: what a consumer does between two items, maybe in another context, is no part of the run.

        Example:
            >>> with journal.run("order-4471").apart() as run, run.inside():     # doctest: +SKIP
            ...     charge("4471")
        """
        self._apart = True
        return self

    def inside(self) -> contextlib.AbstractContextManager[None]:
        """Make an open run the current one for a while.

        Example:
            >>> with run.inside():     # doctest: +SKIP
            ...     charge("4471")
        """
        return session_entered(self.session)

    def _leave(self, error: BaseException | None) -> None:
        if self._renewer is None:
            return
        raised = leave_session(self.session, self._renewer, error, self._settings.grace)
        self._settings.hooks.stopped(self.session.latch)
        if raised is not None:
            raise raised from error

    @property
    def session(self) -> Session:
        """What adapters work with.

        Raises:
            RuntimeError: The run was not entered.
        """
        if self._session is None:
            raise RuntimeError(f"run {self.run_id!r} is not open: use it as `with journal.run(...) as run:`")
        return self._session

    @property
    def attempt(self) -> int:
        """Number of this attempt, from 1."""
        return self.session.attempt

    @property
    def steps_ran(self) -> int:
        """Steps that ran in this attempt."""
        return self.session.spared.ran

    @property
    def steps_read_back(self) -> int:
        """Steps whose outcome was read back in this attempt."""
        return self.session.spared.read_back

    @property
    def tokens_not_spent(self) -> int:
        """Tokens of the model replies that were read back instead of paid for again."""
        return self.session.spared.tokens

    @property
    def seconds_not_spent(self) -> float:
        """Seconds that the steps read back took when they ran."""
        return self.session.spared.seconds

    def now(self) -> datetime:
        """The time in UTC, recorded on first use and read back after: a timestamp that may enter a prompt.

        Example:
            >>> run.now().isoformat()     # doctest: +SKIP
            '2026-11-29T12:00:00.000001+00:00'
        """
        return self.value("now", lambda: datetime.now(UTC))

    def uuid4(self) -> uuid.UUID:
        """A random UUID, recorded on first use and read back after.

        Example:
            >>> run.uuid4() == run.uuid4()     # doctest: +SKIP
            False
        """
        return self.value("uuid4", uuid.uuid4)

    def random(self) -> float:
        """A random number in [0, 1), recorded on first use and read back after.

        Example:
            >>> 0 <= run.random() < 1     # doctest: +SKIP
            True
        """
        return self.value("random", random.random)

    def value(self, name: str, function: Callable[[], _T]) -> _T:
        """What the function returned the first time: the n-th value of a name in a scope is always the same.

        Args:
            name: What the value is, as the journal shows it.
            function: Makes the value; called on first use only.

        Raises:
            UnserializableValueError: The value cannot be journalled without loss.

        Example:
            >>> run.value("rate", fetch_rate)     # doctest: +SKIP
            1.08
        """
        call = FunctionCall(name=name, arguments={}, kind="value")
        return perform(self.session, call, function)

    @contextlib.contextmanager
    def scope(self, name: str) -> Generator[None]:
        """Name a concurrent branch, so that its calls are told from those of the other branches.

        Example:
            >>> with run.scope("billing"):     # doctest: +SKIP
            ...     agent.invoke(question)
        """
        with branch_entered(name):
            yield


@contextlib.contextmanager
def _stopping_the_run_around(error: BaseException | None = None) -> Generator[None]:
    """A control error of a run that was opened inside a step of another one stops that one, too.

    Whatever the step's body or its framework makes of the error, the model must not hear of it (DESIGN 3.6).
    """
    try:
        yield
    except GnlError as raised:
        error = raised
        raise
    finally:
        outer = current_session()
        if isinstance(error, GnlError) and not isinstance(error, RecordedError) and outer and current_steps():
            with contextlib.suppress(GnlError):
                outer.stop(error)


def _current_task() -> "asyncio.Task[Any] | None":
    try:
        return asyncio.current_task()
    except RuntimeError:
        return None  # no event loop runs here


def current_run() -> Run | None:
    """The open run of the code that is running now, or None.

    Example:
        >>> current_run().run_id     # doctest: +SKIP
        'order-4471'
    """
    session = current_session()
    return None if session is None else session.handle
