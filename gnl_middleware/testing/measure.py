"""From what the workers of a run left behind to counts: taken from their own notes, checked against the journal.

Nothing is known of frameworks here. A model call is a step of kind ``model`` that came to ``before_body``; it was answered
if it came to ``after_outcome``, or if the journal holds its outcome after its worker's death.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from gnl_middleware.identity import inner_scope

from .cells import Blocked, MatrixStep, Settled
from .jobs import Event, Report, StepReport


@dataclass(frozen=True, slots=True)
class Worked:
    """What one worker left behind.

    Attributes:
        events: What the steps came to.
        before: The run's steps before its work, by number.
        after: The run's steps after its work, by number.
    """

    events: tuple[Event, ...]
    before: dict[int, StepReport]
    after: dict[int, StepReport]

    def ran(self, number: int) -> bool:
        """Whether the body of a step ran in this worker."""
        return any(event.number == number and event.point == "before_body" for event in self.events)

    def answered(self) -> Counter[int]:
        """How often each step got an outcome in this worker."""
        counted = Counter(event.number for event in self.events if event.point == "after_outcome")
        for number, step in self.after.items():
            earlier = self.before.get(number)
            done_here = step["status"] == "done" and (earlier is None or earlier["status"] != "done")
            if done_here and self.ran(number):
                # A death can come between the commit of an outcome and the note of it.
                counted[number] = max(counted[number], 1)
        return counted


def worked(all_events: Sequence[Sequence[Event]], reports: Sequence[Report]) -> list[Worked]:
    """The workers of a run in order: those that died, which reported nothing, then those that took over."""
    silent = len(all_events) - len(reports)
    known = [dict[int, StepReport]()] * silent + [_by_number(report["before"]) for report in reports]
    known.append(_by_number(reports[-1]["steps"]) if reports else {})
    return [
        Worked(tuple(events), before, after)
        for events, (before, after) in zip(all_events, pairwise(known), strict=True)
    ]


def _by_number(steps: Iterable[StepReport]) -> dict[int, StepReport]:
    return {step["number"]: step for step in steps}


def answered_conversations(workers: Iterable[Worked]) -> Counter[str]:
    """How often each conversation was answered by a model, all workers together."""
    counted: Counter[str] = Counter()
    for worker in workers:
        for number, times in worker.answered().items():
            step = worker.after.get(number)
            if step is not None and step["kind"] == "model":
                # Its key ends in which time this was that the same was asked.
                counted[step["key"].rpartition("/")[0]] += times
    return counted


def repeated_model_calls(clean: Counter[str], workers: Iterable[Worked], *, other_course: bool) -> int:
    """Model calls that had been answered and were made again.

    In the same words, or, where the run has nothing to do that the clean one had not, in any words: more answers than the
    clean run has were not needed.

    Args:
        clean: The clean run's answered conversations.
        workers: Those of the killed run.
        other_course: The agent learnt something that it does not learn in the clean run.
    """
    found = answered_conversations(workers)
    again = sum(max(0, times - max(1, clean[conversation])) for conversation, times in found.items())
    return again if other_course else max(again, found.total() - clean.total())


def settled_effects(workers: Sequence[Worked]) -> tuple[Settled, ...]:
    """How the side effects were settled that a death had interrupted."""
    found: list[Settled] = []
    for step in workers[-1].after.values():
        match step["resolution"]:
            case "recovered":
                found.append(Settled(step["name"], "recover", "done"))
            case "told":
                found.append(Settled(step["name"], "model", "told"))
            case "happened":
                found.append(Settled(step["name"], "person", "done"))
            case "failed":
                found.append(Settled(step["name"], "person", "failed"))
            case _:
                pass
    for worker in workers:
        for number, step in worker.before.items():
            if (step["label"], step["status"]) == ("never", "started") and worker.ran(number):
                # That a side effect without outcome may run again, somebody must have said.
                by = "person" if step["resolution"] == "not_done" else "recover"
                found.append(Settled(step["name"], by, "not_done"))
    return tuple(found)


def blocked_effects(steps: Iterable[StepReport]) -> tuple[Blocked, ...]:
    """The side effects that wait for a person."""
    return tuple(Blocked(step["name"], step["blocked"]) for step in steps if step["blocked"] is not None)


def repeatable(
    events: Iterable[Event], steps: Sequence[StepReport], clean: Iterable[MatrixStep]
) -> list[str]:
    """Names of the calls that began, have no outcome, and may run again by their label once nothing blocks the run.

    Args:
        events: What steps came to in all workers; the journal need not know of a call that may run again.
        steps: The steps in the journal; one that contains a blocked one began for its sake, and is left out.
        clean: The steps of the clean run, for their labels.
    """
    begun = dict[tuple[int, str], None]()
    for event in events:
        if event.point == "before_body":
            begun[event.number, event.name] = None
        elif event.point == "after_outcome":
            begun.pop((event.number, event.name), None)
    blocked = [step["scope"] for step in steps if step["blocked"] is not None]
    for step in steps:
        inside = any(scope.startswith(inner_scope(step["key"])) for scope in blocked)
        if inside or step["status"] != "started":
            begun.pop((step["number"], step["name"]), None)
    labels = {(step.name, step.label) for step in clean if step.kind == "tool"}
    return [name for _, name in begun if (name, "safe") in labels or (name, "keyed") in labels]
