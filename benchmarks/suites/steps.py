"""What does a step take: alone, with others, with larger results?"""

from collections.abc import Sequence

from benchmarks.interleave import Cell, measure_live
from benchmarks.registry import FLOORS, Registry
from benchmarks.results import Figure
from benchmarks.sizes import Sizes
from benchmarks.subject import Subject


def measure(registry: Registry, sizes: Sizes) -> list[Figure]:
    """Steps of this library, of the floors, and of DBOS."""
    subjects = [*registry.floors_and_core(), *registry.workflows()]
    figures: list[Figure] = []
    with registry.prepared(subjects):
        for runs in sizes.runs_at_once:
            rounds = sizes.rounds if runs == 1 else sizes.few_rounds
            steps = sizes.steps if runs == 1 else sizes.steps_at_once
            cells = _cells(subjects, sizes, runs=runs, steps=steps, payload=sizes.payloads[0])
            figures += measure_live(cells, rounds)
        for payload in sizes.payloads[1:]:
            cells = _cells(subjects, sizes, runs=1, steps=sizes.steps_at_once, payload=payload)
            figures += measure_live(cells, sizes.few_rounds)
    # The floors alone stand beside each number of runs; once is enough to show.
    kept: dict[tuple[object, ...], Figure] = {}
    for figure in figures:
        kept.setdefault(_place(figure), figure)
    return list(kept.values())


def _place(figure: Figure) -> tuple[object, ...]:
    return figure.what, figure.subject, figure.runs, figure.payload


def _cells(subjects: Sequence[Subject], sizes: Sizes, *, runs: int, steps: int, payload: int) -> list[Cell]:
    """The subjects, and beside them the floors with one run alone, which all of them are compared with."""
    alone = {
        subject.database: Cell(subject, 1, sizes.steps, payload)
        for subject in subjects
        if subject.name in FLOORS.values()
    }
    others = [
        Cell(subject, runs, steps, payload, alone[subject.database])
        for subject in subjects
        if runs > 1 or subject.name not in FLOORS.values()
    ]
    return [*alone.values(), *others]
