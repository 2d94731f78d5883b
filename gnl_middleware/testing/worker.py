"""What runs in the processes of a check: workers on a run, one of which dies; counting; a person's decision."""

import asyncio
import gc
import inspect
import json
import os
import signal
import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, cast

from gnl_middleware import codec
from gnl_middleware.clock import SystemClock
from gnl_middleware.errors import RunBusyError, UnserializableValueError
from gnl_middleware.journal import Journal
from gnl_middleware.model import Done, InterruptedCall, RunRecord, Step, Unknown
from gnl_middleware.session.points import Point, observe

from .crash_points import CRASH_EXIT_CODE
from .jobs import Death, Job, Report, StepReport, Subject, new_report

PERSON = "crash matrix"
"""Who decided, where ``resolve=`` did."""

_SHOWN = 300
_SAID, _TRACE = 2000, 4000


def play(subject: Subject, job: Job) -> None:
    """Work on the run, as any worker would: the same call in the first one and in those that take over."""
    observe(_Recorder(job), role="toolkit")
    _tell(job, "report", lambda: _turn(subject, job), lambda trace: new_report("failed", error=trace))


def count(subject: Subject, job: Job) -> None:
    """Count the effects: in a process that did not work on the run, so that what is counted is the outside world."""
    _tell(job, "counts", lambda: {"counts": _counts(subject, job)}, lambda trace: {"error": trace})


def decide(subject: Subject, job: Job) -> None:
    """Decide the blocked calls as ``resolve=`` says."""
    _tell(job, "decided", lambda: {"decided": _decisions(subject, job)}, lambda trace: {"error": trace})


def confirm(subject: Subject, job: Job) -> None:
    """Say of every blocked call that it happened, to see what else the run would do."""

    def happened(_call: InterruptedCall) -> Done:
        return Done(f"confirmed by the {PERSON}")

    sure = replace(subject, resolve=happened)
    _tell(job, "confirmed", lambda: {"decided": _decisions(sure, job)}, lambda trace: {"error": trace})


