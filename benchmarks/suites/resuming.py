"""How long does it take to come back to where a run stopped?"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.core import CoreOnPostgres, CoreOnSqlite, decode_rows
from benchmarks.interleave import Probe, measure_probes
from benchmarks.measure import Stopwatch, do, measured
from benchmarks.registry import FLOORS, ROWS, Registry
from benchmarks.results import Figure
from benchmarks.sizes import Sizes
from benchmarks.subject import Subject

CORES = (CoreOnSqlite, CoreOnPostgres)
_VERY_LONG = 1000
"""Steps from which an agent's run is replayed once only."""


def measure(registry: Registry, sizes: Sizes) -> list[Figure]:
    """Runs of each length, read back."""
    figures = _journals(registry, sizes)
    for framework, subjects, lengths in (
        ("create_agent", registry.agents("create_agent"), sizes.journals),
        ("SDK", registry.sdk(), sizes.sdk_journals),
    ):
        resuming = [subject for subject in subjects if subject.resumes] + registry.handed_over(framework)
        for length in lengths:
            # It is the loop that takes the time there, not the database.
            some = [each for each in resuming if length < _VERY_LONG or each.database == "sqlite"]
            figures += _agents(registry, subjects[0], some, length, sizes)
    return figures


def _journals(registry: Registry, sizes: Sizes) -> list[Figure]:
    subjects, workflows = registry.floors_and_core(), registry.workflows()
    size, figures = sizes.payloads[0], list[Figure]()
    with registry.prepared([*subjects, *workflows]):
        for length in sizes.journals:
            for subject in [*subjects, *workflows]:
                do(subject, [_run(length)], length, size)
            floors = {
                subject.database: Probe(subject.name, "ms", _back(subject, length, size), steps=length)
                for subject in subjects
                if subject.name in FLOORS.values()
            }
            others = [
                Probe(subject.name, "ms", back(subject, length, size), floors[subject.database], length)
                for back, some in ((_back, subjects), (_workflow_back, workflows))
                for subject in some
                if subject.name not in FLOORS.values()
            ]
            rows = [
                Probe(ROWS, "ms", _decoded(subject.path, length), steps=length)
                for subject in subjects
                if isinstance(subject, CoreOnSqlite)
            ]
            figures += measure_probes([*floors.values(), *rows, *others], sizes.few_rounds)
    return figures


def _run(length: int) -> str:
    return f"recorded-{length}"


def _back(subject: Subject, length: int, size: int) -> Callable[[], dict[str, float]]:
    """Milliseconds in which a recorded run is opened and all its steps are read back."""

    def take() -> dict[str, float]:
        sample = measured(subject, [_run(length)], length, size)
        opening, working = sample.opening.wall * 1e3, sample.working.wall * 1e3
        whole = {"resume": opening + working}
        return whole | ({"load": opening, "serve": working} if isinstance(subject, CORES) else {})

    return take


def _decoded(path: Path, length: int) -> Callable[[], dict[str, float]]:
    def take() -> dict[str, float]:
        watch = Stopwatch()
        decode_rows(path, _run(length))
        return {"resume": watch.lap().wall * 1e3}

    return take


def _workflow_back(subject: Any, length: int, _size: int) -> Callable[[], dict[str, float]]:
    def take() -> dict[str, float]:
        with subject.activated():
            return {"resume": subject.resumed(_run(length), length) * 1e3}

    return take


def _agents(
    registry: Registry, bare: Subject, subjects: Sequence[Subject], length: int, sizes: Sizes
) -> list[Figure]:
    """Replaying the framework's loop, against the same loop with a model that answers at once and nothing kept."""
    size = sizes.payloads[0]
    with registry.prepared([bare, *subjects]):
        for subject in subjects:
            do(subject, [_run(length)], length, size)
        floor = Probe(bare.name, "ms", _back(bare, length, size), steps=length)
        probes = [
            Probe(subject.name, "ms", _back(subject, length, size), floor, length) for subject in subjects
        ]
        return measure_probes([floor, *probes], sizes.few_rounds if length < _VERY_LONG else 1)
