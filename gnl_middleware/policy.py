"""Replay labels: what may happen to a tool call that a crash interrupted."""

import copy
import weakref
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, Literal, TypeVar, overload

import wrapt

from gnl_middleware.model import Answer, InterruptedCall

Recover = Callable[[InterruptedCall], Answer | Awaitable[Answer]]
"""Asked whether an interrupted call happened; synchronous or asynchronous."""

OnInterrupted = Literal["block", "tell_model"]
OncePer = Literal["args"] | Callable[[Any], Any]
"""``"args"``: equal arguments are one business call; a function: equal results of it are."""

Window = Literal["run", "journal"]
Label = Literal["safe", "keyed", "never"]

_STRICTNESS: dict[str, int] = {"": 0, "safe": 0, "keyed": 1, "never": 2}
_METADATA_KEY = "gnl_policy"
_OWNER = "_self_gnl_owner"
_ATTRIBUTE = "_self_gnl_policy"  # wrapt keeps attributes of this prefix on the wrapper, not on the function
_T = TypeVar("_T", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Policy:
    """A tool's replay label and its options. Call it with options for a copy, or with a function or tool to label that.

    Attributes:
        label: ``safe`` (may run twice), ``keyed`` (may run twice with its idempotency key) or ``never``.
        recover: Asked about an interrupted ``never`` call: ``Done(value)``, ``NotDone()`` or ``Unknown()``.
        recover_after: Seconds to wait after the interrupted try began before ``recover`` is asked, for requests still
            in flight.
        once_per: Calls that count as one piece of business, such as one refund per order: a later one gets the outcome
            of the first, or waits for it, even if the model asks under a new call id.
        window: Where ``once_per`` looks for the first one: in the ``run``, or in the whole ``journal``.
        settle_failures: A call that is equal to one that failed, and may have happened all the same, is settled as that
            one: ``recover`` is asked, else the run blocks. For agents that call again under a new id what failed.
        on_interrupted: What to do when nothing can tell: ``block`` the run, or ``tell_model`` that the call may have
            happened. None leaves it to the run.
        not_performed: Error classes that prove that the effect did not happen; such a call may run again.
        errors: Error classes that a replay raises as themselves; others come back as ``RecordedError``.
        types: Classes of your own that its arguments and results may hold: dataclasses, pydantic models, enums and named
            tuples. ``journaled`` adds those that the function's annotations name.
        max_attempts: Tries, crashes included, before ``RetryLimitError``.

    Example:
        >>> never(recover=lambda call: NotDone()).label     # doctest: +SKIP
        'never'
    """

    label: Label
    recover: Recover | None = None
    recover_after: float = 0.0
    once_per: OncePer | None = None
    window: Window = "run"
    settle_failures: bool = False
    on_interrupted: OnInterrupted | None = None
    not_performed: tuple[type[BaseException], ...] = ()
    errors: tuple[type[Exception], ...] = ()
    types: tuple[type, ...] = ()
    max_attempts: int = 5

    def __post_init__(self) -> None:
        """Refuse labels and limits that mean nothing."""
        if self.label not in ("safe", "keyed", "never"):
            raise ValueError(f"unknown replay label {self.label!r}: use safe, keyed or never")
        if self.max_attempts < 1:
            raise ValueError(f"max_attempts must be at least 1, not {self.max_attempts}")
        if self.window not in ("run", "journal"):
            raise ValueError(f"unknown window {self.window!r}: use run or journal")
        if self.settle_failures and self.label != "never":
            raise ValueError(f"settle_failures= is for never: a {self.label} call may simply run again")
        if self.recover is not None and self.label != "never":
            raise ValueError(f"recover= is for never: a {self.label} call simply runs again")

    @overload
    def __call__(self, target: _T, /) -> _T: ...
    @overload
    def __call__(
        self,
        /,
        *,
        recover: Recover | None = ...,
        recover_after: float = ...,
        once_per: OncePer | None = ...,
        window: Window = ...,
        settle_failures: bool = ...,
        on_interrupted: OnInterrupted | None = ...,
        not_performed: tuple[type[BaseException], ...] = ...,
        errors: tuple[type[Exception], ...] = ...,
        types: tuple[type, ...] = ...,
        max_attempts: int = ...,
    ) -> "Policy": ...
    @overload
    def __call__(self, target: Any, /) -> Any: ...

    def __call__(self, target: Any = None, /, **options: Any) -> Any:
        """Label a function or tool (a copy, never the object itself), or give a policy with other options.

        Raises:
            TypeError: For an unknown option, or a target and options at once.
        """
        if target is None:
            known = {item.name for item in fields(self)} - {"label"}
            if unknown := set(options) - known:
                raise TypeError(f"unknown policy option {sorted(unknown)}; known: {sorted(known)}")
            return replace(self, **options)
        if options:
            raise TypeError("give the options first: never(recover=ask)(tool)")
        return _labelled(target, self)


safe = Policy("safe")
"""The call may run twice: it reads, or repeating it changes nothing."""

keyed = Policy("keyed")
"""The call may run twice with the same idempotency key: ``current_step().idempotency_key``."""

never = Policy("never")
"""The call must not run twice: an interrupted one is settled by ``recover`` or by a person."""


def _labelled(target: Any, policy: Policy) -> Any:
    if hasattr(target, "model_copy") and hasattr(target, "metadata"):
        return target.model_copy(update={"metadata": {**(target.metadata or {}), _METADATA_KEY: policy}})
    if is_dataclass(target) and isinstance(getattr(target, "name", None), str):
        # A tool of the OpenAI Agents SDK: a record that is copied with what is put on it, and that nothing can refer to.
        return _labelled_record(target, policy)
    if not callable(target):
        raise TypeError(
            f"{target!r} is neither a function nor a tool: label its name with policies={{...}} instead"
        )
    labelled = wrapt.FunctionWrapper(target, _call_through)
    setattr(labelled, _ATTRIBUTE, policy)
    remember(labelled, {labelled.__name__: policy})
    return labelled


def _labelled_record(target: Any, policy: Policy) -> Any:
    labelled = copy.copy(target)
    owner = _Owner()
    remember(owner, {labelled.name: policy})
    setattr(labelled, _ATTRIBUTE, policy)
    setattr(labelled, _OWNER, owner)
    return labelled


class _Owner:
    """Lives as long as a labelled record or a copy of it."""


def _call_through(
    wrapped: Callable[..., Any], _instance: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    return wrapped(*args, **kwargs)


_remembered: "weakref.WeakKeyDictionary[Any, Mapping[str, Policy]]" = weakref.WeakKeyDictionary()


def remember(owner: Any, policies: Mapping[str, Policy]) -> None:
    """Make policies known by tool name for as long as their owner lives.

    After a crash, an interrupted call may have to be settled before the code that wraps its tool runs again.

    Example:
        >>> remember(agent, {"charge": never(recover=find_charge)})     # doctest: +SKIP
    """
    _remembered[owner] = policies


def remembered(name: str) -> Policy | None:
    """The policy that is known for a tool's name, if all who know one agree."""
    known = _known(name)
    return known[0] if known and not is_disputed(name) else None


def is_disputed(name: str) -> bool:
    """Whether several tools of this name are known, with policies that differ: only the call itself will say whose it is."""
    known = _known(name)
    return any(policy != known[0] for policy in known)


def _known(name: str) -> list[Policy]:
    return [policies[name] for policies in list(_remembered.values()) if name in policies]


def label_of(target: Any) -> Policy | None:
    """The policy that a function or tool was labelled with, or None.

    Example:
        >>> label_of(safe(len)) == safe
        True
    """
    metadata = getattr(target, "metadata", None)
    if isinstance(metadata, dict) and isinstance(found := metadata.get(_METADATA_KEY), Policy):  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
        return found
    for function in (target, getattr(target, "func", None), getattr(target, "coroutine", None)):
        if isinstance(found := getattr(function, _ATTRIBUTE, None), Policy):
            return found
    return None


def stricter(policy: Policy, recorded_label: str) -> Policy:
    """The policy, with the recorded label where that one is stricter: a try already begun keeps its promise."""
    if _STRICTNESS[policy.label] >= _STRICTNESS.get(recorded_label, 0):
        return policy
    return replace(policy, label="never" if recorded_label == "never" else "keyed")
