"""Kill the support agent at every point where a crash can leave something behind, and measure what comes of it.

The clean run comes first and is the standard for all others: its steps make the crash points; its requests, its reply
and what it did to the world are what each killed run must arrive at. Nothing is taken from the journal's word:
requests are counted in the workers' own logs, tickets at the desk, emails in the mailbox.
"""

import itertools
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from gnl_middleware.testing import CRASH_EXIT_CODE, POINTS

from .desk import HelpDesk, read_lines
from .errors import DemoError
from .processes import Errand, Plan, can_fork, carry_out
from .worker import PERSON, Job, Report, decide, play, rehearse, survey

_WORKERS_AT_ONCE = 2


@dataclass(frozen=True, slots=True)
class World:
    """Where a sweep takes place.

    Attributes:
        folder: Holds one folder for each run, with its desk, mailbox and logs.
        journal: URL or path of the journal that all runs share.
        relabel: Other replay labels, by tool name.
    """

    folder: Path
    journal: str
    relabel: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class CrashPoint:
    """A moment in the run: one of the points of a step, steps counted from 1."""

    number: int
    phase: str
    kind: str
    step: str

    def __str__(self) -> str:
        return f"{self.number}:{self.phase}"


@dataclass(frozen=True, slots=True)
class Clean:
    """The run that nobody disturbed.

    Attributes:
        prefix: What the run ids of this sweep begin with.
        steps: Kind and name of each step, in order.
        requests: The request bodies that its worker sent, in order.
        seconds: How long its process took, from start to end.
    """

    prefix: str
    reply: str
    steps: tuple[tuple[str, str], ...]
    requests: tuple[str, ...]
    tickets: int
    emails: int
    seconds: float

    @property
    def run_id(self) -> str:
        """Its name in the journal."""
        return f"{self.prefix}:clean"

    def points(self) -> list[CrashPoint]:
        """Every crash point of the run, in order."""
        steps = enumerate(self.steps, start=1)
        return [CrashPoint(number, phase, *step) for number, step in steps for phase in POINTS]

    def finished_requests(self, point: CrashPoint) -> int:
        """How many model calls had their outcome in the journal when a worker died at this point."""
        last = point.number if point.phase == POINTS[-1] else point.number - 1
        return sum(kind == "model" for kind, _ in self.steps[:last])


@dataclass(frozen=True, slots=True)
class Measurement:
    """What became of one killed run.

    Attributes:
        run_id: Its name in the journal.
        model_calls_repeated: Requests sent after the death although the journal held their answers, be it in the same
            words or in others.
        requests_identical: Every request, before the death and after, is byte for byte the clean run's.
        decided: If the run stopped and asked: what the person found and said.
        inquiries: What `recover` learnt from the desk, each time that it asked.
        error: Why the run did not arrive at a reply, or None.
    """

    point: CrashPoint
    run_id: str
    model_calls_repeated: int
    requests_identical: bool
    tickets: int
    emails: int
    same_reply: bool
    decided: Report | None
    inquiries: tuple[str | None, ...]
    error: str | None

    @property
    def blocked(self) -> bool:
        """The run stopped, rather than guess, and asked for a decision."""
        return self.decided is not None

    @property
    def resolved_by(self) -> str | None:
        """Who decided, if anybody had to."""
        return PERSON if self.blocked else None

    @property
    def doubled(self) -> bool:
        """A side effect happened more than once."""
        return self.tickets > 1 or self.emails > 1

    @property
    def held(self) -> bool:
        """The promise was kept: nothing was asked or done twice, and the run arrived where the clean one did."""
        counts = (self.model_calls_repeated, self.tickets, self.emails)
        return counts == (0, 1, 1) and self.same_reply and self.requests_identical and self.error is None


def run_clean(world: World) -> Clean:
    """Run the turn undisturbed.

    Raises:
        DemoError: It did not arrive at a reply.
    """
    if can_fork():
        rehearse()
    return next(carry_out([_clean_run(world)], at_once=1))


