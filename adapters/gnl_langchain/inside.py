"""Models inside of what LangChain builds around them: bindings, retries, fallbacks, chains, choices that a call makes."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.runnables import (
    RouterRunnable,
    RunnableAssign,
    RunnableBranch,
    RunnableParallel,
    RunnableSequence,
    RunnableWithFallbacks,
)
from langchain_core.runnables.base import Runnable, RunnableBindingBase, RunnableEachBase
from langchain_core.runnables.configurable import DynamicRunnable

from .private import configurable_copy, is_configurable

_T = TypeVar("_T", bound=Runnable[Any, Any])
Replace = Callable[[BaseChatModel], BaseChatModel]

_HOLDING: Mapping[type[Any], tuple[str, ...]] = {
    RunnableBindingBase: ("bound",),  # also retries and messages' histories
    RunnableEachBase: ("bound",),
    RunnableWithFallbacks: ("runnable", "fallbacks"),
    RunnableSequence: ("first", "middle", "last"),
    RunnableParallel: ("steps__",),
    RunnableAssign: ("mapper",),
    RunnableBranch: ("branches", "default"),
    RouterRunnable: ("runnables",),
    DynamicRunnable: ("default", "alternatives"),
}
"""In which fields a runnable has others."""


def with_models_replaced(thing: _T, replace: Replace) -> _T:
    """A copy of a runnable in which each chat model is replaced; the runnable itself, where there is none in it.

    What a function closes over is not seen.

    Args:
        thing: A chat model, or a runnable made of some.
        replace: Gives the model's place to another.
    """
    if isinstance(thing, BaseChatModel):
        return cast("_T", replace(thing))
    if is_configurable(thing):
        return cast("_T", configurable_copy(thing, replace))
    for kind, fields in _HOLDING.items():
        if isinstance(thing, kind):
            return _copied(cast("Any", thing), fields, replace)
    return thing


def _copied(thing: Any, fields: tuple[str, ...], replace: Replace) -> Any:
    held = {name: getattr(thing, name) for name in fields if hasattr(thing, name)}
    changed = {name: _replaced(value, replace) for name, value in held.items()}
    if all(value is held[name] for name, value in changed.items()):
        return thing
    return thing.model_copy(update=changed)


def _replaced(value: Any, replace: Replace) -> Any:
    """A field's value with the models in it replaced; the same object, where nothing was."""
    if isinstance(value, Runnable):
        return with_models_replaced(cast("Runnable[Any, Any]", value), replace)
    if isinstance(value, Mapping):
        named = cast("Mapping[Any, Any]", value)
        items = {name: _alternative(item, replace) for name, item in named.items()}
        return items if any(items[name] is not item for name, item in named.items()) else named
    if isinstance(value, list | tuple):
        given = cast("list[Any]", value)
        found = [_replaced(item, replace) for item in given]
        same = all(new is old for new, old in zip(found, given, strict=True))
        return given if same else type(given)(found)
    return value


def _alternative(value: Any, replace: Replace) -> Any:
    """A runnable that is held by a name; an alternative may be a function that makes one when it is chosen."""
    if isinstance(value, Runnable) or not callable(value):
        return _replaced(value, replace)
    make = cast("Callable[[], Any]", value)

    def chosen() -> Any:
        return with_models_replaced(make(), replace)

    return chosen
