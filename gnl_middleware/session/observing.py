"""A call that someone else runs: its intent is written before, its outcome after, and nothing can be served."""

import contextlib
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

from gnl_middleware.identity import Place, inner_scope
from gnl_middleware.replay.call import AnyCall

from .context import entered_step
from .ending import Live, fail, start, succeed
from .engine import Served, begin
from .session import Session
from .waiting import drive


@dataclass(frozen=True, slots=True)
class Observation:
    """A call that was announced.

    Attributes:
        recorded: Its outcome is in the record already; what happens now is not recorded again.
    """

    session: Session
    call: AnyCall
    live: Live | None
    places: tuple[Place, ...]

    @property
    def recorded(self) -> bool:
        """See the class."""
        return self.live is None

    def succeed(self, value: Any) -> None:
        """Record what it returned.

        Raises:
            GnlError: It cannot be recorded.

        Example:
            >>> watched.succeed(result)     # doctest: +SKIP
        """
        if self.live is not None:
            drive(succeed(self.session, self.live, value, observed=True))

    def fail(self, error: Exception) -> None:
        """Record how it failed.

        Raises:
            GnlError: It cannot be recorded.

        Example:
            >>> watched.fail(error)     # doctest: +SKIP
        """
        if self.live is not None:
            drive(fail(self.session, self.live, error))

    def inside(self) -> contextlib.AbstractContextManager[None]:
        """Where what the call itself calls is announced.

        Example:
            >>> with watched.inside(): ...     # doctest: +SKIP
        """
        if self.live is None:
            return contextlib.nullcontext()
        return entered_step(self.session, self.live.current, inner_scope(self.live.step.key), self.places)


def observe(session: Session, call: AnyCall, around: Observation | None = None) -> Observation:
    """Announce a call; its intent is written when this returns.

    Args:
        session: The open run.
        call: The call, with its places.
        around: The call inside of which it happens.

    Raises:
        GnlError: The intent cannot be written, or the call may not run: its body must not begin.

    Example:
        >>> watched = observe(session, call, None)     # doctest: +SKIP
    """
    with _inside(around):
        opened = drive(begin(session, call))
    live = None if isinstance(opened, Served) else opened
    if live is not None:
        start(session, live)
    return Observation(session, call, live, call.places or ())


@contextlib.contextmanager
def _inside(around: Observation | None) -> Generator[None]:
    with contextlib.nullcontext() if around is None else around.inside():
        yield
