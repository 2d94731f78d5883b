"""The tries that go on in this process, whichever attempt began them: what they do is waited for, never taken for dead."""

from collections.abc import Mapping
from concurrent.futures import Future

_running: "dict[str, Future[None]]" = {}


def note_running(token: str, ended: "Future[None]") -> None:
    """A try is about to be written: until it is over, its body may run at any moment."""
    _running[token] = ended


def note_ended(token: str) -> None:
    """A try is over, and nothing more will happen in it."""
    _running.pop(token, None)


def running_here(token: str) -> "Future[None] | None":
    """The end of a try that is not over in this process, also of an attempt that was left without it."""
    return _running.get(token)


def all_running_here() -> "Mapping[str, Future[None]]":
    """The ends of all tries that are not over, by their tokens.

    Whoever reads the journal asks first: a try that ends meanwhile would neither run here nor have ended there.
    """
    return _running.copy()


def forget_after_fork() -> None:
    """In a child process: its parent's bodies do not run here."""
    _running.clear()
