"""The run page as values: what ran in which attempt, what came back from the journal, and what waits for a person.

All attempts share one axis of time, from which the pauses between them are cut out: what an attempt read back stands
where it ran, so the eye finds it again.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from gnl_middleware.model import RunRecord, Step
from gnl_middleware.records import Attempt

from .plain import History, Place, WaitingStep, summary, tree_of, visible, waiting_steps
from .tree import tree, walked
from .words import duration

State = Literal["ran", "failed", "blocked", "open"]
_LONGEST = 20_000
_ATTEMPTS_OPEN = 8
_PERSON = ("happened", "failed", "not_done")
_WIDTH = 1000.0
_NARROWEST = 7.0
_AFTER_A_DIFFERENCE = ("Likely causes", "Compare with")


@dataclass(frozen=True, slots=True)
class Bar:
    """A place on the axis of time, of 1000 units.

    Attributes:
        x: Where it begins.
        width: How long it is, and never so short that it could not be seen.
    """

    x: float
    width: float


@dataclass(frozen=True, slots=True)
class Line:
    """A row of an attempt.

    Attributes:
        step: The step; None for the name of a branch.
        label: The name of the step or branch.
        depth: How far it is indented: what happened inside another step stands under it.
        state: How it stands.
        read_back: It came back from the journal in this attempt; else it ran here.
        bar: Where on the axis of time; None for a branch.
        took: How long it took, or empty where nobody knows.
        told: What it gave, on one line.
        arguments: What it was called with, as text; cut where it is very long.
        value: What it gave, as text; cut where it is very long.
        notes: What else there is to say of it.
    """

    step: Step | None
    label: str
    depth: int
    state: State = "ran"
    read_back: bool = False
    bar: Bar | None = None
    took: str = ""
    told: str = ""
    arguments: str = ""
    value: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Section:
    """An attempt with its rows.

    Attributes:
        attempt: The attempt.
        read_back: Rows of what came back from the journal.
        ran: Rows of what ran in it.
        folded: There is so much read back that it is shown only on demand.
        error: Its error, line by line, each with ``+``, ``-`` or nothing: a divergence reads as a difference.
    """

    attempt: Attempt
    read_back: tuple[Line, ...]
    ran: tuple[Line, ...]
    folded: bool
    error: tuple[tuple[str, str], ...]

    @property
    def kept(self) -> str:
        """How many steps were in the journal already; what is inside a step that came back is not read by itself."""
        number = sum(line.step is not None for line in self.read_back)
        return f"{number} step" + ("" if number == 1 else "s")


@dataclass(frozen=True, slots=True)
class Page:
    """A run as its page shows it.

    Attributes:
        record: The run.
        sections: Its attempts, one under the other.
        waiting: Calls that may have happened, with the commands that decide them.
        history: Attempts, decisions and removals.
        metadata: Names and values that the caller stored with it, as text.
        steps: How many steps it has.
    """

    record: RunRecord
    sections: tuple[Section, ...]
    waiting: tuple[WaitingStep, ...]
    history: History
    metadata: tuple[tuple[str, str], ...]
    steps: int

    @property
    def read_back(self) -> int:
        """How often a step came back from the journal instead of running again."""
        return sum(attempt.steps_read_back or 0 for attempt in self.history.attempts)

    @property
    def seconds_not_spent(self) -> str:
        """Time that was not spent again, over all attempts."""
        return duration(sum(attempt.seconds_not_spent or 0 for attempt in self.history.attempts))

    @property
    def tokens_not_spent(self) -> int:
        """Tokens that were not paid for again, over all attempts."""
        return sum(attempt.tokens_not_spent or 0 for attempt in self.history.attempts)


def page_of(record: RunRecord, steps: Sequence[Step], history: History, place: Place) -> Page:
    """What the page of a run shows.

    Args:
        record: The run.
        steps: Its steps.
        history: Its attempts, decisions and removals.
        place: How commands to copy name the journal.
    """
    bars = _bars(steps)
    return Page(
        record=record,
        sections=tuple(_section(attempt, steps, bars) for attempt in history.attempts),
        waiting=tuple(waiting_steps(record, steps, place)),
        history=history,
        metadata=tuple(
            (visible(str(name)), text(value, pretty=False)) for name, value in record.metadata.items()
        ),
        steps=len(steps),
    )


def text(value: Any, *, pretty: bool = True) -> str:
    """A journalled value as text, safe to show: no character in it turns the reading direction or hides."""
    written = json.dumps(tree_of(value), ensure_ascii=False, indent=2 if pretty else None)
    shown = "\n".join(visible(line) for line in written.split("\n"))
    return shown if len(shown) <= _LONGEST else f"{shown[:_LONGEST]}\n… cut; gnl show --json has all of it"


def _bars(steps: Sequence[Step]) -> dict[str, Bar]:
    """Where each step stands on the axis of all attempts."""
    begins: dict[int, float] = {}
    ends: dict[int, float] = {}
    for step in steps:
        begins[step.attempt] = min(begins.get(step.attempt, step.started_at), step.started_at)
        ends[step.attempt] = max(ends.get(step.attempt, 0.0), _end(step))
    shifts: dict[int, float] = {}
    total = 0.0
    for attempt in sorted(begins):
        shifts[attempt] = total - begins[attempt]
        total += max(0.0, ends[attempt] - begins[attempt])
    scale = (_WIDTH - _NARROWEST) / total if total else 0.0
    return {
        step.key: Bar(
            x=round((step.started_at + shifts[step.attempt]) * scale, 1),
            width=round(_NARROWEST + max(0.0, _end(step) - step.started_at) * scale, 1),
        )
        for step in steps
    }


def _end(step: Step) -> float:
    # Who decides a call later ends it later: that time says nothing about the call.
    decided = step.resolution in _PERSON
    return step.started_at if step.finished_at is None or decided else step.finished_at


def _section(attempt: Attempt, steps: Sequence[Step], bars: dict[str, Bar]) -> Section:
    here = [step for step in steps if step.attempt <= attempt.number]
    ran = {step.key for step in here if step.attempt == attempt.number}
    lines = [_line(branch.step, branch.label, depth, bars, ran) for depth, branch in walked(tree(here))]
    read_back = tuple(_with_branches(lines, read_back=True))
    return Section(
        attempt=attempt,
        read_back=read_back,
        ran=tuple(_with_branches(lines, read_back=False)),
        folded=len(read_back) > _ATTEMPTS_OPEN,
        error=tuple(_marked((attempt.error or "").rstrip(": "))),
    )


def _with_branches(lines: Sequence[Line], *, read_back: bool) -> Iterator[Line]:
    """The rows of one kind, with the names of the branches that they stand under."""
    names: list[Line] = []
    for line in lines:
        names = [name for name in names if name.depth < line.depth]
        if line.step is None:
            names.append(line)
        elif line.read_back is read_back:
            yield from names
            names = []
            yield line


def _line(step: Step | None, label: str, depth: int, bars: dict[str, Bar], ran: set[str]) -> Line:
    if step is None:
        return Line(None, visible(label), depth)
    read_back = step.key not in ran
    known = step.finished_at is not None and step.resolution not in _PERSON
    return Line(
        step=step,
        label=visible(step.name),
        depth=depth,
        state=_state(step),
        read_back=read_back,
        bar=bars[step.key],
        took=duration(_end(step) - step.started_at) if known else "",
        told=_told(step),
        arguments="" if read_back else text(step.arguments),
        value="" if read_back or step.status != "done" else text(step.value),
        notes=tuple(_notes(step)),
    )


def _state(step: Step) -> State:
    if step.blocked is not None:
        return "blocked"
    if step.status == "failed" or step.error is not None:
        return "failed"
    return "ran" if step.status == "done" else "open"


def _told(step: Step) -> str:
    told = (
        visible(step.error)
        if step.error is not None
        else summary(step.value)
        if step.status == "done"
        else ""
    )
    return told[:200]


def _notes(step: Step) -> Iterator[str]:
    if step.blocked is not None:
        yield f"blocked: {visible(step.blocked)}"
    if step.attempts > 1:
        yield f"tried {step.attempts} times"
    if step.drifted:
        yield "drifted: a later attempt asked something slightly different and got this record"
    if step.resolution is not None:
        yield f"decided: {visible(step.resolution)}"
    if step.tokens:
        yield f"{step.tokens:,} tokens"


def _marked(error: str) -> Iterator[tuple[str, str]]:
    """The lines of an error; in the difference that a divergence holds, with the sign that each begins with."""
    inside = False
    for line in error.split("\n") if error else ():
        inside = (inside or line.startswith("+++ ")) and not line.startswith(_AFTER_A_DIFFERENCE)
        changed = inside and line[:1] in ("+", "-") and not line.startswith("+++ ")
        yield line[:1] if changed else "", visible(line)
