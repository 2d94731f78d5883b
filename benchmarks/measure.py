"""Measure what a subject takes: the time of the clock on the wall, and that of the processor in all threads of this process."""

import asyncio
import contextvars
import gc
import statistics
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass

from .subject import LoopedSubject, Subject


@dataclass(frozen=True, slots=True)
class Lap:
    """Seconds between two moments, on the wall and of the processor."""

    wall: float
    processor: float


class Stopwatch:
    """Tells the time since it was last asked."""

    def __init__(self) -> None:
        self._wall, self._processor = time.perf_counter(), time.process_time()

    def lap(self) -> Lap:
        """The time since the lap before, or since the beginning."""
        wall, processor = time.perf_counter(), time.process_time()
        lap = Lap(wall - self._wall, processor - self._processor)
        self._wall, self._processor = wall, processor
        return lap


@dataclass(frozen=True, slots=True)
class Sample:
    """What the runs of one measurement took, all together.

    Attributes:
        steps: Steps of all the runs.
        opening: Until all the runs were open.
        working: From then on until the last step of the last run had ended.
        leaving: From then on until all the runs had been left.
    """

    steps: int
    opening: Lap
    working: Lap
    leaving: Lap

    @property
    def step(self) -> float:
        """Microseconds per step."""
        return self.working.wall / self.steps * 1e6

    @property
    def whole(self) -> float:
        """Microseconds per step with its share of opening and leaving the run."""
        return (self.opening.wall + self.working.wall + self.leaving.wall) / self.steps * 1e6

    @property
    def processor(self) -> float:
        """Microseconds of processor time per step."""
        return self.working.processor / self.steps * 1e6


@dataclass(frozen=True, slots=True)
class Spread:
    """The median of what was measured, with its quartiles."""

    median: float
    low: float
    high: float
    samples: int

    @classmethod
    def of(cls, values: Sequence[float]) -> "Spread":
        """The spread of at least one value."""
        if len(values) == 1:
            return cls(values[0], values[0], values[0], 1)
        low, median, high = statistics.quantiles(values, n=4, method="inclusive")
        return cls(median, low, high, len(values))


def measured(subject: Subject, run_ids: Sequence[str], steps: int, size: int) -> Sample:
    """Do so many steps in each of these runs at once, with results of this size."""
    with subject.activated():
        gc.collect()
        if len(run_ids) == 1:
            return _alone(subject, run_ids[0], steps, size)
        if isinstance(subject, LoopedSubject):
            return asyncio.run(_in_a_loop(subject, run_ids, steps, size))
        return _in_threads(subject, run_ids, steps, size)


def do(subject: Subject, run_ids: Sequence[str], steps: int, size: int) -> None:
    """Do so many steps in each of these runs, one after the other, without measuring."""
    with subject.activated():
        for run_id in run_ids:
            with subject.open(run_id, size) as work:
                work(steps)


def _alone(subject: Subject, run_id: str, steps: int, size: int) -> Sample:
    watch = Stopwatch()
    with ExitStack() as stack:
        work = stack.enter_context(subject.open(run_id, size))
        opening = watch.lap()
        work(steps)
        working = watch.lap()
    return Sample(steps, opening, working, watch.lap())


class _Laps:
    """The laps of runs that wait for each other before and after their steps."""

    def __init__(self) -> None:
        self._watch = Stopwatch()
        self.laps: list[Lap] = []

    def lap(self) -> None:
        self.laps.append(self._watch.lap())

    def sample(self, steps: int) -> Sample:
        opening, working = self.laps
        return Sample(steps, opening, working, self._watch.lap())


def _in_threads(subject: Subject, run_ids: Sequence[str], steps: int, size: int) -> Sample:
    with ThreadPoolExecutor(len(run_ids)) as pool:
        laps = _Laps()
        together = threading.Barrier(len(run_ids), action=laps.lap)

        def one(run_id: str) -> None:
            with subject.open(run_id, size) as work:
                together.wait()
                work(steps)
                together.wait()

        # A thread that fails must not leave the others waiting for it.
        works = [
            pool.submit(contextvars.Context().run, _or_abort, together, one, run_id) for run_id in run_ids
        ]
        for work in works:
            work.result()
        return laps.sample(steps * len(run_ids))


def _or_abort(together: threading.Barrier, one: Callable[[str], None], run_id: str) -> None:
    try:
        one(run_id)
    except BaseException:
        together.abort()
        raise


async def _in_a_loop(subject: LoopedSubject, run_ids: Sequence[str], steps: int, size: int) -> Sample:
    laps = _Laps()
    together = asyncio.Barrier(len(run_ids))

    async def one(run_id: str) -> None:
        async with subject.open_async(run_id, size) as work:
            if await together.wait() == 0:
                laps.lap()
            await work(steps)
            if await together.wait() == 0:
                laps.lap()

    async with asyncio.TaskGroup() as group:
        for run_id in run_ids:
            group.create_task(one(run_id))
    return laps.sample(steps * len(run_ids))
