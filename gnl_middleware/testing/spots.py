"""The crash points of a run, found from what its steps came to when nobody disturbed it."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from gnl_middleware.session.points import Point

from .cells import MatrixStep
from .crash_points import MID_STREAM, POINTS
from .jobs import Death, Event

ALL_POINTS: tuple[Point, ...] = (*POINTS[:3], MID_STREAM, *POINTS[3:])
"""Every point, in the order in which a streamed model call passes them."""


@dataclass(frozen=True, slots=True)
class Spot:
    """A crash point of the clean run.

    Attributes:
        attempt: Which try of the step comes to it.
        death: How a worker recognises it.
    """

    step: MatrixStep
    point: Point
    attempt: int
    death: Death

    @property
    def name(self) -> str:
        """Its part of a run id; also the name of a folder."""
        again = "" if self.attempt == 1 else f"-try{self.attempt}"
        return f"{self.step.number}-{self.point}{again}"


def spots_of(
    events: Sequence[Event],
    steps: Iterable[MatrixStep],
    *,
    points: Collection[Point] | None,
    chosen: Collection[str | int] | None,
) -> tuple[Spot, ...]:
    """The crash points in the order of the steps.

    Args:
        events: What the steps of the clean run came to.
        steps: The steps of the clean run.
        points: Only these points; None for all.
        chosen: Only the steps of these names and numbers (``model`` is every model step); None for all.
    """
    by_number = {step.number: step for step in steps}
    found = [
        spot
        for spot in _all(events, by_number)
        if (points is None or spot.point in points)
        and (chosen is None or not names_of(spot.step).isdisjoint(chosen))
    ]
    return tuple(
        sorted(found, key=lambda spot: (spot.step.number, spot.attempt, ALL_POINTS.index(spot.point)))
    )


def names_of(step: MatrixStep) -> set[str | int]:
    """What a step may be chosen by."""
    return {step.number, step.name, step.title}


def _all(events: Sequence[Event], steps: Mapping[int, MatrixStep]) -> Iterator[Spot]:
    begun: defaultdict[str, list[int]] = defaultdict(list)
    for event in events:
        if event.point == "after_intent":
            begun[event.name].append(event.number)
    reached, tries = Counter[tuple[Point, str]](), Counter[tuple[Point, int]]()
    for event in events:
        reached[event.point, event.name] += 1
        occurrence, number = reached[event.point, event.name], event.number
        if event.point == "before_intent" and occurrence <= len(begun[event.name]):
            # Before its intent a step has no number yet: of parallel calls, several see the same next one.
            number = begun[event.name][occurrence - 1]
        tries[event.point, number] += 1
        if (step := steps.get(number)) is not None:
            death = Death(event.point, event.name, occurrence)
            yield Spot(step, event.point, tries[event.point, number], death)
