"""How long does it take to come back to where a run stopped?"""

from collections.abc import Iterator, Sequence
from typing import Any

from benchmarks.core import CoreOnPostgres, CoreOnSqlite
from benchmarks.interleave import Probe, measure_probes
from benchmarks.measure import Sample, do, measured
from benchmarks.registry import FLOORS, Registry
from benchmarks.results import Figure
from benchmarks.sizes import Sizes
from benchmarks.subject import Subject


def measure(registry: Registry, sizes: Sizes) -> list[Figure]:
    """Runs of each length, read back."""
    figures = _journals(registry, sizes)
    for subjects, lengths in (
        (registry.agents("create_agent"), sizes.journals),
        (registry.sdk(), sizes.sdk_journals),
    ):
        replaying = [subject for subject in subjects if subject.resumes]
        for length in lengths:
            figures += _agents(registry, subjects[0], replaying, length, sizes)
    return figures


def _journals(registry: Registry, sizes: Sizes) -> list[Figure]:
    subjects, workflows = registry.floors_and_core(), registry.workflows()
    size, figures = sizes.payloads[0], list[Figure]()
    with registry.prepared([*subjects, *workflows]):
        for length in sizes.journals:
            for subject in [*subjects, *workflows]:
                do(subject, [_run(length)], length, size)
            floors = {
                subject.database: Probe(
                    "resume", subject.name, "ms", _back(subject, length, size), steps=length
                )
                for subject in subjects
                if subject.name in FLOORS.values()
            }
            others = [
                probe
                for subject in [*subjects, *workflows]
                if subject.name not in FLOORS.values()
                for probe in _probes(subject, length, size, floors[subject.database])
            ]
            figures += measure_probes([*floors.values(), *others], sizes.few_rounds)
    return figures


def _run(length: int) -> str:
    return f"recorded-{length}"


def _probes(subject: Any, length: int, size: int, floor: Probe) -> Iterator[Probe]:
    """All of a resume, and those parts of it that can be told apart."""
    if not isinstance(subject, CoreOnSqlite | CoreOnPostgres):
        yield Probe("resume", subject.name, "ms", _workflow_back(subject, length), floor, length)
        return
    yield Probe("resume", subject.name, "ms", _back(subject, length, size), floor, length)
    yield Probe("load", subject.name, "ms", _loaded(subject, length), floor, length)
    yield Probe("serve", subject.name, "ms", _back(subject, length, size, part="working"), floor, length)


def _back(subject: Subject, length: int, size: int, *, part: str = "") -> Any:
    """Milliseconds in which a recorded run is opened and all its steps are read back, or only the latter."""

    def take() -> float:
        sample = measured(subject, [_run(length)], length, size)
        return _milliseconds(sample, part)

    return take


def _milliseconds(sample: Sample, part: str) -> float:
    return (sample.working.wall if part else sample.opening.wall + sample.working.wall) * 1e3


def _loaded(subject: Any, length: int) -> Any:
    """Milliseconds until a recorded run is open: the lease, the one query, and what is checked of its rows."""
    return lambda: measured(subject, [_run(length)], 0, 1).opening.wall * 1e3


def _workflow_back(subject: Any, length: int) -> Any:
    def take() -> float:
        with subject.activated():
            return subject.resumed(_run(length), length) * 1e3

    return take


def _agents(
    registry: Registry, bare: Subject, subjects: Sequence[Subject], length: int, sizes: Sizes
) -> list[Figure]:
    """Replaying the framework's loop, against the same loop with a model that answers at once and nothing kept."""
    size = sizes.payloads[0]
    with registry.prepared([bare, *subjects]):
        for subject in subjects:
            do(subject, [_run(length)], length, size)
        floor = Probe("resume", bare.name, "ms", _back(bare, length, size), steps=length)
        probes = [
            Probe("resume", subject.name, "ms", _back(subject, length, size), floor, length)
            for subject in subjects
        ]
        return measure_probes([floor, *probes], sizes.few_rounds if length < 1000 else 1)
