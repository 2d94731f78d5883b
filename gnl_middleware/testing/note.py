"""Whether a model that is told "this call may have happened" looks before it acts again."""

import secrets
import tempfile
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from gnl_middleware.identity import graph_scope
from gnl_middleware.session.points import Point

from .crash_points import CRASH_EXIT_CODE
from .elsewhere import elsewhere
from .errors import CrashToolkitError
from .jobs import Build, Death, Job, Report, Run, StepReport, Subject
from .processes import Errand, Plan, carry_out, forks_here
from .worker import play

_DEATHS: tuple[Point, ...] = ("before_body", "after_body")
Reaction = Literal["looked", "acted", "neither"]


@dataclass(frozen=True, slots=True)
class NotedRun:
    """One run whose model was told that a call may have happened.

    Attributes:
        run_id: The run.
        died_at: Where its worker died: before the effect, or after it; the model cannot know.
        reaction: ``looked`` before it acted again or replied; ``acted`` again without looking; or ``neither``: it replied
            without looking.
        calls: The tools that it called after it was told, in order.
        reply: The reply, shortened.
    """

    run_id: str
    died_at: Point
    reaction: Reaction
    calls: tuple[str, ...]
    reply: str


@dataclass(frozen=True, slots=True)
class InterruptedNote:
    """How a model reacts to the note that a call may have happened.

    Attributes:
        tool: The tool whose calls were interrupted.
        runs: What became of each run.
    """

    tool: str
    runs: tuple[NotedRun, ...]

    @property
    def pass_rate(self) -> float:
        """The share of runs in which the model looked first, from 0 to 1."""
        return sum(run.reaction == "looked" for run in self.runs) / len(self.runs)

    def assert_looks(self, *, at_least: float = 1.0) -> None:
        """Do nothing if the model looked first in enough of the runs.

        Raises:
            AssertionError: It did not: the message says what it did instead, and the cure.

        Example:
            >>> interrupted_note(build, run, "send_email", ["find_email"]).assert_looks()     # doctest: +SKIP
        """
        if self.pass_rate >= at_least:
            return
        acted = sum(run.reaction == "acted" for run in self.runs)
        silent = sum(run.reaction == "neither" for run in self.runs)
        first = next(run for run in self.runs if run.reaction != "looked")
        raise AssertionError(
            f"Told that {self.tool} may have happened, the model looked first in {self.pass_rate:.0%} of {len(self.runs)} runs, "
            f"not in {at_least:.0%}: it called {self.tool} again without looking in {acted}, and replied without looking in "
            f"{silent}.\n  The first, {first.run_id}, called {', '.join(first.calls) or 'nothing'} and replied: {first.reply}\n"
            f"  Say in its prompt what to look with, or let the run stop instead: on_interrupted='block', or recover=."
        )


def interrupted_note(
    build: Build,
    run: Run,
    *,
    tool: str,
    looks: str | Collection[str],
    runs: int = 10,
    processes: int = 2,
    timeout: float = 60.0,
    fork: bool | None = None,
) -> InterruptedNote:
    """Interrupt a tool, tell the model that it may have happened, and see whether it looks before it acts again.

    In each run a worker dies around the tool's body, in turn before the effect and after it; another takes over. The tool's
    policy or the run must say ``on_interrupted="tell_model"``, and the tool must have no ``recover`` that knows the answer.

    Args:
        build: Builds the agent, as for ``crash_matrix``.
        run: Runs the job, as for ``crash_matrix``.
        tool: The tool to interrupt, at its first call.
        looks: The tools that look whether it happened.
        runs: How many runs; more for a model that answers differently each time.
        processes: How many workers run at once.
        timeout: Seconds after which a worker counts as hung.
        fork: As for ``crash_matrix``.

    Raises:
        CrashToolkitError: The tool is not called, or the model is not told, or a run does not end.
        ValueError: There is nothing to run.

    Example:
        >>> note = interrupted_note(build, run, tool="send_email", looks="find_email")     # doctest: +SKIP
        >>> note.assert_looks(at_least=0.9)     # doctest: +SKIP
    """
    if runs < 1 or processes < 1 or timeout <= 0:
        raise ValueError(
            f"runs, processes and timeout must be positive, not {runs}, {processes} and {timeout}"
        )
    subject = Subject(build, run)
    check = _Check(tool, frozenset([looks] if isinstance(looks, str) else looks), runs, processes, timeout)
    if forks_here(fork):
        found = list(_interrupted(subject, check, fork=True))
    else:
        told = elsewhere(_told, subject, check)
        found = [_from_object(noted) for noted in told]
    return InterruptedNote(tool, tuple(sorted(found, key=lambda noted: noted.run_id)))


