"""Those who look on while a run goes on: they are told what happens, and change nothing."""

import contextlib
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from gnl_middleware.errors import DivergenceError, GnlError, SideEffectRetryBlockedError
from gnl_middleware.model import StoredStep

if TYPE_CHECKING:
    from .run import Run

_log = logging.getLogger("gnl_middleware")


class Watcher(Protocol):
    """Told of every attempt and step of one open run, from any thread."""

    def attempt_ended(self, status: str, error: BaseException | None) -> None:
        """The attempt has been left."""
        ...

    def step_began(self, step: StoredStep) -> None:
        """A body begins."""
        ...

    def step_failed(self, key: str, error: BaseException) -> None:
        """A body raised."""
        ...

    def step_ended(self, key: str, step: StoredStep | None) -> None:
        """A body is over; told once or several times."""
        ...

    def step_read_back(self, step: StoredStep) -> None:
        """A step was not run: its outcome came from the record."""
        ...

    def inside(self, key: str | None) -> contextlib.AbstractContextManager[object]:
        """Where what a step calls is seen as a part of it; None for the attempt."""
        ...


Watch = Callable[["Run"], Watcher]
"""Makes the watcher of a run that has just been opened."""


@dataclass(frozen=True, slots=True)
class Hooks:
    """Functions of the user's that are told of what needs attention; what they raise is logged and goes no further.

    Attributes:
        on_blocked: An attempt has stopped at a side effect that may have happened.
        on_divergence: An attempt has stopped because a call no longer matches its record.
        on_resume: An attempt begins on a run that an earlier one has not completed.
    """

    on_blocked: Callable[[SideEffectRetryBlockedError], object] | None = None
    on_divergence: Callable[[DivergenceError], object] | None = None
    on_resume: "Callable[[Run], object] | None" = None

    def resumed(self, run: "Run") -> None:
        """Tell that an attempt begins anew."""
        if self.on_resume is not None:
            with _logged("on_resume"):
                self.on_resume(run)

    def stopped(self, error: GnlError | None) -> None:
        """Tell why an attempt has stopped."""
        if isinstance(error, SideEffectRetryBlockedError) and self.on_blocked is not None:
            with _logged("on_blocked"):
                self.on_blocked(error)
        elif isinstance(error, DivergenceError) and self.on_divergence is not None:
            with _logged("on_divergence"):
                self.on_divergence(error)


class _logged(contextlib.AbstractContextManager[None]):  # noqa: N801 - used as a function
    """An alert that fails must neither hide what it is about nor stop a run that could go on."""

    def __init__(self, hook: str) -> None:
        self._hook = hook

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _traceback: object
    ) -> bool:
        if isinstance(error, Exception):
            _log.error("The hook %s raised; the run is not affected.", self._hook, exc_info=error)
            return True
        return False