class _Recorder:
    """Writes down what steps come to, and dies where it must."""

    def __init__(self, job: Job) -> None:
        self._deaths, self._reached = set(job.deaths), Counter[tuple[Point, str]]()
        self._lock = threading.Lock()
        self._file = os.open(job.file("events"), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def __call__(self, point: Point, number: int, name: str) -> None:
        with self._lock:
            os.write(self._file, json.dumps([point, number, name]).encode() + b"\n")
            self._reached[point, name] += 1
            if (death := Death(point, name, self._reached[point, name])) in self._deaths:
                self._deaths.remove(death)
                if not self._deaths:
                    os._exit(CRASH_EXIT_CODE)


class _ClockAhead(SystemClock):
    """The machine's clock, some seconds ahead."""

    def __init__(self, ahead: float) -> None:
        self._ahead = ahead

    def time(self) -> float:
        """Wall-clock time in seconds since the epoch, and those seconds."""
        return time.time() + self._ahead


def _tell(
    job: Job,
    name: str,
    work: Callable[[], Mapping[str, Any]],
    failed: Callable[[str], Mapping[str, Any]],
) -> None:
    """Do the work of a process, leave what it gives, and end."""
    gc.freeze()  # keeps the collector from copying the pages that are shared with the parent
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle: it ends its children
    _redirect(job)
    try:
        told = work()
    except BaseException as error:  # noqa: BLE001 - told to the parent, whatever it is
        told = failed(_trace(error))
    job.write(name, told)
    sys.stdout.flush()
    sys.stderr.flush()
    # At once: threads that the agent left behind would keep the process alive.
    os._exit(0)


def _redirect(job: Job) -> None:
    """Keep what the agent prints out of the output of the check."""
    printed = os.open(job.file("output"), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(printed, 1)
    os.dup2(printed, 2)
    # A test runner or a notebook has put objects of its own here, which write somewhere else.
    sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = os.fdopen(2, "w", encoding="utf-8", closefd=False)


def _turn(subject: Subject, job: Job) -> Report:
    agent, clock = subject.build(), _ClockAhead(job.late)
    options: dict[str, Any] = {"clock": clock, **subject.protection}
    with Journal(job.journal, **options) as journal, Journal(job.journal, **options) as given:
        before, reply, error = _steps(journal, job.run_id), None, None
        try:
            reply = _awaited(subject.run(agent, job.run_id, given))
        except Exception as raised:  # noqa: BLE001 - told to the parent
            error = raised
        told = _ended(_record(journal, job.run_id), reply, error)
        told["before"], told["steps"] = before, _steps(journal, job.run_id)
    return told


def _awaited(value: Any) -> Any:
    """What ``run`` returned; a coroutine is run to its end."""
    return asyncio.run(value) if inspect.iscoroutine(value) else value


def _ended(record: RunRecord | None, reply: Any, error: Exception | None) -> Report:
    if isinstance(error, RunBusyError):
        return new_report("busy", error=_trace(error), lease_ends_at=error.lease_ends_at)
    if record is not None and record.status == "blocked":
        return new_report("blocked")
    if error is not None:
        return new_report("failed", error=_trace(error))
    if record is None or record.status not in ("completed", "paused"):
        told = "no run of its run_id is in its journal" if record is None else f"its run is {record.status}"
        return new_report(
            "failed", error=f"run() returned, but {told}: it must pass both on, and leave the run"
        )
    return _finished(reply)


def _finished(reply: Any) -> Report:
    if isinstance(reply, str):
        reply = str(reply)  # frameworks have text types of their own
    try:
        digest = codec.digest(reply)
    except UnserializableValueError as unfit:
        told = "run() must return plain data that can be compared, such as the text of the last message"
        return new_report(
            "failed", error=f"{told}, but {unfit.path} of what it returned is of type {unfit.type_name}"
        )
    shown = reply if isinstance(reply, str) else codec.encode(reply).decode()
    return new_report("finished", reply=shown[:_SHOWN], reply_digest=digest)


def _record(journal: Journal, run_id: str) -> RunRecord | None:
    return next((record for record in journal.runs() if record.run_id == run_id), None)


def _steps(journal: Journal, run_id: str) -> list[StepReport]:
    return [_step(step) for step in journal.steps(run_id)]


def _step(step: Step) -> StepReport:
    return StepReport(
        number=step.number,
        key=step.key,
        scope=step.scope,
        kind=step.kind,
        name=step.name,
        label=step.policy,
        status=step.status,
        blocked=step.blocked,
        resolution=step.resolution,
    )


def _counts(subject: Subject, job: Job) -> dict[str, int]:
    if subject.effects is None:
        return {}
    found: Any = subject.effects() if subject.counts_all_runs else subject.effects(job.run_id)
    if isinstance(found, int):
        return {"effects": found}
    counts = cast("Mapping[Any, Any]", found) if isinstance(found, Mapping) else {found: found}
    if not all(isinstance(tool, str) and isinstance(number, int) for tool, number in counts.items()):
        raise TypeError(
            f"effects() must give counts by tool name, such as {{'send_email': 1}}, not {found!r}"
        )
    return dict(counts)


def _decisions(subject: Subject, job: Job) -> list[str]:
    decided: list[str] = []
    with Journal(job.journal, clock=_ClockAhead(job.late), **subject.protection) as journal:
        for step in journal.steps(job.run_id):
            if step.blocked is None or subject.resolve is None:
                continue
            decision = subject.resolve(_interrupted(step))
            if not isinstance(decision, Unknown):
                journal.resolve(job.run_id, step.key, decision, by=PERSON, note="decided in a crash matrix")
                decided.append(step.name)
    return decided


def _interrupted(step: Step) -> InterruptedCall:
    return InterruptedCall(
        run_id=step.run_id,
        step_key=step.key,
        tool=step.name,
        arguments=step.arguments,
        idempotency_key=step.idempotency_key,
        started_at=step.started_at,
        attempts=step.attempts,
        error=step.error,
    )


def _trace(error: BaseException) -> str:
    """The error in its first line, and the end of its traceback."""
    told = f"{type(error).__qualname__}: {error}"
    return f"{told[:_SAID]}\n\n{''.join(traceback.format_exception(error))[-_TRACE:]}"
