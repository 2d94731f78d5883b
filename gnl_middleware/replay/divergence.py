"""Whether a call still fits its record, and how to say what differs (DESIGN 3.3)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from gnl_middleware.errors import DivergenceError
from gnl_middleware.identity import Where
from gnl_middleware.model import StoredStep

from .call import AnyCall, ModelCall
from .difference import Change, changes, likely_causes, made_anew, shown
from .matching import Drift, Placement, dangling_effect
from .payloads import decoded
from .record import Record

OnChange = Literal["continue", "stop"]
"""What a changed setup of the agent (its instructions, model, settings or tools) does to a replay."""

_INSTRUCTIONS = ("system", "developer")


@dataclass(frozen=True, slots=True)
class Strictness:
    """What may differ from the record.

    Attributes:
        strict: Nothing of what is asked may.
        on_change: Whether the agent's setup may.
    """

    strict: bool
    on_change: OnChange


def drift_error(
    record: Record, placement: Placement, call: AnyCall, strictness: Strictness
) -> DivergenceError | None:
    """The error for a call that differs from its record, where the difference may not pass.

    A ``safe`` tool and a model may drift in lenient mode; the arguments of a ``never`` or ``keyed`` call never may.
    """
    step, drift = placement.step, placement.drift
    if step is None or drift is None or step.status == "withdrawn":
        return None
    protects = drift == "arguments" and step.policy in ("never", "keyed")
    if not (strictness.strict or protects or strictness.on_change == "stop"):
        return None
    recorded, asked = _compared(record, step, call, drift)
    stops = strictness.on_change == "stop" if _is_setup(drift, recorded, asked) else strictness.strict
    if not (stops or protects):
        return None
    return _error(record, step, drift, recorded, asked, headline=_HEADLINES[drift])


def _is_setup(drift: Drift, recorded: Any, asked: Any) -> bool:
    """Whether only the agent's setup differs. Instructions are part of it, though they are sent as messages."""
    if drift != "messages":
        return drift == "setup"
    return _without_instructions(recorded) == _without_instructions(asked)


def _without_instructions(messages: Sequence[Any]) -> list[Any]:
    return [
        message
        for message in messages
        if not (isinstance(message, dict) and message.get("role") in _INSTRUCTIONS)  # pyright: ignore[reportUnknownMemberType]
    ]


def drift_warning(record: Record, placement: Placement, call: AnyCall) -> str:
    """What a lenient replay says of a call that gets its record though it differs: where, and what to do about it."""
    step, drift = placement.step, placement.drift
    if step is None or drift is None:
        return ""
    found = changes(*_compared(record, step, call, drift), drift)
    if anew := made_anew(found):
        return f"only what is made anew each time differs ({'; '.join(anew)})"
    return f"{_HEADLINES[drift]}:\n{shown(found)}"


def left_record_error(record: Record, where: Where, call: AnyCall, *, strict: bool) -> DivergenceError | None:
    """The error for a live call that shows that the run has left its record.

    The caller asks this for live model calls and for side effects without a journalled reply.
    """
    where = record.as_recorded(where)
    left = [step for step in record.effects_left(where.scope) if _is_ahead(step, where)]
    asked_for = _same_name(record, where, call) if strict else None
    if isinstance(call, ModelCall):
        dangling = dangling_effect(record, where.scope, call.request)
        unseen = (
            [step for step in record.replies_left(where.scope) if _is_ahead(step, where)] if strict else []
        )
        passed = [*left, *([dangling] if dangling else []), *unseen]
    else:
        passed = [*([asked_for] if asked_for else []), *left]
    if not passed:
        return None
    step = passed[0]
    part: Drift = "messages" if isinstance(call, ModelCall) else "arguments"
    recorded, asked = _compared(record, step, call, part)
    what = f"the call of {call.name} is not in the record, while the recorded {step.name} was not asked for"
    return _error(record, step, part, recorded, asked, headline=what, causes=_LEFT_CAUSES)


_HEADLINES = {
    "arguments": "the arguments differ from the record",
    "messages": "the messages differ from the record",
    "setup": "the model, its settings or its tools differ from the record",
}
_CAUSES: dict[str, tuple[str, ...]] = {
    "arguments": (
        "the code or a person changed what the tool is called with",
        "a value made anew: take it from run.value()",
    ),
    "messages": (
        "a changed prompt or tool result",
        "another order of concurrent calls: name them with run.scope()",
    ),
    "setup": ("an upgraded model or changed settings", "a tool was added, removed, or its schema changed"),
}
_LEFT_CAUSES = (
    "the code, the prompt or the input changed between the attempts",
    "concurrent agents share one scope: name each with run.scope(name)",
)


def _is_ahead(step: StoredStep, where: Where) -> bool:
    """Whether a step lies ahead of a call. What lies behind was skipped by a resume from a checkpoint.

    The history cannot always witness that: a summary takes the place of what it sums up. A step of another node lies ahead
    only in a later round: nodes of one round run side by side, and so does a node with the tasks that it calls.
    """
    if not step.rounds or not where.rounds:
        return True
    if step.scope == where.scope:
        return step.rounds >= where.rounds
    shared = min(len(step.rounds), len(where.rounds))
    return step.rounds[:shared] > where.rounds[:shared]


def _same_name(record: Record, where: Where, call: AnyCall) -> StoredStep | None:
    recorded = (record.steps[key] for key in record.loaded if key not in record.consumed)
    # What was withdrawn never began: it is no record that anything could differ from.
    left = (step for step in recorded if step.status != "withdrawn" and step.kind == call.kind)
    same = (step for step in left if (step.scope, step.name) == (where.scope, call.name))
    ahead = (step for step in same if _is_ahead(step, where))
    return min(ahead, key=lambda step: step.number, default=None)


def _compared(record: Record, step: StoredStep, call: AnyCall, part: Drift) -> tuple[Any, Any]:
    if isinstance(call, ModelCall):
        if part == "setup":
            return record.setups.recorded(step), record.as_written(call.setup)
        # A request is compared with a request: that of the reply which asked for the recorded call.
        asking = step if step.kind == "model" else record.steps.get(step.reply or "")
        recorded = decoded(step, step.arguments) if asking is None else conversation(record, asking)
        return recorded, record.as_written(list(call.messages))
    recorded = conversation(record, step) if step.kind == "model" else decoded(step, step.arguments)
    return recorded, record.as_written(call.arguments)


def conversation(
    record: Record, step: StoredStep, read: Callable[[StoredStep, bytes], Any] = decoded
) -> list[Any]:
    """The messages of a recorded request, put together along the chain."""
    pieces: list[list[Any]] = []
    seen: set[str] = set()
    current: StoredStep | None = step
    while current is not None and current.key not in seen:
        seen.add(current.key)
        pieces.append(read(current, current.arguments))
        current = record.continued(current.base) if current.base else None
    return [message for piece in reversed(pieces) for message in piece]


def _error(
    record: Record,
    step: StoredStep,
    part: Drift,
    recorded: Any,
    asked: Any,
    *,
    headline: str,
    causes: Sequence[str] = (),
) -> DivergenceError:
    found: list[Change] = changes(recorded, asked, part)
    return DivergenceError(
        run_id=record.run_id,
        step_key=step.key,
        part=part,
        recorded=recorded,
        asked=asked,
        diff=shown(found),
        headline=headline,
        causes=causes or likely_causes(found) or _CAUSES[part],
        journal=record.journal,
    )
