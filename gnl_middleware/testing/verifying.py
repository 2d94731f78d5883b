"""Replay a recorded run against today's code, with the model and the tools switched off: the test of a change."""

import asyncio
import inspect
from dataclasses import dataclass
from typing import Any

from gnl_middleware.errors import (
    DivergenceError,
    GnlError,
    JournalError,
    ReplayMissError,
    RunInputMismatchError,
)
from gnl_middleware.identity import inner_scope
from gnl_middleware.journal import Journal
from gnl_middleware.model import StoredStep
from gnl_middleware.replay.record import Record
from gnl_middleware.session.auditing import auditing

from .errors import CrashToolkitError
from .jobs import Build, Run

_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Unasked:
    """A recorded step that the code no longer comes to.

    Attributes:
        number: Its place in the run, from 1.
        key: Its key.
        name: The model, tool or function.
    """

    number: int
    key: str
    name: str


@dataclass(frozen=True, slots=True)
class Verification:
    """What a replay of a recorded run with today's code came to.

    Attributes:
        run_id: The run.
        recorded: How many steps its record holds.
        read_back: How many of them the code came to, in the same way.
        difference: What stopped it: ``DivergenceError``, ``RunInputMismatchError``, ``ReplayMissError`` for a call that the
            record of a finished run does not hold, or the error that the code ended with; None where nothing did.
        unasked: Recorded steps that the code did not come to, though it ended.
        went_on: Of a run that has not ended: the call that comes next, which nothing is recorded of, or the error that the
            code ends with; else None.
    """

    run_id: str
    recorded: int
    read_back: int
    difference: Exception | None = None
    unasked: tuple[Unasked, ...] = ()
    went_on: str | None = None

    @property
    def same(self) -> bool:
        """Whether today's code does what the record holds."""
        return self.difference is None and not self.unasked

    @property
    def verdict(self) -> str:
        """The result in a sentence."""
        steps = f"{self.read_back} of {self.recorded} recorded steps"
        if self.difference is not None:
            return f"Run {self.run_id!r}: not the same, after {steps}. {_told(self.difference)}"
        if self.unasked:
            first = ", ".join(f"{step.number} ({step.name})" for step in self.unasked[:_SHOWN])
            more = f" and {len(self.unasked) - _SHOWN} more" if len(self.unasked) > _SHOWN else ""
            return f"Run {self.run_id!r}: not the same. The code came to {steps}, and no longer to {first}{more}."
        end = f"; the run has not ended, and {self.went_on} comes next" if self.went_on else ""
        return f"Run {self.run_id!r}: the same, in {steps}{end}."

    def assert_same(self) -> None:
        """Fail a test whose code does something else than the record holds.

        Raises:
            AssertionError: With the first difference.

        Example:
            >>> verify(build, run, "support:42", journal).assert_same()     # doctest: +SKIP
        """
        if not self.same:
            raise AssertionError(self.verdict) from self.difference


def verify(build: Build, run: Run, run_id: str, journal: Journal) -> Verification:
    """Replay a recorded run with today's code; nothing runs, nobody is asked, and the journal stays as it is.

    Args:
        build: Builds the agent.
        run: ``run(agent, run_id, journal)`` does the job, as in production; it may be a coroutine function.
        run_id: The recorded run.
        journal: Its journal.

    Raises:
        CrashToolkitError: Nothing can be said: there is no such run, or the code did not open it.
        JournalError: The journal cannot be read.

    Example:
        >>> def test_the_prompt_still_fits(journal):     # doctest: +SKIP
        ...     verify(build, run, "support:42", journal).assert_same()
    """
    ended = _is_ended(run_id, journal)
    error: Exception | None = None
    with auditing() as audit:
        try:
            reply = run(build(), run_id, journal)
            if inspect.iscoroutine(reply):
                asyncio.run(reply)
        except JournalError:
            raise
        except Exception as raised:  # noqa: BLE001 - whatever the code ends with is told as the difference
            error = raised
    sessions = [session for session in audit.sessions if session.run_id == run_id]
    if not sessions and not isinstance(error, RunInputMismatchError):
        raise CrashToolkitError(
            problem=f"The code did not open run {run_id!r}",
            remedy="Let run(agent, run_id, journal) open the run that it is given, in the journal that it is given.",
            details="" if error is None else f"{type(error).__name__}: {error}",
        ) from error
    latch = next((session.latch for session in sessions if session.latch is not None), None)
    record = sessions[-1].record if sessions else Record(run_id, ())
    return _judged(run_id, record, latch or error, ended=ended)


def _is_ended(run_id: str, journal: Journal) -> bool:
    found = next((run for run in journal.runs() if run.run_id == run_id), None)
    if found is None:
        raise CrashToolkitError(
            problem=f"There is no run {run_id!r} in {journal.url}",
            remedy="List those that there are: gnl runs.",
        )
    return found.status == "completed"


def _judged(run_id: str, record: Record, error: Exception | None, *, ended: bool) -> Verification:
    loaded = [step for key, step in record.steps.items() if key in record.loaded and _is_told(step)]
    read_back = sum(step.key in record.consumed for step in loaded)
    unasked = tuple(
        Unasked(step.number, step.key, step.name)
        for step in loaded
        if step.key not in record.consumed and not _is_inside_of_what_was_read_back(record, step)
    )
    result: dict[str, Any] = {"run_id": run_id, "recorded": len(loaded), "read_back": read_back}
    if not ended and not unasked and (came_to_end := _end_of_the_record(error)) is not None:
        return Verification(**result, went_on=came_to_end)
    if error is not None:
        return Verification(**result, difference=error)
    return Verification(**result, unasked=unasked)


def _end_of_the_record(error: Exception | None) -> str | None:
    """What comes next in a run that has not ended: a call, or the error that the code itself ends with."""
    if isinstance(error, ReplayMissError):
        return error.name
    return None if error is None or isinstance(error, GnlError) else f"{type(error).__qualname__}: {error}"


def _is_told(step: StoredStep) -> bool:
    """Whether a step has an outcome that its caller heard of."""
    return step.status == "done" or (step.status == "failed" and step.kind == "tool")


def _is_inside_of_what_was_read_back(record: Record, step: StoredStep) -> bool:
    """What happened inside a tool that has ended is not entered again."""
    return any(step.scope.startswith(inner_scope(key)) for key in record.consumed if key != step.key)


def _told(error: Exception) -> str:
    match error:
        case DivergenceError() | RunInputMismatchError():
            return str(error)
        case ReplayMissError():
            return f"The code calls {error.name} (step {error.step_key}), which the finished run did not."
        case GnlError():
            return str(error)
        case _:
            return f"The code ended with {type(error).__qualname__}: {error}"
