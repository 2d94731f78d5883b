"""Where the killed processes come from: a parent without threads that has imported everything, and that kills.

The tests talk to it by lines of JSON. It runs as many courses at a time as there are processors.
"""

import gc
import json
import os
import random
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from .worker import KINDS, Job, play

_ROOT = Path(__file__).parents[3]
_AT_ONCE = os.cpu_count() or 1
_PATIENCE = 120.0
"""Seconds after which the last process of a course, which nobody kills, counts as hung."""


@dataclass(frozen=True, slots=True)
class Course:
    """A run, from its first process to its last.

    Attributes:
        job: What all its processes do.
        kills: How often a process of it is to be killed, if it does not end before.
        seed: Chooses the moments.
    """

    job: Job
    kills: int
    seed: int


@dataclass
class _Running:
    """A course that has a process.

    Attributes:
        seconds: How long a process of this kind takes that nothing interrupts.
        killed: How many of its processes were killed so far.
        pid: Its process …
        file: … as a file that becomes readable when it ends.
        deadline: When it is killed.
        last: Nobody kills it.
    """

    course: Course
    seconds: float
    moments: random.Random
    killed: int = 0
    pid: int = 0
    file: int = -1
    deadline: float = 0.0
    last: bool = False
    hung: bool = field(default=False)

    def start(self) -> None:
        """Fork its next process and choose the moment of its death."""
        self.last = self.killed == self.course.kills
        self.pid = _fork(self.course.job)
        self.file = os.pidfd_open(self.pid)
        wait = _PATIENCE if self.last else self.moments.uniform(0.0, self.seconds)
        self.deadline = time.monotonic() + wait

    def kill(self) -> None:
        """End its process as a power switch would."""
        signal.pidfd_send_signal(self.file, signal.SIGKILL)
        self.hung, self.deadline = self.last, float("inf")

    def has_ended(self) -> bool:
        """Bury its process; True where the course is over."""
        os.close(self.file)
        _, status = os.waitpid(self.pid, 0)
        if os.waitstatus_to_exitcode(status) != -signal.SIGKILL:
            return True
        self.killed += not self.last
        return self.last


class Nursery:
    """Runs courses in processes that were forked from a warm parent."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-W", "error", "-m", __spec__.name if __spec__ else __name__],
            cwd=_ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, courses: Sequence[Course]) -> list[int]:
        """How often each course's processes were killed; -1 where the last one hung."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([asdict(course) for course in courses]) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        assert answer, "the nursery died; its traceback is above"
        return json.loads(answer)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._process.communicate()


def _course(given: Mapping[str, Any]) -> Course:
    return Course(Job(**given["job"]), given["kills"], given["seed"])


def _run_all(courses: Sequence[Course], seconds: Mapping[tuple[str, str], float]) -> list[int]:
    kills = [0] * len(courses)
    waiting, running = iter(enumerate(courses)), dict[int, tuple[int, _Running]]()
    while True:
        while len(running) < _AT_ONCE and (following := next(waiting, None)) is not None:
            place, course = following
            begun = _Running(course, seconds[course.job.shape, course.job.way], random.Random(course.seed))
            begun.start()
            running[begun.file] = place, begun
        if not running:
            return kills
        for file in _ended(running):
            place, one = running.pop(file)
            if one.has_ended():
                kills[place] = -1 if one.hung else one.killed
            else:
                one.start()
                running[one.file] = place, one


def _ended(running: Mapping[int, tuple[int, _Running]]) -> Iterator[int]:
    """Kill those whose moment has come, and give those that have ended."""
    now = time.monotonic()
    for _, one in running.values():
        if one.deadline <= now:
            one.kill()
    first = min(one.deadline for _, one in running.values())
    # Never for ever: a killed process is reported by its file as well.
    ready, _, _ = select.select(list(running), [], [], min(1.0, max(0.0, first - now)))
    yield from ready


def _fork(job: Job) -> int:
    if child := os.fork():
        return child
    try:
        # Standard output belongs to the parent's conversation.
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        play(job)
    finally:
        # A child must end here, or it would go on as its parent.
        os._exit(0)


def _rehearse() -> dict[tuple[str, str], float]:
    """How long each kind of run takes in a child, once everything is imported and warm; leaves no thread here."""
    seconds: dict[tuple[str, str], float] = {}
    with tempfile.TemporaryDirectory() as folder:
        for place, (shape, way) in enumerate(KINDS):
            job = Job(shape, way, f"rehearsal-{place}", folder, str(Path(folder, "runs.db")))
            play(job)
            assert "error" not in job.report(), job.report()["error"]
        assert threading.active_count() == 1
        gc.collect()
        gc.freeze()  # keeps the collector of a child from copying the pages that it shares with its parent
        for place, (shape, way) in enumerate(KINDS):
            job = Job(shape, way, f"measured-{place}", folder, str(Path(folder, "runs.db")))
            began = time.monotonic()
            os.waitpid(_fork(job), 0)
            seconds[shape, way] = time.monotonic() - began
    return seconds


def _serve() -> None:
    seconds = _rehearse()
    for line in sys.stdin:
        sys.stdout.write(json.dumps(_run_all([_course(given) for given in json.loads(line)], seconds)) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    _serve()
