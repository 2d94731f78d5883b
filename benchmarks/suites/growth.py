"""What does a journal weigh, and how often does it wait for the disk? Counted, not timed."""

from benchmarks.core import CoreOnPostgres, CoreOnSqlite
from benchmarks.interleave import new_run
from benchmarks.measure import Spread, do
from benchmarks.registry import Registry
from benchmarks.results import Figure
from benchmarks.sizes import Sizes
from benchmarks.subject import Subject


def measure(registry: Registry, sizes: Sizes) -> list[Figure]:
    """Bytes per step by the length of a run, and commits per step."""
    kept = [
        each for each in [*registry.floors_and_core(), *registry.workflows()] if each.database == "sqlite"
    ]
    agents = [each for each in registry.agents("create_agent") if each.database == "sqlite"]
    first, *larger = sizes.payloads
    enough = sizes.journals[-1] // 10
    weighed = [(subject, length, first) for subject in kept for length in sizes.journals]
    weighed += [(subject, length, first) for subject in agents for length in sizes.saver_journals]
    weighed += [(subject, sizes.journals[0], size) for subject in kept[:2] for size in larger]
    figures = [_weight(registry, subject, length, size, enough) for subject, length, size in weighed]
    return figures + _counted(registry, sizes)


def _weight(registry: Registry, subject: Subject, length: int, size: int, enough: int) -> Figure:
    with registry.prepared([subject]):
        empty = subject.stored()
        # Several short runs, so that pages which are half empty do not count.
        runs = [new_run() for _ in range(max(1, enough // length))]
        do(subject, runs, length, size)
        weight = (subject.stored() - empty) / (len(runs) * length)
    return Figure(
        what="bytes", subject=subject.name, unit="B", value=Spread.of([weight]), steps=length, payload=size
    )


def _counted(registry: Registry, sizes: Sizes) -> list[Figure]:
    figures: list[Figure] = []
    cores = [each for each in registry.floors_and_core() if isinstance(each, CoreOnSqlite | CoreOnPostgres)]
    for subject in cores:
        with registry.prepared([subject]), subject.open(new_run(), sizes.payloads[0]) as work:
            work(1)
            counters = subject.journal._database().counters
            synced, commits = counters.synced, counters.commits
            work(sizes.steps)
            steps = sizes.steps
            synced, commits = counters.synced - synced, counters.commits - commits
        if subject.database == "postgres":
            synced = commits  # the server syncs each
        for what, count in (("syncs", synced), ("commits", commits)):
            value = Spread.of([count / steps])
            figures.append(Figure(what=what, subject=subject.name, unit="", value=value, steps=steps))
    return figures
