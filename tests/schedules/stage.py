"""What a program of the schedules works with in one process, and what the process reports when it ends."""

import contextlib
import functools
import json
import sqlite3
from collections.abc import Callable, Generator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.sqlite import SqliteSaver

from gnl_langchain import run_durable
from gnl_middleware import GnlError, Journal, Policy, Run, never
from tests.schedules.world import World

RUN_ID = "order-4471"
THREAD = "thread-1"


@dataclass(frozen=True)
class Job:
    """The work of one process.

    Attributes:
        program: The name of what it runs.
        folder: Where its world, its journal and its checkpoints are.
        number: 1 for the first process of the run, 2 for the next.
        crash_at: The crash point at which it dies, or None.
        options: ``replay``, ``saver``, ``durability`` and what the program itself reads.
    """

    program: str
    folder: str
    number: int = 1
    crash_at: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Report:
    """How a process ended that did not die.

    Attributes:
        reply: What the program returned, or None.
        error: The class of the error that it raised, or None.
        text: The error's text.
        part: For a divergence, what differs.
        steps: The journal's steps afterwards: number, kind, name, status, drifted.
    """

    reply: str | None = None
    error: str | None = None
    text: str = ""
    part: str | None = None
    steps: tuple[tuple[int, str, str, str, bool], ...] = ()

    def write(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self)), encoding="utf-8")

    @classmethod
    def read(cls, path: Path) -> "Report | None":
        if not path.exists():
            return None
        found = json.loads(path.read_text(encoding="utf-8"))
        return cls(**found | {"steps": tuple(tuple(step) for step in found["steps"])})


@dataclass(frozen=True)
class Stage:
    """The world, the journal and the checkpoints that a program works on."""

    job: Job
    world: World
    journal: Journal
    saver: BaseCheckpointSaver[Any] | None = None

    def option(self, name: str, default: str = "") -> str:
        return self.job.options.get(name, default)

    @property
    def run_options(self) -> dict[str, Any]:
        return {"replay": self.option("replay", "lenient"), "grace": float(self.option("grace", "5"))}

    @property
    def never(self) -> Policy:
        """The policy of a side effect whose ``recover`` knows the truth."""
        return never(recover=self.world.recover)

    def run(self) -> Run:
        """The run, for programs that open it themselves."""
        return self.journal.run(RUN_ID, **self.run_options)

    def durable(self, agent: Any, request: Any, *, thread: str = THREAD) -> str:
        """Run an agent as a user would: the same call on every attempt."""
        return self.durable_value(agent, request, thread=thread)["messages"][-1].text

    def durable_value(self, agent: Any, request: Any, *, thread: str = THREAD, **place: Any) -> Any:
        """The same for any graph; ``place`` may name a checkpoint of the thread."""
        return run_durable(
            self._paced(agent),
            request,
            run_id=RUN_ID,
            journal=self.journal,
            config={"configurable": {"thread_id": thread, **place}, "recursion_limit": 100},
            **self.run_options,
        )

    def _paced(self, agent: Any) -> Any:
        """The agent, writing its checkpoints as the options say: ``durability`` is an argument of ``invoke`` only."""
        if self.saver is not None and (durability := self.option("durability")):
            agent.invoke = functools.partial(agent.invoke, durability=durability)
        return agent


Program = Callable[[Stage], str]
PROGRAMS: dict[str, Program] = {}


def program(function: Program) -> Program:
    """Make a function known to jobs by its name."""
    PROGRAMS[function.__name__] = function
    return function


def play(job: Job, *, saver: BaseCheckpointSaver[Any] | None = None) -> Report:
    """Run a job's program to its end or its death, and leave a report in its folder."""
    folder = Path(job.folder)
    with Journal(folder / "journal.db") as journal, _checkpoints(job, saver) as checkpoints:
        report = _ended(Stage(job, World(folder), journal, checkpoints))
    report.write(folder / f"report-{job.number}.json")
    return report


def _ended(stage: Stage) -> Report:
    reply, error = None, None
    try:
        reply = PROGRAMS[stage.job.program](stage)
    except Exception as raised:  # noqa: BLE001
        error = raised
    steps = tuple(
        (step.number, step.kind, step.name, step.status, step.drifted) for step in stage.journal.steps(RUN_ID)
    )
    if error is None:
        return Report(reply=reply, steps=steps)
    name = next(kind.__name__ for kind in type(error).__mro__ if not _is_adapters(kind))
    part = getattr(error, "part", None) if isinstance(error, GnlError) else None
    return Report(error=name, text=str(error), part=part, steps=steps)


def _is_adapters(kind: type) -> bool:
    return kind.__module__.startswith("gnl_langchain")


@contextlib.contextmanager
def _checkpoints(
    job: Job, saver: BaseCheckpointSaver[Any] | None
) -> Generator[BaseCheckpointSaver[Any] | None]:
    if saver is not None or job.options.get("saver", "none") != "sqlite":
        yield saver
        return
    path = Path(job.folder, "checkpoints.db")
    with contextlib.closing(sqlite3.connect(path, check_same_thread=False)) as connection:
        yield SqliteSaver(connection)
