"""Which run a call belongs to: the one that is open around it."""

import contextlib
from collections.abc import Generator

from gnl_middleware import GnlError, NoActiveRunError
from gnl_middleware.adapter import OnNoRun, Session, session_for

from .errors import passing


def session_here(*, name: str, on_no_run: OnNoRun = "raise") -> Session | None:
    """The open run of the code that is running here.

    Raises:
        NoActiveRunError: There is none, and passing through is not allowed.
    """
    try:
        return session_for(name=name, on_no_run=on_no_run)
    except GnlError as error:
        raise passing(error) from None


def session_around() -> Session:
    """The open run that a call without a run id belongs to.

    Raises:
        NoActiveRunError: No run is open here.
    """
    session = session_here(name="an agent without run_id=")
    if session is None:
        raise passing(NoActiveRunError(name="an agent without run_id="))
    return session


@contextlib.contextmanager
def joined() -> Generator[Session]:
    """Work in the run that is open around the call; whatever the SDK made of what stopped it, that is raised.

    Raises:
        NoActiveRunError: No run is open here.
    """
    session = session_around()
    try:
        yield session
    except Exception as error:
        if session.latch is not None and session.latch is not error:
            raise session.latch from error
        raise
    if session.latch is not None:
        raise session.latch
