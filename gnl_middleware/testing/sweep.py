"""Run a job undisturbed, then once for each crash point: one worker dies there, others take over with the same call."""

import itertools
import secrets
import tempfile
import time
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from gnl_middleware.journal import Journal
from gnl_middleware.session.points import Point

from .cells import Cell, Clean, Ending, MatrixStep
from .crash_points import CRASH_EXIT_CODE
from .errors import CrashToolkitError
from .jobs import Death, Event, Job, Report, Subject, new_report
from .measure import (
    Worked,
    answered_conversations,
    blocked_effects,
    repeatable,
    repeated_model_calls,
    settled_effects,
    worked,
)
from .processes import TIMED_OUT, Errand, Plan, carry_out
from .spots import Spot, names_of, spots_of
from .worker import confirm, count, decide, play

_VICTIMS = 3
_RESTARTS = 6
_FAILURES = 3
_REPAIR = "Repair it first; this is what it raised:"


@dataclass(frozen=True, slots=True)
class Settings:
    """How a sweep is made: see ``crash_matrix``."""

    journal: str | None = None
    points: Collection[Point] | None = None
    steps: Collection[str | int] | None = None
    processes: int = 2
    timeout: float = 60.0


@dataclass(frozen=True, slots=True)
class _Standard:
    """The clean run, with what the killed ones are measured by."""

    clean: Clean
    answered: Counter[str]
    spots: tuple[Spot, ...]


