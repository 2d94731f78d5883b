"""What runs in the sweep's processes: one recording, played by a journalled agent that may be killed half way.

What the outside world knows is on the disk, so that it outlives its worker: which recorded answers the provider has
given, with the request bodies that it was sent, and which tools were executed. A provider gives each answer once.
"""

import json
import os
import sys
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gnl_langchain import JournalMiddleware, journaled_model, journaled_tools
from gnl_middleware import Done, InterruptedCall, Journal, NotDone, current_step, never, safe
from gnl_middleware.testing import install_crash_points, observe_points
from tests.recorded.recordings import DRIVERS, FOLDER

# The drivers stand beside the recordings and import each other by plain name.
sys.path.insert(0, str(DRIVERS))
from drive_langchain import LangChainDriver
from drive_langgraph import LangGraphDriver
from replay import playing

RUN_ID = "recorded"


@dataclass(frozen=True, slots=True)
class Job:
    """The work of one process.

    Attributes:
        recording: The recording's name.
        synchronous: Whether the agent runs by ``invoke`` and ``stream`` or by their asynchronous twins.
        folder: Holds the journal and what the world knows; the same for the worker that dies and its heirs.
        number: 1 for the first process, 2 for the next.
        crash_at: The crash point at which the process dies.
        label: The replay label of every tool: ``never`` with a ``recover``, or ``safe``.
        framework: What plays it: agents of ``langchain`` or ``openai_agents``, or a graph of ``langgraph``.
    """

    recording: str
    synchronous: bool
    folder: Path
    number: int = 1
    crash_at: str | None = None
    label: str = "never"
    framework: str = "langchain"

    @property
    def answers(self) -> "Log":
        """The provider's answers, in the order in which they were given."""
        return Log(self.folder / "answers.jsonl")

    @property
    def executed(self) -> "Log":
        """The tools that were executed."""
        return Log(self.folder / "executed.jsonl")

    @property
    def points(self) -> "Log":
        """The points that the clean run's steps passed, and between them the answers that were given."""
        return Log(self.folder / "points.jsonl")

    def report(self) -> dict[str, Any] | None:
        """What the process found when it ended; None where it died."""
        path = self.folder / f"report-{self.number}.json"
        return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None

    def write_report(self, report: dict[str, Any]) -> None:
        """Leave the report, whole."""
        path = self.folder / f"report-{self.number}.json"
        draft = path.with_suffix(".draft")
        draft.write_text(json.dumps(report, default=repr), encoding="utf-8")
        draft.rename(path)


@dataclass(frozen=True, slots=True)
class Log:
    """Entries on the disk, one JSON object a line."""

    path: Path

    def append(self, **entry: Any) -> None:
        """Add an entry; it is on the disk when this returns."""
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")
            file.flush()
            os.fsync(file.fileno())

    def entries(self) -> list[dict[str, Any]]:
        """All entries, the oldest first."""
        if not self.path.exists():
            return []
        return [json.loads(line) for line in self.path.read_text(encoding="utf-8").splitlines()]


class _Journaled:
    """The recorded application, with every tool labelled alike and one journal run around all of it."""

    def begin(self, job: Job) -> None:
        """Take the job on."""
        self.job = job
        # Requests and tools are counted on the disk, over all attempts.
        self.score.counted = False

    async def adrive(self) -> Any:
        """Play all runs of the recording inside one run of the journal."""
        with playing(self.path, self.score) as tape, Journal(self.job.folder / "journal.db") as journal:
            _once_over_all_attempts(tape, self.job.answers)
            if self.sync:
                with journal.run(RUN_ID):
                    await self.all_runs()
            else:
                async with journal.run(RUN_ID):
                    await self.all_runs()
        return self.score

    async def all_runs(self) -> None:
        """The recorded runs, one after another."""
        for run in self.rec.runs:
            self.score.finals.append(await self.run_one(run))

    def _answer(self, run: Any, name: str, args: Any, call_id: str) -> str:
        answer = super()._answer(run, name, args, call_id)
        step = current_step()
        self.job.executed.append(
            name=name, args=args, call_id=call_id, key=None if step is None else step.idempotency_key
        )
        return answer

    def recover(self, call: InterruptedCall) -> Done | NotDone:
        """Look whether the tool was executed; the recording knows what it answered."""
        for entry in self.job.executed.entries():
            if entry["key"] == call.idempotency_key:
                return Done(self.rec.outputs[entry["call_id"]])
        return NotDone()


