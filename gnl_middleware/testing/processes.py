"""Processes that really die, a few at a time, forked from a parent in which nothing else runs.

A forked child finds everything imported and every closure in place, and its ``os._exit`` is as final as that of any
process. Only the thread that forks goes on in the child: a lock that another thread held at that moment stays held. So
threads of others forbid it, and then all of the work moves into a new interpreter, which has none.
"""

import multiprocessing
import os
import sys
import threading
import time
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from typing import Any, Generic, TypeVar

from .errors import CrashToolkitError

TIMED_OUT = -1000
"""Sent in place of an exit code for a process that was ended because it took too long."""

_OURS = "gnl-"
_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class Errand:
    """A process to start: what it runs, and with what."""

    work: Callable[..., None]
    arguments: tuple[Any, ...]


Plan = Generator[Errand, int, _Result]
"""A course of processes, each started when the one before has ended: yields errands, is sent their exit codes."""


def forks_here(fork: bool | None) -> bool:
    """Whether children may be forked from this process.

    Args:
        fork: True or False where the caller has decided; None to look.

    Raises:
        CrashToolkitError: It is demanded, and this system cannot.
    """
    if fork and not hasattr(os, "fork"):
        raise CrashToolkitError(
            problem="fork=True, but this system cannot fork",
            remedy="Leave fork= out; build, run and effects must then be functions of a module.",
        )
    return sys.platform == "linux" and not foreign_threads() if fork is None else fork


def foreign_threads() -> list[str]:
    """Names of the threads beside this one, but for the library's own, which begin anew after a fork."""
    here = threading.current_thread()
    return [
        thread.name
        for thread in threading.enumerate()
        if thread is not here and not thread.name.startswith(_OURS)
    ]


def carry_out(
    plans: Iterable[Plan[_Result]], *, at_once: int, timeout: float, fork: bool
) -> Iterator[_Result]:
    """Run the plans side by side and yield what each returns, in the order in which they end.

    Args:
        plans: Begun one after another, as places become free.
        at_once: How many may have a process running.
        timeout: Seconds after which a process is ended.
        fork: Fork the processes; else each is a new interpreter.
    """
    waiting, running = iter(plans), list[_Running[_Result]]()
    try:
        while True:
            while len(running) < at_once and (plan := next(waiting, None)) is not None:
                running.append(_Running(plan, start(next(plan), fork=fork), time.monotonic() + timeout))
            if not running:
                return
            for ended, late in _ended(running):
                running.remove(ended)
                try:
                    errand = ended.plan.send(ended.exit_code(late=late))
                except StopIteration as finished:
                    yield finished.value
                else:
                    process = start(errand, fork=fork)
                    running.append(_Running(ended.plan, process, time.monotonic() + timeout))
    finally:
        for left in running:
            left.exit_code(late=True)
            left.plan.close()


def start(errand: Errand, *, fork: bool) -> BaseProcess:
    """Start a process.

    Raises:
        CrashToolkitError: A new interpreter is needed, and cannot be told what to run.
    """
    process: BaseProcess
    if fork:
        process = multiprocessing.get_context("fork").Process(target=errand.work, args=errand.arguments)
    else:
        process = multiprocessing.get_context("spawn").Process(target=errand.work, args=errand.arguments)
    try:
        with warnings.catch_warnings():
            # Whether threads forbid it was decided in forks_here.
            warnings.simplefilter("ignore", DeprecationWarning)
            process.start()
    except Exception as error:
        if fork:
            raise
        threads = ", ".join(foreign_threads())
        why = f"since threads run here ({threads})" if threads else "since this system does not fork safely"
        raise CrashToolkitError(
            problem=f"The workers must be new interpreters, {why}, but what they run cannot be named to them: {error}",
            remedy="End the threads first; or make build, run, effects and resolve functions of a module that can be imported; "
            "or pass fork=True if the threads only wait, as those of a notebook's kernel do.",
        ) from error
    return process


@dataclass(frozen=True, slots=True, eq=False)
class _Running(Generic[_Result]):
    """A process of a plan.

    Attributes:
        deadline: Monotonic time at which it is ended.
    """

    plan: Plan[_Result]
    process: BaseProcess
    deadline: float

    def exit_code(self, *, late: bool) -> int:
        """The exit code; a process that is late is ended first."""
        if late:
            self.process.kill()
        self.process.join()
        code = self.process.exitcode
        self.process.close()
        return TIMED_OUT if late or code is None else code


def _ended(running: list[_Running[_Result]]) -> list[tuple[_Running[_Result], bool]]:
    """Those that have ended, and those that are late; waits for the first of them."""
    patience = min(one.deadline for one in running) - time.monotonic()
    ended = wait([one.process.sentinel for one in running], max(0.0, patience))
    now = time.monotonic()
    found = [(one, one.process.sentinel not in ended) for one in running]
    return [(one, late) for one, late in found if not late or now >= one.deadline]
