"""What runs in the demo's processes: workers, one of which dies half way, and the person who settles a blocked run.

A process reports by a file when it ends. One that died leaves none, which is how its death is told from an error.
"""

import json
import os
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from langchain_core.messages import HumanMessage

from gnl_langchain import run_durable
from gnl_middleware import Done, GnlError, Journal, NotDone, SideEffectRetryBlockedError, Step
from gnl_middleware.testing import install_crash_points

from .agent import REQUEST, support_agent, support_model
from .desk import SENT, HelpDesk, Mail, append_line
from .traffic import recorded_traffic

PERSON = "demo"
"""Who decided: the `--by` of the demo's resolve commands."""

# Where a dead holder cannot be told from a live one, the next worker waits until the lease has run out.
_LEASE: dict[str, Any] = {} if sys.platform == "linux" else {"lease": 2.0, "on_busy": "wait"}

Report = dict[str, Any]
"""What a process leaves behind: `status`, and what goes with it."""


@dataclass(frozen=True, slots=True)
class Job:
    """The work of one process.

    Attributes:
        run_id: The run; the same for the worker that dies and for those that take over.
        journal: URL or path of the journal that all runs share.
        folder: Where this run's desk, mailbox, logs and reports are.
        number: 1 for the first process of the run, 2 for the next.
        crash_at: The crash point at which the process dies, such as `4:after_body`.
        relabel: Other replay labels, by tool name.
    """

    run_id: str
    journal: str
    folder: Path
    number: int
    crash_at: str | None = None
    relabel: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def requests(self) -> Path:
        """The log of the request bodies that the process sent."""
        return self.folder / f"requests-{self.number}.jsonl"

    def report(self) -> Report | None:
        """What the process reported; None where it died first."""
        path = self._report_path
        return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None

    def write_report(self, report: Report) -> None:
        """Leave the report, whole: it appears under its name once it is on the disk."""
        draft = self._report_path.with_suffix(".draft")
        append_line(draft, json.dumps(report))
        draft.rename(self._report_path)

    @property
    def _report_path(self) -> Path:
        return self.folder / f"report-{self.number}.json"


def rehearse() -> None:
    """Play one turn in this process, so that children forked from it find everything imported and built.

    It leaves no thread and no open file, which is what makes the forks safe.
    """
    with tempfile.TemporaryDirectory(prefix="gnl-demo-") as folder:
        _turn(Job("rehearsal", str(Path(folder, "journal.db")), Path(folder), 1))


def play(job: Job) -> None:
    """Work on the run. The call is the same in the first worker and in every one that takes over."""
    os.environ.pop("GNL_CRASH_AT", None)
    if job.crash_at is not None:
        os.environ["GNL_CRASH_AT"] = job.crash_at
        install_crash_points()
    _reporting(job, _turn)


def decide(job: Job) -> None:
    """Settle the blocked call as a person would: look for its effect, then tell the journal what was found."""
    _reporting(job, _decision)


def survey(job: Job) -> None:
    """Tell which runs the journal holds already."""
    _reporting(job, _known_runs)


def _reporting(job: Job, work: Callable[[Job], Report]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle: it ends its children
    try:
        job.write_report(work(job))
    except GnlError as error:
        job.write_report({"status": "failed", "trace": f"{type(error).__name__}: {error}"})
    except Exception:  # noqa: BLE001 - whatever went wrong is what the parent must show
        job.write_report({"status": "failed", "trace": traceback.format_exc()})


def _turn(job: Job) -> Report:
    agent = support_agent(HelpDesk.open(job.folder), model=support_model(), relabel=job.relabel)
    request = {"messages": [HumanMessage(REQUEST)]}
    with Journal(job.journal) as journal, recorded_traffic(job.requests):
        try:
            state = run_durable(agent, request, run_id=job.run_id, journal=journal, **_LEASE)
        except SideEffectRetryBlockedError as blocked:
            return {"status": "blocked", "tool": blocked.tool}
        steps = [{"kind": step.kind, "name": step.name} for step in journal.steps(job.run_id)]
    return {"status": "finished", "reply": str(state["messages"][-1].text), "steps": steps}


def _decision(job: Job) -> Report:
    with Journal(job.journal) as journal:
        step = next(step for step in journal.steps(job.run_id) if step.blocked)
        result = _look(HelpDesk.open(job.folder), step)
        decision = NotDone() if result is None else Done(result)
        journal.resolve(job.run_id, step.name, decision, by=PERSON, note="looked for the effect itself")
    return {"status": "resolved", "tool": step.name, "result": result}


def _look(desk: HelpDesk, step: Step) -> str | None:
    """What the call would have returned if its effect is there to be seen, else None."""
    if step.name == "send_email":
        mail = Mail(**step.arguments)
        return SENT if mail in desk.mails() else None
    if step.name == "create_ticket":
        return next(iter(desk.tickets()), None)
    return None  # a lookup leaves nothing to see, and may simply run again


def _known_runs(job: Job) -> Report:
    with Journal(job.journal) as journal:
        return {"status": "finished", "runs": [run.run_id for run in journal.runs()]}
