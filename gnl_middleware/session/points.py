"""Places where a test can let the process die. In production ``reach`` does nothing."""

from collections.abc import Callable
from typing import Literal

StepPoint = Literal[
    "before_intent", "after_intent", "before_body", "after_body", "before_outcome", "after_outcome"
]
"""What every step comes to, in this order."""

Point = Literal[StepPoint, "mid_stream"]
"""``mid_stream``: the first chunk of a streamed model call was given on, and another one has come."""

Observer = Callable[[Point, int, str], None]
Role = Literal["test", "toolkit"]
"""Who watches: a test, or the crash toolkit around it; neither takes the other's place."""

_observers: dict[Role, Observer] = {}


def reach(point: Point, number: int, name: str) -> None:
    """Tell the installed observers that a step (its number and name) has come to a point."""
    if _observers:
        for observer in tuple(_observers.values()):
            observer(point, number, name)


def observe(observer: Observer | None, *, role: Role = "test") -> None:
    """Install an observer, or take it away with None; ``gnl_middleware.testing`` is the only caller."""
    if observer is None:
        _observers.pop(role, None)
    else:
        _observers[role] = observer