class JournaledDriver(_Journaled, LangChainDriver):
    """The application as an agent."""

    def __init__(self, job: Job) -> None:
        policy = safe if job.label == "safe" else never(recover=self.recover)
        super().__init__(
            FOLDER / f"{job.recording}.yaml",
            middleware=[JournalMiddleware(default_policy=policy)],
            sync=job.synchronous,
        )
        self.begin(job)


class JournaledGraphDriver(_Journaled, LangGraphDriver):
    """The application as a hand-written graph: one node for each agent, and one for its tools."""

    def __init__(self, job: Job) -> None:
        self.policy = safe if job.label == "safe" else never(recover=self.recover)
        super().__init__(FOLDER / f"{job.recording}.yaml", sync=job.synchronous)
        self.begin(job)

    def model(self, *arguments: Any, **options: Any) -> Any:
        """A journalled model."""
        return journaled_model(super().model(*arguments, **options))

    def tool(self, *arguments: Any, **options: Any) -> Any:
        """A tool that somebody else made."""
        (tool,) = journaled_tools([super().tool(*arguments, **options)], default_policy=self.policy)
        return tool


class World:
    """What the provider and the tools of a recording know, over all attempts."""

    def __init__(self, job: Job, outputs: Any) -> None:
        self._job, self._outputs = job, outputs

    def remember(self, tape: Any) -> None:
        """Let the provider give each answer once."""
        _once_over_all_attempts(tape, self._job.answers)

    def executed(self, name: str, args: Any, call_id: str) -> None:
        """Note that a tool was executed."""
        key = current_step().idempotency_key
        self._job.executed.append(name=name, args=args, call_id=call_id, key=key)

    def recover(self, call: InterruptedCall) -> Done | NotDone:
        """Look whether the tool was executed; the recording knows what it answered."""
        for entry in self._job.executed.entries():
            if entry["key"] == call.idempotency_key:
                return Done(self._outputs[entry["call_id"]])
        return NotDone()


def _driver(job: Job) -> Any:
    if job.framework == "langchain":
        return JournaledDriver(job)
    if job.framework == "langgraph":
        return JournaledGraphDriver(job)
    from cassette import load

    from tests.recorded.of_openai_agents import JournaledAgents

    path = FOLDER / f"{job.recording}.yaml"
    return JournaledAgents(job, path, World(job, load(path).outputs))


def _once_over_all_attempts(tape: Any, answers: Log) -> None:
    """Let the provider remember, across the deaths of its clients, which answers it has given."""
    for entry in answers.entries():
        tape.play_counts[entry["index"]] = 1
    play = tape.play_response

    def play_and_remember(request: Any) -> Any:
        before = dict(tape.play_counts)
        response = play(request)
        (index,) = (place for place, count in tape.play_counts.items() if count != before.get(place, 0))
        answers.append(index=index, body=_as_asked((request.body or b"").decode()))
        return response

    tape.play_response = play_and_remember


def _as_asked(body: str) -> str:
    """A request without the cache key that the Agents SDK makes up anew for each run."""
    if '"prompt_cache_key":"agents-sdk:run:' not in body:
        return body
    asked = json.loads(body)
    del asked["prompt_cache_key"]
    return json.dumps(asked)


def play(job: Job) -> None:
    """Work on the run: the same in the first worker and in every one that takes over. Reports, unless it dies."""
    os.environ.pop("GNL_CRASH_AT", None)
    if job.crash_at is not None:
        os.environ["GNL_CRASH_AT"] = job.crash_at
        install_crash_points()
    try:
        job.write_report(_played(job))
    except Exception:  # noqa: BLE001
        job.write_report({"error": traceback.format_exc()})


def play_clean(job: Job) -> None:
    """Play the recording undisturbed, and note which points its steps pass and which answers come between them."""

    def note(point: str, number: int, name: str) -> None:
        job.points.append(point=point, number=number, name=name, answers=len(job.answers.entries()))

    observe_points(note)
    try:
        play(job)
    finally:
        observe_points(None)


def _played(job: Job) -> dict[str, Any]:
    driver = _driver(job)
    score = driver.drive()
    score.tools = [(entry["name"], entry["args"]) for entry in job.executed.entries()]
    with Journal(job.folder / "journal.db") as journal:
        kinds = [(step.number, step.kind) for step in journal.steps(RUN_ID)]
    return {
        "differs": score.check(),
        "kinds": kinds,
        "events": score.chunks,
        "recorded_answers": driver.rec.n_calls,
    }
