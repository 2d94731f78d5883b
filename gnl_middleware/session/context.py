"""Where am I: the open run, the scope and the step of the code that is running now.

Context variables carry it into tasks and executor threads that copy the context. Where none is carried (a thread of
one's own, a generator consumed elsewhere), the run is named in the framework's configuration and looked up here.
"""

import contextlib
from collections.abc import Callable, Generator
from contextvars import ContextVar
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import TYPE_CHECKING

from gnl_middleware.errors import NoActiveRunError
from gnl_middleware.identity import Place, Where, branch_scope

if TYPE_CHECKING:
    from .session import CurrentStep, Session

_NOWHERE = Where()
FindPlaces = Callable[[], tuple[Place, ...]]
"""Where in a framework's own structure the code is that is running here: the nodes around it, the outermost first."""


@dataclass(frozen=True, slots=True, eq=False)
class _Entered:
    """What a ``with`` block around the running code has entered: a run, a step or a named branch.

    Attributes:
        session: The run.
        where: Where in the run.
        places: The places that were around it then; what is found inside goes on from these.
        steps: The run's steps whose bodies are running around it.
        around: The same, also of the runs around that run.
    """

    session: "Session | None" = None
    where: Where = _NOWHERE
    places: tuple[Place, ...] = ()
    steps: "tuple[CurrentStep, ...]" = ()
    around: "tuple[CurrentStep, ...]" = ()


_OUTSIDE = _Entered()
_finders: "list[FindPlaces]" = []
_entered: ContextVar[tuple[_Entered, ...]] = ContextVar("gnl_entered", default=())
_open: "dict[str, Session]" = {}


def _innermost() -> _Entered:
    entered = _entered.get()
    return entered[-1] if entered else _OUTSIDE


@contextlib.contextmanager
def _inside(entered: _Entered) -> Generator[None]:
    """Enter something for a while.

    Leaving takes away that alone, and does not go back to what was before: runs and branches that one context has open
    need not be left in the order in which they were entered.
    """
    _entered.set((*_entered.get(), entered))
    try:
        yield
    finally:
        _entered.set(tuple(each for each in _entered.get() if each is not entered))


def current_session() -> "Session | None":
    """The open run of the code that is running now, or None.

    Example:
        >>> current_session() is None
        True
    """
    return _innermost().session


def find_session(run_id: str | None, *, name: str) -> "Session | None":
    """The session of a run held open in this process, by id, else the current one.

    Raises:
        NoActiveRunError: A run id was given, and no such run is open here.
        ValueError: The run id contradicts the run that is open around the call.
    """
    session = current_session()
    if run_id is None or (session is not None and session.run_id == run_id):
        return session
    if session is not None:
        raise ValueError(
            f"the configuration names run {run_id!r}, but run {session.run_id!r} is open around this call"
        )
    if (found := _open.get(run_id)) is None:
        raise NoActiveRunError(name=name)
    return found


def session_held_here(run_id: str) -> "Session | None":
    """The session of a run that this process holds open, or None."""
    return _open.get(run_id)


def find_places_with(finder: FindPlaces) -> None:
    """Let an adapter say where in its framework's own structure code is running; the first that knows is believed.

    Example:
        >>> find_places_with(nodes_around)     # doctest: +SKIP
    """
    _finders.append(finder)


def _found_places() -> tuple[Place, ...]:
    return next((places for finder in _finders if (places := finder())), ())


def current_where(places: tuple[Place, ...] | None = None) -> Where:
    """Where the code is that is running now.

    Args:
        places: Where it is in its framework's own structure, if its adapter knows better than the finders.
    """
    entered = _innermost()
    found = _found_places() if places is None else places
    shared = sum(
        1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(entered.places, found, strict=False))
    )
    return entered.where.inside(found[shared:])


def current_scope() -> str:
    """The scope of the code that is running now; empty for the run itself.

    Example:
        >>> current_scope()
        ''
    """
    return current_where().scope


def current_steps() -> "tuple[CurrentStep, ...]":
    """The tool steps whose bodies are running around this code, the outermost first.

    Example:
        >>> current_steps()
        ()
    """
    return _innermost().steps


def steps_around() -> "tuple[CurrentStep, ...]":
    """The steps whose bodies are running around this code, also those of runs around its own, the outermost first."""
    return _innermost().around


@contextlib.contextmanager
def session_known(session: "Session") -> Generator[None]:
    """Make a session findable by its run id."""
    _open[session.run_id] = session
    try:
        yield
    finally:
        _open.pop(session.run_id, None)


def session_entered(session: "Session") -> contextlib.AbstractContextManager[None]:
    """Make a session the current one."""
    entered = _Entered(session, places=_found_places(), around=_innermost().around)
    return _watched(session, None, _inside(entered))


def outside() -> contextlib.AbstractContextManager[None]:
    """Leave the run for a while: a ``recover`` hook looks at the world each time, and is never read back."""
    return _inside(replace(_innermost(), session=None))


def step_entered(
    session: "Session", step: "CurrentStep", scope: str
) -> contextlib.AbstractContextManager[None]:
    """Run a body: what it calls happens inside the step."""
    return entered_step(session, step, scope, _found_places())


def entered_step(
    session: "Session", step: "CurrentStep", scope: str, places: tuple[Place, ...]
) -> contextlib.AbstractContextManager[None]:
    """As ``step_entered``, where the places around the step are known."""
    inner = _innermost()
    # A call found through the configuration (a thread of one's own) brings its run along for what it calls itself.
    entered = _Entered(session, Where(scope), places, (*inner.steps, step), (*inner.around, step))
    return _watched(session, step.key, _inside(entered))


def _watched(
    session: "Session", key: str | None, entered: contextlib.AbstractContextManager[None]
) -> contextlib.AbstractContextManager[None]:
    """The same, seen by whoever looks on as inside of a step, or of the attempt."""
    return entered if session.watcher is None else _both(session.watcher.inside(key), entered)


@contextlib.contextmanager
def _both(
    seen: contextlib.AbstractContextManager[object], entered: contextlib.AbstractContextManager[None]
) -> Generator[None]:
    with seen, entered:
        yield


def branch_entered(name: str) -> contextlib.AbstractContextManager[None]:
    """Run a branch that the caller named."""
    around = current_where()
    # The levels stay: a branch of a node is retried with its node, and has its rounds.
    where = Where(branch_scope(around.scope, name), around.levels)
    return _inside(replace(_innermost(), where=where, places=_found_places()))