def run_killed(world: World, clean: Clean) -> Iterator[Measurement]:
    """Run the turn once for each crash point; yields as the runs end, which is about their order."""
    return carry_out((_killed_run(world, clean, point) for point in clean.points()), at_once=_WORKERS_AT_ONCE)


def _clean_run(world: World) -> Plan[Clean]:
    prefix = yield from _unused_prefix(world)
    job = _first_job(world, f"{prefix}:clean")
    began = time.monotonic()
    code = yield Errand(play, job)
    seconds = time.monotonic() - began
    report, desk = _finished(job, code), HelpDesk(job.folder)
    return Clean(
        prefix=prefix,
        reply=report["reply"],
        steps=tuple((step["kind"], step["name"]) for step in report["steps"]),
        requests=_requests([job]),
        tickets=len(desk.tickets()),
        emails=len(desk.mails()),
        seconds=seconds,
    )


def _unused_prefix(world: World) -> Plan[str]:
    """What the run ids begin with: `demo`, or `demo-2` where the journal holds an earlier sweep."""
    job = _first_job(world, "survey")
    code = yield Errand(survey, job)
    taken = {run_id.partition(":")[0] for run_id in _finished(job, code)["runs"]}
    names = itertools.chain(["demo"], (f"demo-{number}" for number in itertools.count(2)))
    return next(name for name in names if name not in taken)


def _killed_run(world: World, clean: Clean, point: CrashPoint) -> Plan[Measurement]:
    """One worker dies at the point, another takes over; where that one is blocked, a person decides for a third."""
    victim = replace(_first_job(world, f"{clean.prefix}:{point}"), crash_at=str(point))
    code = yield Errand(play, victim)
    if code != CRASH_EXIT_CODE:
        raise DemoError(f"no worker died at {point}; it ended with:\n{_report(victim, code)}")
    heir = replace(victim, number=2, crash_at=None)
    report = _report(heir, (yield Errand(play, heir)))
    workers, decided = [victim, heir], None
    if report["status"] == "blocked":
        person, last = replace(heir, number=3), replace(heir, number=4)
        decided = _finished(person, (yield Errand(decide, person)))
        report = _report(last, (yield Errand(play, last)))
        workers.append(last)
    return _measure(clean, point, workers, report, decided)


def _measure(
    clean: Clean, point: CrashPoint, workers: list[Job], report: Report, decided: Report | None
) -> Measurement:
    victim, *others = workers
    desk, already = HelpDesk(victim.folder), clean.finished_requests(point)
    before, after = _requests([victim]), _requests(others)
    again = sum(body in before[:already] for body in after)
    return Measurement(
        point=point,
        run_id=victim.run_id,
        model_calls_repeated=max(again, len(after) - (len(clean.requests) - already)),
        requests_identical=before == clean.requests[: len(before)] and after == clean.requests[already:],
        tickets=len(desk.tickets()),
        emails=len(desk.mails()),
        same_reply=report.get("reply") == clean.reply,
        decided=decided,
        inquiries=tuple(desk.inquiries()),
        error=None if report["status"] == "finished" else report.get("trace", "blocked again"),
    )


def _first_job(world: World, run_id: str) -> Job:
    folder = world.folder / run_id.replace(":", "-")
    HelpDesk.open(folder)
    return Job(run_id, world.journal, folder, 1, relabel=world.relabel)


def _requests(jobs: list[Job]) -> tuple[str, ...]:
    return tuple(line for job in jobs for line in read_lines(job.requests))


def _report(job: Job, code: int) -> Report:
    died = f"process {job.number} of {job.run_id} ended with code {code} and no report"
    return job.report() or {"status": "failed", "trace": died}


def _finished(job: Job, code: int) -> Report:
    report = _report(job, code)
    if report["status"] not in ("finished", "resolved"):
        raise DemoError(f"{job.run_id} did not finish:\n{report.get('trace', report)}")
    return report