@dataclass(frozen=True, slots=True)
class _Check:
    """The options of ``interrupted_note``."""

    tool: str
    looks: frozenset[str]
    runs: int
    processes: int
    timeout: float


def _from_object(stored: Mapping[str, Any]) -> NotedRun:
    calls: dict[str, Any] = {"calls": tuple(stored["calls"])}
    return NotedRun(**{**stored, **calls})


def _told(subject: Subject, check: _Check) -> Iterator[dict[str, Any]]:
    return (asdict(noted) for noted in _interrupted(subject, check, fork=forks_here(None)))


def _interrupted(subject: Subject, check: _Check, *, fork: bool) -> Iterator[NotedRun]:
    prefix = f"note-{secrets.token_hex(3)}"
    with tempfile.TemporaryDirectory(prefix="gnl-note-", ignore_cleanup_errors=True) as root:
        jobs = [
            _job(Path(root), f"{prefix}-{number:03}", number, check) for number in range(1, check.runs + 1)
        ]
        plans = (_noted(subject, check, job) for job in jobs)
        yield from carry_out(plans, at_once=check.processes, timeout=check.timeout, fork=fork)


def _job(root: Path, run_id: str, number: int, check: _Check) -> Job:
    folder = root / run_id
    folder.mkdir()
    death = Death(_DEATHS[number % len(_DEATHS)], check.tool)
    return Job(run_id, str(folder / "journal.db"), folder, deaths=(death,))


def _noted(subject: Subject, check: _Check, victim: Job) -> Plan[NotedRun]:
    code = yield Errand(play, (subject, victim))
    if code != CRASH_EXIT_CODE:
        raise CrashToolkitError(
            problem=f"{check.tool} was not called, so it was not interrupted",
            remedy="Give a job for which the model calls it, and its name as the journal has it.",
            details=victim.report(code)["error"],
        )
    heir = replace(victim, number=2, deaths=())
    report = heir.report((yield Errand(play, (subject, heir))))
    told = next((step for step in report["steps"] if step["resolution"] == "told"), None)
    if told is None or report["status"] != "finished":
        raise _not_told(check, report, told)
    calls, reaction = _reaction(check, report["steps"], told)
    return NotedRun(victim.run_id, victim.deaths[0].point, reaction, calls, report["reply"])


def _not_told(check: _Check, report: Report, told: StepReport | None) -> CrashToolkitError:
    if told is not None:
        problem = f"The model was told that {check.tool} may have happened, and then its run did not end"
        return CrashToolkitError(
            problem=problem, remedy="Let the job end after it was told.", details=report["error"]
        )
    label = next((step["label"] for step in report["steps"] if step["name"] == check.tool), "unlabelled")
    return CrashToolkitError(
        problem=f"The model was not told that {check.tool} ({label}) may have happened",
        remedy="Label it never(on_interrupted='tell_model'), or open the run with it, and without a recover= that knows.",
        details=report["error"],
    )


def _reaction(check: _Check, steps: list[StepReport], told: StepReport) -> tuple[tuple[str, ...], Reaction]:
    """What the model called after it was told, and what that means.

    Calls of the same reply as the interrupted one were decided before; a look counts once the model has been asked again,
    for only then has it seen what was found.
    """
    around = graph_scope(told["scope"])  # the model and its tools may be nodes of one graph
    later = [
        step for step in steps if step["number"] > told["number"] and graph_scope(step["scope"]) == around
    ]
    replies = [step["number"] for step in later if step["kind"] == "model"]
    answers = [step for step in later if replies and step["number"] > replies[0]]
    calls, asked, seen = tuple(step["name"] for step in answers if step["kind"] == "tool"), False, False
    for step in answers:
        if step["kind"] == "model":
            seen = asked
        elif step["name"] in check.looks:
            asked = True
        elif step["name"] == check.tool and not seen:
            return calls, "acted"
        if seen:
            return calls, "looked"
    return calls, "neither"
