"""Where a run can be cut, and what its steps become in a fork: pure functions on the rows of the run that is copied."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NoReturn

from gnl_middleware import codec
from gnl_middleware.identity import graph_scope
from gnl_middleware.model import CARRIED, EDITED, HANDLED, Done, Failed, RecordedFailure, StoredStep

from .record import Record

Refuse = Callable[[str], NoReturn]
"""Raises the error for a fork that cannot be made, with the reason."""

_FIRST_ATTEMPT = 1
FENCE = 1
"""The fence of a fork that nobody has opened yet; its first attempt gets the next one."""


def named(steps: Iterable[StoredStep], name: str | int, refuse: Refuse) -> StoredStep:
    """The step that a person means by its key, its number, or the name of a tool that was called once."""
    begun = [step for step in steps if step.status != "withdrawn"]
    fitting = [step for step in begun if str(name) in (step.key, str(step.number))]
    fitting = fitting or [step for step in begun if step.name == name]
    if not fitting:
        known = ", ".join(f"{step.number} ({step.name})" for step in begun) or "none"
        refuse(f"there is no step {name!r}; its steps: {known}")
    if len(fitting) > 1:
        meant = ", ".join(f"{step.number} ({step.key})" for step in fitting)
        refuse(f"{name!r} fits several steps: {meant}")
    return fitting[0]


def kept_before(steps: Sequence[StoredStep], before: StoredStep) -> list[StoredStep]:
    """The steps that a fork keeps that is cut at the model reply which asks for a step.

    A reply is the only place where another future can begin: the agent comes to it with the same history. Kept is what
    first began before it, and what runs beside the step around it: that does not follow from it, whoever was faster.
    """
    cut = _Cut.at({step.key: step for step in steps}, before)
    return [step for step in steps if cut.keeps(step)]


@dataclass(frozen=True, slots=True)
class _Cut:
    """A place in a run.

    Attributes:
        steps: All steps, by key.
        step: The first one that is not kept.
        around: The steps in whose scopes it lies, which are entered again.
        replies: The replies that asked for those.
    """

    steps: Mapping[str, StoredStep]
    step: StoredStep
    around: frozenset[str]
    replies: frozenset[str]

    @classmethod
    def at(cls, steps: Mapping[str, StoredStep], before: StoredStep) -> "_Cut":
        step = steps.get(before.reply or "", before)
        around = list(_enclosing(steps, step.scope))
        replies = frozenset(outer.reply for outer in around if outer.reply is not None)
        return cls(steps, step, frozenset(outer.key for outer in around), replies)

    def keeps(self, step: StoredStep) -> bool:
        if step.key in self.around:
            return False
        beside = next(
            (outer for outer in _enclosing(self.steps, step.scope) if outer.key not in self.around), None
        )
        if beside is not None and self.keeps(beside):
            return True
        if step.reply in self.replies:
            return True
        if step.number < self.step.number:
            return True
        places = (self.step, *(self.steps[key] for key in self.around))
        return any(self._is_beside(step, place) for place in places)

    def _is_beside(self, step: StoredStep, place: StoredStep) -> bool:
        """Whether a step belongs to another node of a graph that is executed in the same round as that of a place."""
        same_base = list(_enclosing(self.steps, step.scope)) == list(_enclosing(self.steps, place.scope))
        return same_base and any(
            step.scope.startswith(f"{graph}node:")
            and not step.scope.startswith(f"{graph}{node}/")
            and step.rounds[:depth] == place.rounds[:depth]
            for depth, (graph, node) in enumerate(_nodes(place), start=1)
            if node.startswith("node:")
        )


def _enclosing(steps: Mapping[str, StoredStep], scope: str) -> Iterator[StoredStep]:
    """The recorded steps in whose scopes a scope lies, the outermost first."""
    ends = (end for end, character in enumerate(scope) if character == "/")
    found = (steps[scope[:end]] for end in ends if scope[:end] in steps)
    # The key of a call begins with that of the reply that asks for it, in which nothing happens.
    return (step for step in found if step.kind != "model")


def _nodes(step: StoredStep) -> list[tuple[str, str]]:
    """The nodes and tasks around a step, the outermost first, each behind the scope of its graph; one for each round."""
    found: list[tuple[str, str]] = []
    graph = ""
    for part in step.scope.split("/")[:-1]:
        if part.startswith(("node:", "call:")):
            found.append((graph, part))
        graph += f"{part}/"
    return found[len(found) - len(step.rounds) :]


@dataclass(frozen=True, slots=True)
class Changed:
    """Another outcome for a step.

    Attributes:
        value: The encoded value of ``Done``; None for ``Failed``.
        failure: The error of ``Failed``.
    """

    value: bytes | None
    failure: RecordedFailure | None

    @classmethod
    def of(cls, outcome: Done | Failed) -> "Changed":
        """The outcome, encoded.

        Raises:
            UnserializableValueError: The value cannot be journalled.
        """
        if isinstance(outcome, Failed):
            return cls(None, RecordedFailure("RecordedError", outcome.error))
        return cls(codec.encode(outcome.value), None)


def check_edit(record: Record, kept: Mapping[str, StoredStep], step: StoredStep, refuse: Refuse) -> None:
    """Refuse an edit that the fork could not be true to."""
    place = f"step {step.number} ({step.name})"
    if step.kind == "model":
        refuse(
            f"{place} is a model reply, and what follows from another reply is not recorded; cut before it"
        )
    if step.key not in kept:
        refuse(f"{place} is not kept: the fork is cut before it, so it will be called anew")
    # The journal answers for what is whole: what happened inside of it is not looked at again.
    around = _enclosing(kept, step.scope)
    whole = next((outer for outer in around if outer.status == "done" or record.is_handled(outer)), None)
    if whole is not None:
        refuse(
            f"{place} happened inside of step {whole.number} ({whole.name}), whose outcome is kept; edit that one, or cut "
            f"inside of it"
        )
    reply = kept.get(step.reply or "")
    seen = [each for each in kept.values() if _has_seen(each, step, reply)]
    if seen:
        first = min(each.number for each in seen)
        refuse(
            f"the reply in step {first} follows from the outcome of {place}, and would be kept; cut before it "
            f"(before={first})"
        )


def _has_seen(model: StoredStep, step: StoredStep, reply: StoredStep | None) -> bool:
    """Whether a model step was asked with the outcome of another step, or may have been."""
    if model.kind != "model":
        return False
    if step.key in model.answered:
        return True
    if model.number < step.number:
        return False
    if reply is not None:
        return model.scope == reply.scope
    inner, outer = graph_scope(step.scope), graph_scope(model.scope)
    # What a plain function gave may stand in any prompt that is written after it, inside and outside of where it was called.
    return inner.startswith(outer) or outer.startswith(inner)


def planned(
    record: Record, kept: Iterable[StoredStep], edits: Mapping[str, Changed], *, new_run_id: str, now: float
) -> list[StoredStep]:
    """The rows of a fork.

    What can change no more shares its payloads with the run that is copied; what was interrupted or edited has its own.
    A failure that the agent went on from stays one, though the reply that shows it may lie behind the cut.
    """
    rows: list[StoredStep] = []
    for step in kept:
        row = _carried(record, step, new_run_id)
        if (change := edits.get(step.key)) is not None:
            row = _edited(row, change, now)
        elif is_settled(row):
            row = replace(row, payloads=step.payloads or step.run_id)
        rows.append(row)
    return rows


def _carried(record: Record, step: StoredStep, new_run_id: str) -> StoredStep:
    handled = record.is_handled(step) and step.resolution != "failed"
    # A try whose body never began has handed its key to nobody.
    begun = step.tries > (step.status == "withdrawn")
    return replace(
        step,
        run_id=new_run_id,
        fence=FENCE,
        attempt=_FIRST_ATTEMPT,
        origin=(step.origin or step.run_id) if begun else None,
        payloads=None,
        holder=None,
        claimed_until=None,
        claimed=False,
        blocked=None,
        resolution=HANDLED if handled else step.resolution,
    )


def is_settled(step: StoredStep) -> bool:
    """Whether the outcome of a carried step stands for good."""
    return step.status == "done" or (step.status == "failed" and step.resolution in (*CARRIED, "failed"))


def _edited(step: StoredStep, change: Changed, now: float) -> StoredStep:
    return replace(
        step,
        status="done" if change.failure is None else "failed",
        finished_at=now,
        ended=step.ended or step.begun,
        value=change.value,
        value_hash=None if change.value is None else codec.content_hash(change.value),
        failure=change.failure,
        raw=change.value is not None,
        resolution=EDITED,
        late=None,
    )
