"""Does it stay as it is with very many runs, and with very long ones?"""

import contextlib
import json
import sqlite3
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

from benchmarks.core import CoreOnSqlite
from benchmarks.interleave import Probe, measure_probes, new_run
from benchmarks.measure import Sample, Spread, Stopwatch, do
from benchmarks.registry import Registry
from benchmarks.results import Figure
from benchmarks.sizes import Sizes
from benchmarks.text import payload
from gnl_middleware import journaled, never

_OPEN_STEPS = 100
"""Steps of the runs together, at least, whose memory is measured together."""


def measure(registry: Registry, sizes: Sizes) -> list[Figure]:
    """Runs at once, runs in a list, steps in a run, and what an open run holds in memory."""
    return [
        *_at_once(registry, sizes),
        *_listed(registry, sizes),
        *_long(registry, sizes),
        *[_held(registry, length, sizes.payloads[0]) for length in sizes.journals],
    ]


def _at_once(registry: Registry, sizes: Sizes) -> list[Figure]:
    """In a process of its own, whose memory nothing else has used."""
    path, runs, steps = registry.place.file(), sizes.scale_runs, 5
    command = [
        sys.executable,
        "-m",
        "benchmarks.suites.many_runs",
        path,
        str(runs),
        str(steps),
        str(sizes.payloads[0]),
    ]
    found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return [
        Figure(
            what=f"at once: {what}",
            subject=CoreOnSqlite.name,
            unit=unit,
            value=Spread.of([found[what]]),
            runs=runs,
            steps=steps,
            payload=sizes.payloads[0],
        )
        for what, unit in (("step", "us"), ("whole", "us"), ("memory", "kB"))
    ]


def _listed(registry: Registry, sizes: Sizes) -> list[Figure]:
    """A listing of a journal of many runs, against reading the rows by hand."""
    subject = CoreOnSqlite()
    with registry.prepared([subject]):
        do(subject, ["run-0"], 2, sizes.payloads[0])
        _multiply(subject.path, sizes.listed_runs)
        runs = sizes.listed_runs
        by_hand = Probe("by hand, SQLite", "ms", lambda: _read_rows(subject.path), steps=runs)
        whole = Probe("journal.runs()", "ms", lambda: _timed(subject.journal.runs), by_hand, runs)
        latest = Probe(
            "journal.runs(limit=100)",
            "ms",
            lambda: _timed(lambda: subject.journal.runs(limit=100)),
            by_hand,
            runs,
        )
        return measure_probes([by_hand, whole, latest], sizes.rounds)


def _multiply(path: Path, runs: int) -> None:
    """Give a journal of one run so many, by copying its rows."""
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        for table in ("gnl_runs", "gnl_attempts", "gnl_steps", "gnl_blobs"):
            columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
            copied = ", ".join(
                "'run-' || counted.copy" if column == "run_id" else f'{table}."{column}"'
                for column in columns
            )
            connection.execute(
                f"WITH RECURSIVE counted(copy) AS (SELECT 1 UNION ALL SELECT copy + 1 FROM counted WHERE copy < {runs - 1})"
                f" INSERT INTO {table} SELECT {copied} FROM {table}, counted WHERE {table}.run_id = 'run-0'"
            )


def _read_rows(path: Path) -> dict[str, float]:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        query = "SELECT * FROM gnl_runs ORDER BY updated_at DESC"
        return _timed(lambda: connection.execute(query).fetchall())


def _timed(call: Callable[[], object]) -> dict[str, float]:
    """Milliseconds of a call."""
    began = time.perf_counter()
    call()
    return {"listing": (time.perf_counter() - began) * 1e3}


def _long(registry: Registry, sizes: Sizes) -> list[Figure]:
    """A very long run of plain functions, then its resume: each once."""
    subject, length = CoreOnSqlite(), sizes.long_run
    effect = journaled(payload, replay=never, name="effect")
    times: list[Sample] = []
    with registry.prepared([subject]):
        run = new_run()
        for _attempt in range(2):
            watch = Stopwatch()
            with subject.journal.run(run):
                opening = watch.lap()
                for number in range(length):
                    effect(number, sizes.payloads[0])
                working = watch.lap()
            times.append(Sample(length, opening, working, watch.lap()))
    live, again = times
    return [
        Figure(what=what, subject=subject.name, unit=unit, value=Spread.of([value]), steps=length)
        for what, unit, value in (
            ("long: step", "us", live.step),
            ("long: leaving", "ms", live.leaving.wall * 1e3),
            ("long: load", "ms", again.opening.wall * 1e3),
            ("long: serve", "ms", again.working.wall * 1e3),
        )
    ]


def _held(registry: Registry, length: int, size: int) -> Figure:
    """What one open run holds in memory that has just been resumed, without the agent's own history."""
    subject = CoreOnSqlite()
    with registry.prepared([subject]):
        runs = [new_run() for _ in range(max(1, _OPEN_STEPS // length))]
        do(subject, runs, length, size)
        tracemalloc.start()
        with contextlib.ExitStack() as stack:
            before, _ = tracemalloc.get_traced_memory()
            for run in runs:
                stack.enter_context(subject.journal.run(run))
            held, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    value = Spread.of([(held - before) / len(runs) / 1024])
    return Figure(what="memory", subject=subject.name, unit="kB", value=value, steps=length, payload=size)
