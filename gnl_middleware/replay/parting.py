"""Where two runs part: their steps side by side, each in its place, whatever order parallel calls happened to come in.

What is made up anew in each run is no difference: run ids, keys, times, the call ids of providers, and what ``run.now()``,
``run.uuid4()`` and ``run.random()`` gave.
"""

from collections import defaultdict
from collections.abc import Container, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from gnl_middleware.model import EDITED, Apart, StoredStep

from .difference import difference
from .divergence import conversation
from .payloads import outlined
from .record import Record

_NEW_EACH_TIME = frozenset({"now", "uuid4", "random"})
_ENVELOPE = frozenset(
    {
        *("id", "response_metadata", "usage_metadata", "usage", "raw_usage", "response_id", "request_id"),
        *("llm_output", "generation_info", "created_at", "notes", "sequence_number"),
    }
)
"""What providers and frameworks put around what a model said; nobody looks for it in a difference."""

_Slot = tuple[int, int]
"""Where in its place a step stands: for a call of a reply, its position in that reply, whichever of them were called."""
_Label = tuple[int, str]
"""A branch inside of a place: the round of a graph in which a node is executed (-1 for a named branch), and its name."""
_FIRST: _Slot = (-1, -1)


@dataclass(frozen=True, slots=True)
class Parting:
    """The first difference of two runs.

    Attributes:
        equal_steps: How many steps before it are equal.
        what: What differs; None where nothing does.
        key_a: The step of the first run, or None.
        key_b: The step of the second one, or None.
        difference: What differs, readable.
    """

    equal_steps: int
    what: Apart | None = None
    key_a: str | None = None
    key_b: str | None = None
    difference: str = ""


def parted(a: Sequence[StoredStep], b: Sequence[StoredStep]) -> Parting:
    """Where two runs part; their steps are given in the order in which they first began.

    Raises:
        JournalCorruptError: A payload cannot be read.
    """
    # A fork that was cut inside of a step holds what happened there, but not yet the step.
    keys = {step.key for step in (*a, *b) if step.kind != "model"}
    comparison = _Comparison(_Side.of(a, keys), _Side.of(b, keys))
    comparison.compare(comparison.a.places[""], comparison.b.places[""])
    return comparison.found or Parting(comparison.equal)


@dataclass(slots=True)
class _Place:
    """Where steps happen: a run, a step that runs an agent of its own, a named branch, or a node in one round of its graph.

    Attributes:
        steps: What happens there, in the order in which it began.
        branches: The places inside.
        slots: The steps, by where they stand.
        first: The number of the first step there.
    """

    steps: list[StoredStep] = field(default_factory=list[StoredStep])
    branches: dict[_Label, "_Place"] = field(default_factory=dict[_Label, "_Place"])
    slots: dict[_Slot, StoredStep] = field(default_factory=dict[_Slot, StoredStep])
    first: int = 0

    def arrange(self) -> None:
        """Put the steps where they stand, whichever of the parallel ones was faster."""
        groups: dict[str, int] = {}
        for step in self.steps:
            # The calls of a reply stand behind it; where another node gave it, behind each other.
            name = step.key if step.reply is None else step.reply
            group = groups.setdefault(name, len(groups))
            slot = (group, -1 if step.reply is None else step.position or 0)
            while slot in self.slots:
                slot = (group, slot[1] + 1)
            self.slots[slot] = step
        # A person who changes a graph's state shifts its rounds: what counts is their order.
        rounds = sorted({number for number, _ in self.branches if number >= 0})
        ranks = {-1: -1} | {number: rank for rank, number in enumerate(rounds)}
        self.branches = {(ranks[number], name): place for (number, name), place in self.branches.items()}

    def order(self) -> dict[tuple[_Slot, _Label | None], tuple[_Slot, int, _Label]]:
        """Steps and branches, each with what they are sorted by: a branch stands behind the last step that began before it."""
        found: dict[tuple[_Slot, _Label | None], tuple[_Slot, int, _Label]] = {
            (slot, None): (slot, 0, (0, "")) for slot in self.slots
        }
        for label, place in self.branches.items():
            before = (slot for slot, step in self.slots.items() if step.number < place.first)
            found[_FIRST, label] = max(before, default=_FIRST), 1, label
        return found


@dataclass(frozen=True, slots=True)
class _Side:
    """One of the two runs.

    Attributes:
        places: By the key of the step inside which they are; the run itself is the empty one.
        call_ids: What its providers called the calls.
    """

    record: Record
    places: dict[str, _Place]
    call_ids: frozenset[str]

    @classmethod
    def of(cls, steps: Sequence[StoredStep], keys: Container[str]) -> "_Side":
        begun = [step for step in steps if step.status != "withdrawn"]
        places: defaultdict[str, _Place] = defaultdict(_Place, {"": _Place()})
        arranged: list[_Place] = [places[""]]
        for step in begun:
            around, labels = _path(step, keys)
            place = places[around]
            for label in labels:
                place = place.branches.setdefault(label, _Place(first=step.number))
                arranged.append(place)
            place.steps.append(step)
        for place in {id(each): each for each in (*places.values(), *arranged)}.values():
            place.arrange()
        ids = {call.call_id for step in begun for call in step.calls} | {step.call_id or "" for step in begun}
        return cls(Record("", begun), dict(places), frozenset(ids - {""}))

    def asked(self, step: StoredStep) -> Any:
        """What a step was asked: the whole conversation of a model step, else the arguments."""
        if step.kind == "model":
            return conversation(self.record, step, outlined)
        return outlined(step, step.arguments)

    def outcome(self, step: StoredStep) -> Any:
        """What a step gave."""
        if step.failure is not None:
            return {"error": f"{step.failure.type_name}: {step.failure.text}"}
        return {"no outcome": step.status} if step.value is None else outlined(step, step.value)

    def without_ids(self, tree: Any) -> Any:
        """Plain data without the call ids that providers made up."""
        if isinstance(tree, str):
            return "(call id)" if tree in self.call_ids else tree
        if isinstance(tree, list | tuple):
            return [self.without_ids(item) for item in cast("list[Any]", tree)]
        if isinstance(tree, dict):
            items = cast("dict[Any, Any]", tree).items()
            return {name: self.without_ids(item) for name, item in items}
        return tree


