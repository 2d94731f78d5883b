"""Measure neighbours in turn, in another order each round: what disturbs the machine for a while disturbs all of them."""

import itertools
import random
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from .measure import Sample, Spread, measured
from .results import Figure
from .subject import Subject

_Cell, _Result = TypeVar("_Cell"), TypeVar("_Result")
_run_ids = itertools.count(1)


@dataclass(frozen=True, slots=True, eq=False)
class Cell:
    """Something that is measured once in each round.

    Attributes:
        subject: What.
        runs: Runs at once.
        steps: Steps of each run.
        payload: Bytes that each tool returns.
        floor: The cell that it is compared with, or None.
    """

    subject: Subject
    runs: int
    steps: int
    payload: int
    floor: "Cell | None" = None


def interleaved(
    cells: Sequence[_Cell], rounds: int, measure: Callable[[_Cell], _Result]
) -> dict[_Cell, list[_Result]]:
    """Measure each cell once per round."""
    random_, found = random.Random(7), defaultdict(list)
    for _ in range(rounds):
        for cell in random_.sample(cells, len(cells)):
            found[cell].append(measure(cell))
    return found


def new_run() -> str:
    """A run id that nobody has used."""
    return f"run-{next(_run_ids)}"


def live(cell: Cell) -> Sample:
    """The cell's steps in new runs."""
    return measured(cell.subject, [new_run() for _ in range(cell.runs)], cell.steps, cell.payload)


def measure_live(cells: Sequence[Cell], rounds: int) -> list[Figure]:
    """What a step takes in each cell: in a run that is open, as a share of the whole run, and of the processor."""
    found = interleaved(cells, rounds, live)
    quantities: tuple[tuple[str, Callable[[Sample], float]], ...] = (
        ("step", lambda sample: sample.step),
        ("whole", lambda sample: sample.whole),
        ("processor", lambda sample: sample.processor),
    )
    return [_live_figure(found, cell, what, take) for cell in cells for what, take in quantities]


def _live_figure(
    found: dict[Cell, list[Sample]], cell: Cell, what: str, take: Callable[[Sample], float]
) -> Figure:
    values = [take(sample) for sample in found[cell]]
    floors = None if cell.floor is None else [take(sample) for sample in found[cell.floor]]
    return Figure(
        what=what,
        subject=cell.subject.name,
        unit="us",
        value=Spread.of(values),
        ratio=_ratio(values, floors),
        to=None if cell.floor is None else cell.floor.subject.name,
        runs=cell.runs,
        steps=cell.steps,
        payload=cell.payload,
    )


@dataclass(frozen=True, slots=True, eq=False)
class Probe:
    """Something else that is measured once in each round.

    Attributes:
        subject: As in ``Figure``.
        unit: As in ``Figure``.
        take: Measures it; gives what was measured by name, the whole first.
        floor: The probe whose whole all of it is compared with, or None.
        steps: As in ``Figure``.
        payload: As in ``Figure``.
    """

    subject: str
    unit: str
    take: Callable[[], dict[str, float]]
    floor: "Probe | None" = None
    steps: int = 0
    payload: int = 0


def measure_probes(probes: Sequence[Probe], rounds: int) -> list[Figure]:
    """What the probes measured, with their ratios."""
    found = interleaved(probes, rounds, lambda probe: probe.take())
    return [_probed(found, probe, what) for probe in probes for what in found[probe][0]]


def _probed(found: dict[Probe, list[dict[str, float]]], probe: Probe, what: str) -> Figure:
    values = [taken[what] for taken in found[probe]]
    floors = None if probe.floor is None else [next(iter(taken.values())) for taken in found[probe.floor]]
    return Figure(
        what=what,
        subject=probe.subject,
        unit=probe.unit,
        value=Spread.of(values),
        ratio=_ratio(values, floors),
        to=None if probe.floor is None else probe.floor.subject,
        steps=probe.steps,
        payload=probe.payload,
    )


def _ratio(values: Sequence[float], floors: Sequence[float] | None) -> Spread | None:
    """The ratios round by round: what disturbed a round disturbed both."""
    if floors is None:
        return None
    return Spread.of([value / floor for value, floor in zip(values, floors, strict=True)])