class Sweep:
    """One sweep over an agent's crash points.

    Args:
        subject: The agent.
        settings: How.
        fork: Fork the workers; else each is a new interpreter.
    """

    def __init__(self, subject: Subject, settings: Settings, *, fork: bool) -> None:
        self._subject, self._settings, self._fork = subject, settings, fork
        self._prefix = f"crash-{secrets.token_hex(3)}"

    def results(self) -> Iterator[Clean | Cell]:
        """The clean run, then the cells as they end.

        Raises:
            CrashToolkitError: The clean run does not end, counts nothing, or has no crash point.
        """
        subject, settings = self._subject, self._settings
        # What counts all runs together can count one run only while it is alone.
        at_once = 1 if subject.counts_all_runs else settings.processes
        with tempfile.TemporaryDirectory(prefix="gnl-crash-", ignore_cleanup_errors=True) as folder:
            root = Path(folder)
            with Journal(root / "warm.db") as warm:
                warm.runs()  # loads what each forked worker would have to load
            for standard in carry_out(
                [self._clean_run(root)], at_once=1, timeout=settings.timeout, fork=self._fork
            ):
                yield standard.clean
                plans = (self._killed_run(root, standard, spot) for spot in standard.spots)
                yield from carry_out(plans, at_once=at_once, timeout=settings.timeout, fork=self._fork)

    def _clean_run(self, root: Path) -> Plan[_Standard]:
        job = self._job(root, "clean")
        baseline = yield from self._baseline(job)
        report = self._report(job, (yield Errand(play, (self._subject, job))))
        if report["status"] != "finished":
            raise _unclean(report)
        counts = yield from self._counted(job, baseline)
        if self._subject.effects is not None and not any(counts.values()):
            raise CrashToolkitError(
                problem=f"effects counted nothing in a run that nobody disturbed ({counts})",
                remedy="It must count what tools did outside the worker, which forgets what it knew when it dies: a file, "
                "a table, a mailbox, an EffectLog. For an agent without any effect, give effects=None.",
            )
        events = job.events()
        steps = tuple(
            MatrixStep(step["number"], step["kind"], step["name"], step["label"], step["scope"])
            for step in report["steps"]
        )
        answered = answered_conversations(worked([events], [report]))
        spots = self._spots(events, steps)
        clean = Clean(
            run_id=job.run_id,
            reply=report["reply"],
            reply_digest=report["reply_digest"],
            model_calls=answered.total(),
            effects=counts,
            steps=steps,
            crash_points=len(spots),
        )
        return _Standard(clean, answered, spots)

    def _spots(self, events: list[Event], steps: tuple[MatrixStep, ...]) -> tuple[Spot, ...]:
        points, chosen = self._settings.points, self._settings.steps
        spots = spots_of(events, steps, points=points, chosen=chosen)
        known = {name for step in steps for name in names_of(step)}
        unknown = [repr(name) for name in chosen or () if name not in known]
        if spots and not unknown:
            return spots
        names = ", ".join(str(step) for step in steps) or "none"
        wanted = f" of {', '.join(unknown)}" if unknown else ""
        raise CrashToolkitError(
            problem=f"There is no crash point{wanted} to try; the steps of the clean run are: {names}",
            remedy="Journal the agent's models and tools, or choose others with points= and steps=.",
        )

    def _killed_run(self, root: Path, standard: _Standard, spot: Spot) -> Plan[Cell]:
        again = 1
        while True:
            name = spot.name if again == 1 else f"{spot.name}-again{again}"
            job = replace(self._job(root, name), deaths=(spot.death,))
            baseline = yield from self._baseline(job)
            code = yield Errand(play, (self._subject, job))
            if code == CRASH_EXIT_CODE:
                return (yield from self._taken_over(standard, spot, job, baseline))
            if again == _VICTIMS or code == TIMED_OUT:
                report = self._report(job, code)
                error = f"it did not die, but {report['error'] or report['status']}"
                return Cell(spot.step, spot.point, spot.attempt, job.run_id, "missed", error=error)
            again += 1

    def _taken_over(
        self, standard: _Standard, spot: Spot, victim: Job, baseline: Mapping[str, int]
    ) -> Plan[Cell]:
        heirs, reports = list[Job](), list[Report]()
        heir, code = replace(victim, deaths=()), 0
        while _goes_on(reports):
            heir = replace(heir, number=heir.number + 1)
            code = yield Errand(play, (self._subject, heir))
            heirs.append(heir)
            reports.append(self._report(heir, code))
            if code == TIMED_OUT:
                break  # the next one would hang, too
            if reports[-1]["status"] == "busy":
                # A system that cannot tell a dead holder from a live one: its lease is let run out.
                ahead = reports[-1]["lease_ends_at"] - time.time() + 1
                heir = replace(heir, late=max(heir.late, ahead))
            elif reports[-1]["status"] == "blocked" and not (yield from self._decided(heir)):
                break
        all_events = [job.events() for job in (victim, *heirs)]
        if reports[-1]["status"] == "blocked":
            events = itertools.chain.from_iterable(all_events)
            names = repeatable(events, reports[-1]["steps"], standard.clean.steps)
            yield from self._played_on(heir, names)
        cell = Cell(
            spot.step,
            spot.point,
            spot.attempt,
            victim.run_id,
            "failed",
            effects=(yield from self._counted(heir, baseline)),
        )
        return _measured(cell, standard, worked(all_events, reports), reports)

    def _played_on(self, job: Job, names: list[str]) -> Plan[None]:
        """Let a blocked run make those calls again that it will make once a person has decided, and no others.

        A call in parallel that blocks must not hide that another one, whose label lets it run again, happens twice.
        """
        if not names or self._subject.effects is None:
            return
        counted, deaths = Counter[str](), list[Death]()
        for name in names:
            counted[name] += 1
            deaths.append(Death("after_outcome", name, counted[name]))
        yield Errand(confirm, (self._subject, job))
        yield Errand(play, (self._subject, replace(job, number=job.number + 1, deaths=tuple(deaths))))

    def _job(self, root: Path, name: str) -> Job:
        run_id = f"{self._prefix}-{name}"
        folder = root / run_id
        folder.mkdir()
        return Job(run_id, self._settings.journal or str(folder / "journal.db"), folder)

    def _report(self, job: Job, code: int) -> Report:
        late = f"it still ran after {self._settings.timeout:g} s"
        return new_report("failed", error=late) if code == TIMED_OUT else job.report(code)

    def _baseline(self, job: Job) -> Plan[Mapping[str, int]]:
        """What was counted before a run, where all runs are counted together."""
        if not self._subject.counts_all_runs:
            return {}
        return (yield from self._counted(replace(job, number=0), {}))

    def _counted(self, job: Job, baseline: Mapping[str, int]) -> Plan[dict[str, int]]:
        if self._subject.effects is None:
            return {}
        code = yield Errand(count, (self._subject, job))
        found = job.read("counts") or {"error": self._report(job, code)["error"]}
        if "error" in found:
            raise CrashToolkitError(problem="effects failed", remedy=_REPAIR, details=found["error"])
        counts: dict[str, int] = found["counts"]
        return {tool: number - baseline.get(tool, 0) for tool, number in counts.items()}

    def _decided(self, job: Job) -> Plan[bool]:
        """Whether a person's decision lets the run go on."""
        if self._subject.resolve is None:
            return False
        code = yield Errand(decide, (self._subject, job))
        found = job.read("decided") or {"error": self._report(job, code)["error"]}
        if "error" in found:
            raise CrashToolkitError(problem="resolve failed", remedy=_REPAIR, details=found["error"])
        return bool(found["decided"])


def _measured(cell: Cell, standard: _Standard, workers: list[Worked], reports: list[Report]) -> Cell:
    last = reports[-1]
    ending: Ending = "failed" if last["status"] == "busy" else last["status"]
    equal = last["reply_digest"] == standard.clean.reply_digest
    cell = replace(
        cell,
        ending=ending,
        reply_equal=equal if ending == "finished" else None,
        blocked=blocked_effects(last["steps"]),
        settled=settled_effects(workers),
        restarts=len(reports),
        error=last["error"] or None,
    )
    repeated = repeated_model_calls(standard.answered, workers, other_course=cell.took_another_course)
    return replace(cell, model_calls_repeated=repeated)


def _goes_on(reports: list[Report]) -> bool:
    """Whether another worker takes over."""
    failures = sum(report["status"] == "failed" for report in reports)
    finished = bool(reports) and reports[-1]["status"] == "finished"
    return not finished and failures < _FAILURES and len(reports) < _RESTARTS


def _unclean(report: Report) -> CrashToolkitError:
    waiting = ", ".join(step["name"] for step in report["steps"] if step["blocked"] is not None)
    ending = f"is blocked at {waiting}" if waiting else "does not end"
    return CrashToolkitError(
        problem=f"The run that nobody disturbs {ending}",
        remedy="Let build() and run() work once without a crash first.",
        details=report["error"],
    )
