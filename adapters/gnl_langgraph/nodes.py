"""``journaled_node``: a node's own work as one journalled step."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast, overload

import wrapt
from pydantic import BaseModel

from gnl_langchain.errors import passing
from gnl_langchain.runs import session_here
from gnl_langchain.tools import ending
from gnl_langchain.values import plain, raised_or_given
from gnl_middleware.adapter import FunctionCall, OnNoRun, Policy, label_of, perform, perform_async, remember

_STEP = "_self_gnl_step"  # keeps the hook known for as long as the function lives
_F = TypeVar("_F", bound=Callable[..., Any])


@overload
def journaled_node(
    function: _F, /, *, replay: Policy | None = None, name: str | None = None, on_no_run: OnNoRun = "raise"
) -> _F: ...
@overload
def journaled_node(
    *, replay: Policy, name: str | None = None, on_no_run: OnNoRun = "raise"
) -> Callable[[_F], _F]: ...


def journaled_node(
    function: Callable[..., Any] | None = None,
    /,
    *,
    replay: Policy | None = None,
    name: str | None = None,
    on_no_run: OnNoRun = "raise",
) -> Any:
    """A node of a graph, or a task of the functional API, as one journalled step.

    What LangGraph hands in besides the state (``config``, ``runtime``, ``store``, ``writer``) is handed on and not recorded.
    An update, a ``Command`` or a list of them is the outcome; ``interrupt()`` is a pause and none; a ``Command`` to the parent
    graph is an outcome. A node that calls journalled models and tools needs no wrapping; wrapped all the same, it is ``safe``.

    Args:
        function: The node; leave it out to use this as a decorator.
        replay: Its label: ``safe``, ``keyed`` or ``never``, with options. May be left out for a labelled function.
        name: Its name in the journal; the function's own by default.
        on_no_run: Outside any run: ``raise`` NoActiveRunError, or ``passthrough`` to the function.

    Raises:
        TypeError: There is no label.

    Example:
        >>> graph.add_node("ship", journaled_node(ship, replay=never(recover=find_parcel)))     # doctest: +SKIP
    """
    if function is None:

        def decorate(decorated: _F) -> _F:
            return journaled_node(decorated, replay=replay, name=name, on_no_run=on_no_run)

        return decorate
    policy = replay or label_of(function)
    if policy is None:
        raise TypeError(f"{function!r} has no label: use journaled_node(replay=never), keyed or safe")
    step = _NodeStep(function, policy, name or getattr(function, "__name__", "node"), on_no_run)
    wrapper = wrapt.FunctionWrapper(
        function, step.call_async if inspect.iscoroutinefunction(function) else step.call
    )
    remember(step, {step.name: policy})
    setattr(wrapper, _STEP, step)
    return wrapper


class _NodeStep:
    """How the executions of one node go through the journal."""

    def __init__(self, function: Callable[..., Any], policy: Policy, name: str, on_no_run: OnNoRun) -> None:
        self._signature = inspect.signature(function)
        self._policy, self.name = policy, name
        self._on_no_run: OnNoRun = on_no_run

    def call(
        self, wrapped: Callable[..., Any], instance: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        session = session_here(name=self.name, on_no_run=self._on_no_run)
        if session is None:
            return wrapped(*args, **kwargs)
        session.register({self.name: self._policy})
        return perform(session, self._described(args, kwargs), lambda: wrapped(*args, **kwargs))

    async def call_async(
        self, wrapped: Callable[..., Any], instance: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        session = session_here(name=self.name, on_no_run=self._on_no_run)
        if session is None:
            return await wrapped(*args, **kwargs)
        session.register({self.name: self._policy})
        return await perform_async(session, self._described(args, kwargs), lambda: wrapped(*args, **kwargs))

    def _described(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> FunctionCall:
        bound = self._signature.bind(*args, **kwargs)
        given = {name: _data(value) for name, value in bound.arguments.items() if name not in _HANDED_IN}
        return FunctionCall(
            name=self.name,
            policy=self._policy,
            arguments=given,
            decode=raised_or_given,
            ending=ending,
            as_control=passing,
        )


_HANDED_IN = frozenset({"config", "runtime", "store", "writer", "previous"})
"""Names by which LangGraph hands in what is no part of the state."""


def _data(value: Any) -> Any:
    """A state as plain data: also of a dataclass or of a pydantic model."""
    if isinstance(value, Mapping):
        return plain(dict(cast("Mapping[Any, Any]", value)))
    if isinstance(value, BaseModel):
        return {name: plain(getattr(value, name)) for name in type(value).model_fields}
    fields: Mapping[str, Any] | None = getattr(value, "__dataclass_fields__", None)
    return plain(value) if fields is None else {name: plain(getattr(value, name)) for name in fields}
