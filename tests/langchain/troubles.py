"""Every kind of control error, provoked for real: what a tool's body does, or what a model's call meets."""

import sqlite3
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

from gnl_langchain import errors as passing
from gnl_middleware import Journal, journaled, never, safe
from tests.langchain.driving import drive


class Killed(BaseException):
    """Ends an attempt as a killed worker would: nothing catches it, and the journal gets no outcome."""


class Trouble(ABC):
    """A tool body that meets a control error.

    Args:
        journal: The journal of the run.
        path: Its file.
    """

    error: type[Exception]
    """What the caller must get."""
    needs_earlier_attempt = True
    options: dict[str, Any] = {}  # noqa: RUF012
    """How the attempt that meets the error is opened."""

    def __init__(self, journal: Journal, path: Path) -> None:
        self.journal, self.path = journal, path
        self.attempt = 1
        self.bodies = 0
        """How often the tool's body began in the attempt that meets the error."""

    def prepare(self, agent: Any) -> None:
        """Run the attempt before the one that meets the error."""
        if self.needs_earlier_attempt:
            try:
                drive(self.journal, agent)
            except Killed:
                pass
            else:
                raise AssertionError("the earlier attempt was not killed")
        self.attempt, self.bodies = 2, 0

    def act(self) -> str:
        """What the tool does."""
        self.bodies += 1
        return self.body()

    @abstractmethod
    def body(self) -> str:
        """Be killed in the first attempt; in the second, meet the error."""


class Blocked(Trouble):
    """A never function inside the tool was interrupted, and nothing can tell."""

    error = passing.SideEffectRetryBlockedError

    def body(self) -> str:
        @journaled(replay=never)
        def charge() -> str:
            raise Killed

        return charge()


class Diverged(Trouble):
    """The tool asks for another charge than the recorded one."""

    error = passing.DivergenceError

    def body(self) -> str:
        @journaled(replay=never)
        def charge(amount: int) -> str:
            return f"charged {amount}"

        charge(self.attempt)
        raise Killed


class TriedTooOften(Trouble):
    """A function inside the tool used up its attempts."""

    error = passing.RetryLimitError

    def body(self) -> str:
        @journaled(replay=safe(max_attempts=1))
        def read() -> str:
            raise Killed

        return read()


class Missing(Trouble):
    """Offline, the tool's call has no outcome to give."""

    error = passing.ReplayMissError
    options = {"offline": True}  # noqa: RUF012

    def body(self) -> str:
        raise Killed


class Busy(Trouble):
    """The tool opens another run, which another worker holds."""

    error = passing.RunBusyError
    needs_earlier_attempt = False

    def body(self) -> str:
        holder = self.journal.run("another")
        with holder, self.journal.run("another"):
            raise AssertionError("two workers hold one run")


class Unserializable(Trouble):
    """A function inside the tool returns what cannot be journalled."""

    error = passing.UnserializableValueError
    needs_earlier_attempt = False

    def body(self) -> str:
        @journaled(replay=safe)
        def read() -> object:
            return object()

        return str(read())


class Unavailable(Trouble):
    """The journal's file is gone when a function inside the tool wants to begin."""

    error = passing.JournalUnavailableError
    needs_earlier_attempt = False

    def body(self) -> str:
        @journaled(replay=never)
        def charge() -> str:
            raise AssertionError("it runs although it cannot be recorded")

        if self.path.exists():
            self.path.rename(self.path.with_suffix(".away"))
        return charge()


class LeaseLost(Trouble):
    """Another worker took the run over while the tool was paused."""

    error = passing.LeaseLostError
    needs_earlier_attempt = False

    def body(self) -> str:
        @journaled(replay=never)
        def charge() -> str:
            raise AssertionError("it runs although the run is another's")

        with sqlite3.connect(self.path) as database:
            database.execute("UPDATE gnl_runs SET fence = fence + 1")
        database.close()
        return charge()


TROUBLES: tuple[type[Trouble], ...] = (
    Blocked,
    Diverged,
    TriedTooOften,
    Missing,
    Busy,
    Unserializable,
    Unavailable,
    LeaseLost,
)
