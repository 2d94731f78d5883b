"""Where the processes of the schedules come from: a parent without threads that has imported everything.

A child forked from it starts in milliseconds, and its death is as final as that of any process. The tests talk to it by
lines of JSON; it runs a few children at a time.
"""

import gc
import importlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from gnl_middleware.testing import CRASH_VARIABLE, install_crash_points
from tests.schedules.stage import PROGRAMS, Job, play

_ROOT = Path(__file__).parents[2]
_AT_ONCE = os.cpu_count() or 1
_PATIENCE = 60
"""Seconds after which a child that neither ended nor died is killed."""


@dataclass(frozen=True)
class Course:
    """A run, from its first process to its last: each but the last dies at a crash point.

    Attributes:
        program: What all of them run.
        folder: Where they leave everything.
        crash_points: One for each process; None for one that is to reach the end.
        options: See ``Job``.
    """

    program: str
    folder: str
    crash_points: tuple[str | None, ...] = (None,)
    options: Mapping[str, str] = field(default_factory=dict)

    def job(self, number: int) -> Job:
        """The work of its n-th process."""
        return Job(self.program, self.folder, number, self.crash_points[number - 1], self.options)


class Nursery:
    """Runs courses in child processes that were forked from a warm parent.

    Args:
        programs: The modules that register the programs.
    """

    def __init__(self, *programs: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.schedules.nursery", *programs],
            cwd=_ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, courses: Sequence[Course]) -> list[list[int]]:
        """The exit codes of each course's processes."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([asdict(course) for course in courses]) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        assert answer, f"the nursery ended with {self._process.wait()}; its traceback is above"
        return json.loads(answer)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._process.communicate()


def _course(given: Mapping[str, Any]) -> Course:
    return Course(**given | {"crash_points": tuple(given["crash_points"])})


def _run_all(courses: Sequence[Course]) -> list[list[int]]:
    codes: list[list[int]] = [[] for _ in courses]
    waiting, running = iter(enumerate(courses)), dict[int, int]()
    while True:
        while len(running) < _AT_ONCE and (begun := next(waiting, None)) is not None:
            running[_fork(begun[1].job(1))] = begun[0]
        if not running:
            return codes
        child, status = os.wait()
        index = running.pop(child)
        codes[index].append(os.waitstatus_to_exitcode(status))
        if len(codes[index]) < len(courses[index].crash_points):
            running[_fork(courses[index].job(len(codes[index]) + 1))] = index


def _fork(job: Job) -> int:
    if child := os.fork():
        return child
    code = 1
    try:
        signal.alarm(_PATIENCE)
        # Standard output belongs to the parent's conversation.
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        install_crash_points({CRASH_VARIABLE: job.crash_at or ""})
        play(job)
        code = 0
    except BaseException:  # noqa: BLE001
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def _serve() -> None:
    for module in sys.argv[1:]:
        importlib.import_module(module)  # registers its programs
    _rehearse()
    gc.collect()
    gc.freeze()  # keeps the collector of a child from copying the pages that it shares with its parent
    for line in sys.stdin:
        codes = _run_all([_course(given) for given in json.loads(line)])
        sys.stdout.write(json.dumps(codes) + "\n")
        sys.stdout.flush()


def _rehearse() -> None:
    """Play once here, so that children find everything imported; it must leave no thread, which a fork would lose."""
    with tempfile.TemporaryDirectory() as folder:
        play(Job(next(iter(PROGRAMS)), folder, options={"saver": "sqlite"}))
    assert threading.active_count() == 1


if __name__ == "__main__":
    _serve()