def _path(step: StoredStep, keys: Container[str]) -> tuple[str, list[_Label]]:
    """The step around a step, and the branches and nodes between the two."""
    ends = (end for end in range(len(step.scope) - 1, 0, -1) if step.scope[end] == "/")
    around = next((step.scope[:end] for end in ends if step.scope[:end] in keys), "")
    parts = step.scope[len(around) + bool(around) :].split("/")[:-1]
    rounds = iter(step.rounds)
    nodes = [(next(rounds, 0) if part.startswith(("node:", "call:")) else -1, part) for part in parts]
    return around, nodes


class _Comparison:
    """Two runs, compared until they part.

    Attributes:
        equal: How many steps were equal.
        found: Where they part, once that is known.
    """

    def __init__(self, a: _Side, b: _Side) -> None:
        self.a, self.b = a, b
        self.equal = 0
        self.found: Parting | None = None

    def compare(self, a: _Place, b: _Place) -> None:
        """Compare what happens in two places, in order."""
        order = b.order() | a.order()
        for slot, label in sorted(order, key=order.__getitem__):
            if self.found is not None:
                return
            if label is None:
                self._compare_steps(a.slots.get(slot), b.slots.get(slot))
            else:
                self.compare(a.branches.get(label, _Place()), b.branches.get(label, _Place()))

    def _compare_steps(self, a: StoredStep | None, b: StoredStep | None) -> None:
        if a is None or b is None:
            self._part(a, b, "only_in_a" if b is None else "only_in_b")
            return
        self._compare_asked(a, b)
        if self.found is None:
            # What happens inside of a step comes before its outcome.
            self.compare(self.a.places.get(a.key, _Place()), self.b.places.get(b.key, _Place()))
        if self.found is None:
            self._compare_outcomes(a, b)
        self.equal += self.found is None

    def _compare_asked(self, a: StoredStep, b: StoredStep) -> None:
        if (a.kind, a.name) != (b.kind, b.name):
            self._part(a, b, "name", f"{a.kind} {a.name}", f"{b.kind} {b.name}")
        elif a.kind != "value" and a.fingerprint != b.fingerprint:
            what = "messages" if a.kind == "model" else "arguments"
            self._part_unless_equal(a, b, what, self.a.asked(a), self.b.asked(b))
        if self.found is None and not _same_setup(a, b):
            self._part(a, b, "setup", list(a.setups), list(b.setups))

    def _compare_outcomes(self, a: StoredStep, b: StoredStep) -> None:
        if a.kind == "value" and a.name in _NEW_EACH_TIME and EDITED not in (a.resolution, b.resolution):
            return
        outcomes = self.a.outcome(a), self.b.outcome(b)
        if a.kind != "model" or a.status != b.status or not (a.reply_digest and b.reply_digest):
            self._part_unless_equal(a, b, "outcome", *outcomes)
        elif a.reply_digest != b.reply_digest and not _same_calls(a, b):
            said = self.a.without_ids(_said(outcomes[0])), self.b.without_ids(_said(outcomes[1]))
            self._part(a, b, "reply", *said)

    def _part_unless_equal(self, a: StoredStep, b: StoredStep, what: Apart, of_a: Any, of_b: Any) -> None:
        if of_a == of_b:
            return
        of_a, of_b = self.a.without_ids(of_a), self.b.without_ids(of_b)
        if of_a != of_b:
            self._part(a, b, what, of_a, of_b)

    def _part(
        self, a: StoredStep | None, b: StoredStep | None, what: Apart, of_a: Any = None, of_b: Any = None
    ) -> None:
        keys = (None if a is None else a.key), (None if b is None else b.key)
        told = "" if of_a is None and of_b is None else difference(of_a, of_b, what, names=("a", "b"))
        self.found = Parting(self.equal, what, *keys, told)


def _same_setup(a: StoredStep, b: StoredStep) -> bool:
    """Whether some model and settings were tried for both; who only watches a call cannot know them."""
    known = set(a.setups) & set(b.setups)
    return bool(known) or "" in (*a.setups, *b.setups) or not (a.setups and b.setups)


def _same_calls(a: StoredStep, b: StoredStep) -> bool:
    """Whether two replies differ in the ids of their calls only; what else they say comes up in the next request."""
    ids = [[call.call_id for call in step.calls] for step in (a, b)]
    calls = [[(call.name, call.arguments_digest) for call in step.calls] for step in (a, b)]
    return ids[0] != ids[1] and calls[0] == calls[1]


def _said(tree: Any) -> Any:
    """A reply without its envelope."""
    if isinstance(tree, list | tuple):
        return [_said(item) for item in cast("list[Any]", tree)]
    if isinstance(tree, dict):
        items = cast("dict[Any, Any]", tree).items()
        return {name: _said(item) for name, item in items if name not in _ENVELOPE}
    return tree
