"""Plain functions and coroutines as steps."""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Literal, TypeVar, overload

import wrapt

from gnl_middleware import codec
from gnl_middleware.errors import NoActiveRunError
from gnl_middleware.policy import Policy, label_of, remember
from gnl_middleware.replay.call import FunctionCall

from .context import current_session, current_steps
from .perform import perform, perform_async
from .session import CurrentStep

OnNoRun = Literal["raise", "passthrough"]
_STEP = "_self_gnl_step"  # keeps the hook known for as long as the function lives
_F = TypeVar("_F", bound=Callable[..., Any])


@overload
def journaled(
    function: _F, /, *, replay: Policy | None = None, name: str | None = None, on_no_run: OnNoRun = "raise"
) -> _F: ...
@overload
def journaled(
    *, replay: Policy, name: str | None = None, on_no_run: OnNoRun = "raise"
) -> Callable[[_F], _F]: ...


def journaled(
    function: Callable[..., Any] | None = None,
    /,
    *,
    replay: Policy | None = None,
    name: str | None = None,
    on_no_run: OnNoRun = "raise",
) -> Any:
    """A plain function or coroutine as a journalled step.

    Its arguments and its result must be plain data, or values of classes that its annotations name (dataclasses, pydantic
    models, enums, named tuples) or that are registered. The n-th call with the same arguments in a scope is always the same
    step; called again after a failure that nobody handled, it is still that step.

    Args:
        function: The function; leave it out to use this as a decorator.
        replay: Its label: ``safe``, ``keyed`` or ``never``, with options. May be left out for a labelled function.
        name: Its name in the journal; the function's own by default.
        on_no_run: Outside any run: ``raise`` NoActiveRunError, or ``passthrough`` to the function.

    Raises:
        TypeError: There is no label.

    Example:
        >>> from gnl_middleware import Journal, journaled, never
        >>> @journaled(replay=never)
        ... def charge(order_id: str) -> str:
        ...     return f"charged {order_id}"
    """
    if function is None:

        def decorate(decorated: _F) -> _F:
            return journaled(decorated, replay=replay, name=name, on_no_run=on_no_run)

        return decorate
    policy = replay or label_of(function)
    if policy is None:
        raise TypeError(f"{function!r} has no label: use journaled(replay=never), keyed or safe")
    policy = replace(
        policy, types=tuple(dict.fromkeys((*policy.types, *codec.classes_in(_annotations(function)))))
    )
    step = _FunctionStep(function, policy, name or getattr(function, "__name__", "function"), on_no_run)
    wrapper = wrapt.FunctionWrapper(function, step.call_async if _is_coroutine(function) else step.call)
    remember(step, {step.name: policy})
    setattr(wrapper, _STEP, step)
    return wrapper


def _annotations(function: Callable[..., Any]) -> list[Any]:
    return list(codec.hints_of(function).values())


def _is_coroutine(function: Callable[..., Any]) -> bool:
    # An object may be called like a coroutine function without being one.
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)


class _FunctionStep:
    """How calls of one function go through the journal."""

    def __init__(self, function: Callable[..., Any], policy: Policy, name: str, on_no_run: OnNoRun) -> None:
        self._signature = inspect.signature(function)
        self._attribute = str(getattr(function, "__name__", ""))
        # The signature of a method that was taken from its object has no place for the object.
        is_bound = inspect.ismethod(function) or inspect.isbuiltin(function)
        self._of_method = self._signature if is_bound else _without_object(self._signature)
        self._policy, self.name, self._on_no_run = policy, name, on_no_run
        self._returns = codec.hints_of(function).get("return")

    def call(
        self, wrapped: Callable[..., Any], instance: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        if (session := self._session()) is None:
            return wrapped(*args, **kwargs)
        return perform(
            session, self._described(instance, args, kwargs), lambda: self._ran(wrapped, args, kwargs)
        )

    def _ran(self, wrapped: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        value = wrapped(*args, **kwargs)
        if inspect.iscoroutine(value):
            value.close()
            raise TypeError(
                f"{self.name} only handed out a coroutine, which has not run: journal the coroutine function itself"
            )
        return value

    def call_async(
        self, wrapped: Callable[..., Any], instance: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        if (session := self._session()) is None:
            return wrapped(*args, **kwargs)
        return perform_async(
            session, self._described(instance, args, kwargs), lambda: wrapped(*args, **kwargs)
        )

    def _session(self) -> Any:
        session = current_session()
        if session is None and self._on_no_run == "raise":
            raise NoActiveRunError(name=self.name)
        return session

    def _described(self, instance: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> FunctionCall:
        # A method's object is not data: what it is called with is what counts.
        if instance is None and self._is_called_through_class(args):
            instance, *args = args
        bound = (self._signature if instance is None else self._of_method).bind(*args, **kwargs)
        bound.apply_defaults()
        arguments = dict(bound.arguments)
        return FunctionCall(name=self.name, policy=self._policy, arguments=arguments, present=self._present)

    def _is_called_through_class(self, args: Sequence[Any]) -> bool:
        """Whether it is a class method whose class is its first argument, as Python from 3.13 on calls what it decorates."""
        if not args or not isinstance(args[0], type):
            return False
        found: Any = inspect.getattr_static(args[0], self._attribute, None)
        decorated: Any = getattr(found, "__func__", None)
        return type(found) is classmethod and getattr(decorated, _STEP, None) is self

    def _present(self, value: Any) -> Any:
        """What a person or ``recover`` gave, as the function would have returned it."""
        return codec.built(self._returns, value) if isinstance(self._returns, type) else value


def _without_object(signature: inspect.Signature) -> inspect.Signature:
    first, *others = signature.parameters.values() or (None,)
    if first is None or first.kind is inspect.Parameter.VAR_POSITIONAL:
        return signature
    return signature.replace(parameters=others)


def current_step() -> CurrentStep:
    """The step whose body is running here; its ``idempotency_key`` is the same on every attempt.

    Raises:
        NoActiveRunError: No journalled body is running here.

    Example:
        >>> stripe.charge(amount, idempotency_key=current_step().idempotency_key)     # doctest: +SKIP
    """
    steps = current_steps()
    if not steps:
        raise NoActiveRunError(name="current_step()")
    return steps[-1]
