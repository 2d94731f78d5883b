"""What a cell must hold to, and how to say what it broke: the tool, the crash point, the counts and the cure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

from .cells import Cell, Clean

ProblemKind = Literal["doubled", "lost", "asked_again", "other_reply", "failed", "missed"]

_VERDICTS = (("person", "decided"), ("model", "told"), ("recover", "recovered"))
_LISTED = 4
_TOLD = 8
_IDEMPOTENCY = "give the service current_step().idempotency_key and label it keyed"
_CURES = {
    "safe": (
        "It is labelled safe, so a call that a crash interrupted simply runs again. Relabel it never; add recover= to that "
        f"label if something can be asked whether it happened; or {_IDEMPOTENCY}."
    ),
    "keyed": (
        "It is labelled keyed, so it runs again with the same idempotency key, and whoever got the key did not recognise it. "
        "Pass current_step().idempotency_key on, or relabel it never, with recover= if something can be asked."
    ),
    "never": (
        "It is labelled never, so the journal did not repeat it by itself: recover= (or a person) said NotDone() although it "
        "had happened, or the body does it more than once. Let recover= look for the idempotency key; NotDone() means that it "
        f"has not happened and can no longer happen. Or {_IDEMPOTENCY}."
    ),
    None: (
        "No step has this name, so the effect is not journalled under it. Let the agent do it in a tool, or in a function with "
        f"@journaled(replay=never); add recover= if something can be asked, or {_IDEMPOTENCY}. Or let effects() count by tool name."
    ),
}


@dataclass(frozen=True, slots=True)
class Problem:
    """A promise that a cell broke.

    Attributes:
        kind: ``doubled`` or ``lost`` (an effect), ``asked_again`` (a model), ``other_reply``, ``failed`` or ``missed``.
        cell: The cell.
        tool: For ``doubled`` and ``lost``, the tool.
        found: What was counted; None where nothing was.
        expected: What the clean run has instead.
        text: What happened, with the counts.
        cure: What to do about it.
    """

    kind: ProblemKind
    cell: Cell
    tool: str | None
    found: int | None
    expected: int | None
    text: str
    cure: str


def problems_of(clean: Clean, cell: Cell) -> tuple[Problem, ...]:
    """Every promise that a cell broke; none if it is safe. A job that waits for a person is safe."""
    if cell.ending == "missed":
        return (_missed(cell),)
    found = [*_counted(clean, cell), *_asked_again(cell)]
    if cell.ending == "failed":
        found.append(_failed(cell))
    elif cell.reply_equal is False and not cell.took_another_course:
        found.append(_other_reply(cell))
    return tuple(found)


def _counted(clean: Clean, cell: Cell) -> Iterator[Problem]:
    counts = cell.effects or {}
    failed = {settled.tool for settled in cell.settled if settled.answer == "failed"}
    for tool in sorted({*clean.effects, *counts}):
        found, expected = counts.get(tool, 0), clean.effects.get(tool, 0)
        if found > expected:
            text = f"{tool} happened {counted(found, 'time')} instead of {expected}"
            yield Problem("doubled", cell, tool, found, expected, text, _CURES[_label(clean, tool)])
        elif found < expected and cell.ending == "finished" and tool not in failed:
            text = f"{tool} happened {counted(found, 'time')} instead of {expected}, and the job ended all the same"
            yield Problem("lost", cell, tool, found, expected, text, _cure_of_loss(cell, tool))


def _label(clean: Clean, tool: str) -> str | None:
    """The label of a tool; of several, the one that permits most."""
    labels = {step.label for step in clean.steps if step.kind == "tool" and step.name == tool}
    return next((label for label in ("safe", "keyed", "never") if label in labels), None)


def _cure_of_loss(cell: Cell, tool: str) -> str:
    by = {settled.by for settled in cell.settled if settled.tool == tool}
    if "model" in by:
        return (
            "The model was told that it may have happened, and did not make up for it. Say in its prompt that it must look "
            "first, check that with interrupted_note(), or let the run stop: on_interrupted='block'."
        )
    if by:
        return "recover= (or a person) said Done() although it had not happened: return Done only for what was found."
    return (
        "Its step is recorded as done, so its effect was still on its way when the worker died. Let the body return only when "
        "the effect is certain, not when it is queued."
    )


def _asked_again(cell: Cell) -> Iterator[Problem]:
    if count := cell.model_calls_repeated:
        text = f"{counted(count, 'model call')} that had been answered {'was' if count == 1 else 'were'} made again"
        cure = (
            "What the model is asked changes between attempts, so its record does not fit. Take times and random ids from "
            "run.now() and run.uuid4(), and compare the attempts with `gnl show`."
        )
        yield Problem("asked_again", cell, None, count, 0, text, cure)


def _failed(cell: Cell) -> Problem:
    text = f"the job cannot be finished: {_first_line(cell.error)}"
    cure = "Run it by hand with GNL_CRASH_AT set to this crash point, then again without, and read the error."
    return Problem("failed", cell, None, None, None, text, cure)


def _other_reply(cell: Cell) -> Problem:
    text, settled = (
        "the reply is not the clean run's",
        ", ".join(sorted({item.tool for item in cell.settled})),
    )
    cure = (
        "The model or a tool answers differently to the same question, or run() returns what changes by itself. Let the "
        "models of the test answer from their messages, and return what must be equal, such as the text of the last message."
    )
    if settled:
        text = f"{text}, after {settled} was settled"
        cure = "Done() must give what the tool would have returned: compare recover= (or resolve=) with the tool's own value."
    return Problem("other_reply", cell, None, None, None, text, cure)


def _missed(cell: Cell) -> Problem:
    why = f" ({_first_line(cell.error)})" if cell.error else ""
    cure = (
        "The run took another course than the clean one, so this crash was not tried. Let the models of the test answer from "
        "their messages, and let build() make everything anew."
    )
    return Problem("missed", cell, None, None, None, f"no worker came to this crash point{why}", cure)


def message(problems: Sequence[Problem], *, crash_points: int) -> str:
    """What ``assert_safe`` says: each problem once, with the crash points at which it shows."""
    broken = len({id(problem.cell) for problem in problems})
    lines = [f"The agent is not safe at {broken} of {counted(crash_points, 'crash point')}."]
    for group in grouped(problems):
        first = group[0]
        lines += ["", f"{first.text}, when the worker died at {listed(group)}.", f"  {first.cure}"]
        if first.kind == "failed" and first.cell.error:
            lines += [f"  | {line}" for line in first.cell.error.splitlines()[:_TOLD]]
    return "\n".join(lines)


def _sameness(problem: Problem) -> tuple[str, str | None, str, str]:
    return problem.kind, problem.tool or "", problem.text, problem.cure


def listed(problems: Sequence[Problem]) -> str:
    """The first crash points of the problems, with the names of their steps."""
    named = [f"{problem.cell} ({problem.cell.step.title})" for problem in problems[:_LISTED]]
    more = f" and {len(problems) - _LISTED} more" if len(problems) > _LISTED else ""
    return ", ".join(named) + more


def counted(number: int, noun: str) -> str:
    """A number of things, as people say it."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _first_line(text: str | None) -> str:
    return (text or "no reason given").partition("\n")[0]


