"""What all errors of the library have in common."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Self, TypeVar

_SHOWN = 400
_PACKAGE = __name__.rpartition(".")[0]
_E = TypeVar("_E", bound="GnlError")


class GnlError(Exception):
    """Whatever the library raises; its facts are attributes, and it pickles.

    Example:
        >>> from gnl_middleware import ReplayMissError
        >>> try:
        ...     raise ReplayMissError(run_id="order-7", step_key="model/ab/1", name="gpt-4o")
        ... except GnlError as error:
        ...     error.run_id
        'order-7'
    """

    def __str__(self) -> str:
        """What happened, why it matters, what to do next, and where more is told."""
        return f"{super().__str__()}\nMore: gnl explain {self.page}"

    @property
    def page(self) -> str:
        """The page that tells more: the library's own name of the error, whatever an adapter has made of it."""
        kinds = (kind for kind in type(self).__mro__ if kind.__module__.startswith(_PACKAGE))
        return next((kind.__name__ for kind in kinds), type(self).__name__)

    def __reduce__(self) -> tuple[Any, ...]:
        """Rebuild from the facts: constructors with keyword-only arguments do not survive pickling untold."""
        return _rebuild, (type(self), self.args, dict(vars(self)))

    @classmethod
    def from_error(cls, error: "GnlError") -> Self:
        """The same error as another class, for frameworks that let only their own types pass."""
        return _rebuild(cls, error.args, dict(vars(error)))


def passing_as(mark: type[BaseException]) -> Callable[[GnlError], GnlError]:
    """How an adapter makes our errors pass its framework: as the subclasses of them that also have the framework's type.

    Args:
        mark: The framework's type; its subclasses that are errors of ours, each of one of our classes, must be defined by now.

    Returns:
        Gives an error as its passing class; itself if it is one already, or if there is none.

    Example:
        >>> class RunBusyError(core.RunBusyError, GraphBubbleUp):     # doctest: +SKIP
        ...     pass
        >>> passing = passing_as(GraphBubbleUp)     # doctest: +SKIP
    """
    passing_class = {
        next(base for base in kind.__bases__ if issubclass(base, GnlError)): kind
        for kind in mark.__subclasses__()
        if issubclass(kind, GnlError)
    }

    def passing(error: GnlError) -> GnlError:
        kind = passing_class.get(type(error))
        if kind is None:
            return error
        made = kind.from_error(error).with_traceback(error.__traceback__)
        made.__cause__ = error.__cause__
        return made

    return passing


def _rebuild(kind: type[_E], args: tuple[Any, ...], facts: dict[str, Any]) -> _E:
    error = kind.__new__(kind, *args)
    error.args = args
    vars(error).update(facts)
    return error


def shown(value: object) -> str:
    """A value as a message shows it; a long one is cut."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=repr)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}… ({len(text)} characters)"


def moment(seconds: float | None) -> str:
    """Seconds since the epoch as people read them."""
    return (
        "unknown" if seconds is None else datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
    )
