"""Processes that really die, a few at a time, without a thread in the parent.

A child forked from a parent that has imported everything starts at once, and its `os._exit` is as final as that of any
process. Forking is safe while nothing else runs in the parent; where something does, and elsewhere than on Linux, each
child is a new interpreter.
"""

import gc
import multiprocessing
import sys
import threading
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from typing import TypeVar

from .worker import Job

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Errand:
    """A process to start: what it runs, and with which job."""

    work: Callable[[Job], None]
    job: Job


Plan = Generator[Errand, int, Result]
"""A course of processes, each started when the one before has ended: yields errands, is sent their exit codes."""


def carry_out(plans: Iterable[Plan[Result]], *, at_once: int) -> Iterator[Result]:
    """Run the plans side by side and yield what each returns, in the order in which they end.

    Args:
        plans: Begun one after another, as places become free.
        at_once: How many may have a process running.
    """
    gc.freeze()  # keeps the collector of a child from copying the pages that it shares with the parent
    waiting, running = iter(plans), dict[object, tuple[BaseProcess, Plan[Result]]]()
    try:
        while True:
            while len(running) < at_once and (plan := next(waiting, None)) is not None:
                process = _start(next(plan))
                running[process.sentinel] = process, plan
            if not running:
                return
            for sentinel in wait([process.sentinel for process, _ in running.values()]):
                process, plan = running.pop(sentinel)
                try:
                    following = _start(plan.send(_exit_code(process)))
                except StopIteration as finished:
                    yield finished.value
                else:
                    running[following.sentinel] = following, plan
    finally:
        for process, plan in running.values():
            process.kill()
            process.join()
            plan.close()


def can_fork() -> bool:
    """Whether children may share what this process has imported."""
    return sys.platform == "linux" and threading.active_count() == 1


def _start(errand: Errand) -> BaseProcess:
    process: BaseProcess
    if can_fork():
        process = multiprocessing.get_context("fork").Process(target=errand.work, args=(errand.job,))
    else:
        process = multiprocessing.get_context("spawn").Process(target=errand.work, args=(errand.job,))
    process.start()
    return process


def _exit_code(process: BaseProcess) -> int:
    process.join()
    code = process.exitcode
    process.close()
    return -1 if code is None else code