def judgement(clean: Clean, cells: Sequence[Cell]) -> str:
    """The whole matrix in a phrase: ``safe at 30 crash points``, ``not safe at 2 of 30 crash points``."""
    broken = sum(bool(problems_of(clean, cell)) for cell in cells)
    tried = counted(len(cells), "crash point")
    return f"not safe at {broken} of {tried}" if broken else f"safe at {tried}"


def undisturbed(clean: Clean) -> str:
    """The clean run in a line."""
    effects = ", ".join(f"{tool} {count}" for tool, count in sorted(clean.effects.items())) or "none"
    return (
        f"Undisturbed: {counted(clean.model_calls, 'model call')}; effects: {effects}; reply: {clean.reply}"
    )


def verdict(clean: Clean, cell: Cell) -> str:
    """A cell in a word: what it broke first, else how its job got past the crash.

    ``doubled``, ``lost``, ``asked again``, ``other reply``, ``failed`` or ``missed``; else ``blocked``, ``recovered`` (``recover=``
    was asked), ``decided`` (by a person), ``told`` (the model was) or ``resumed``.
    """
    if found := problems_of(clean, cell):
        return found[0].kind.replace("_", " ")
    if cell.ending == "blocked":
        return "blocked"
    by = {settled.by for settled in cell.settled}
    return next((word for who, word in _VERDICTS if who in by), "resumed")


def grouped(problems: Sequence[Problem]) -> list[list[Problem]]:
    """The problems, those together that differ in nothing but the crash point."""
    return [list(group) for _, group in groupby(sorted(problems, key=_sameness), key=_sameness)]
