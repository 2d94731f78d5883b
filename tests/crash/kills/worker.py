"""One attempt at a run, in a process that may be killed at any moment."""

import asyncio
import json
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gnl_langchain import arun_durable, run_durable
from gnl_middleware import Journal

from .agents import QUESTION, SHAPES, Shop
from .world import World

WAYS = ("invoke", "ainvoke", "stream", "astream")
KINDS = tuple((shape, way) for shape in SHAPES for way in WAYS)
_MODES = ["messages", "values"]


@dataclass(frozen=True, slots=True)
class Job:
    """The work of one process; the same for the one that is killed and for those that take over.

    Attributes:
        shape: Which agent, one of ``SHAPES``.
        way: Which of the agent's methods is called.
        run_id: The run.
        folder: Where its world and its reports are.
        journal: The journal's file or URL, which other runs share.
        lock: Whether the run has one worker at a time.
    """

    shape: str
    way: str
    run_id: str
    folder: str
    journal: str
    lock: bool = True

    @property
    def world(self) -> World:
        """What the run did."""
        return World(Path(self.folder, "world"))

    def report(self) -> dict[str, Any]:
        """What the last process left when it ended; empty where none did."""
        path = Path(self.folder, "report.json")
        return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}

    def write_report(self, report: dict[str, Any]) -> None:
        """Leave a report, whole."""
        draft = Path(self.folder, "report.draft")
        draft.write_text(json.dumps(report), encoding="utf-8")
        draft.rename(Path(self.folder, "report.json"))


def play(job: Job) -> None:
    """Work on the run to its end, then read it back with the models and tools switched off."""
    try:
        job.write_report(_played(job))
    except Exception:  # noqa: BLE001 - told to the test, whatever it is
        job.write_report({"error": traceback.format_exc()})


def _played(job: Job) -> dict[str, Any]:
    with Journal(job.journal) as journal:
        job.world.note_all(_recorded(journal, job.run_id))
        reply = _reply(job, journal)
        job.world.note_all(_recorded(journal, job.run_id))
        again = _reply(job, journal, offline=True)
        (status,) = (run.status for run in journal.runs() if run.run_id == job.run_id)
    return {"reply": reply, "again": again, "status": status}


def _recorded(journal: Journal, run_id: str) -> list[dict[str, Any]]:
    """What the journal holds of the run: a later attempt must find all of it."""
    done = [step for step in journal.steps(run_id) if step.status == "done"]
    return [{"what": "recorded", "name": _name(step)} for step in done]


def _name(step: Any) -> str:
    """The step's name in the world."""
    if step.kind != "model":
        return f"{step.name.removesuffix('_later')}:{step.arguments['order']}"
    # A reply says which turn it is; streamed, it is kept word by word.
    kept = step.value.get("chunks") or step.value["generations"]
    words = "".join(str(_content(part["message"])) for part in kept).split()
    return f"{words[3]}/{words[1]}"


def _content(message: Any) -> Any:
    return message["value"]["content"] if isinstance(message, dict) else message.content


def _reply(job: Job, journal: Journal, **asked: Any) -> str:
    options: dict[str, Any] = {"lock": job.lock, **asked}
    agent = Shop(job.world, streamed="stream" in job.way).agent("outer", SHAPES[job.shape])
    if job.way == "invoke":
        state = run_durable(agent, QUESTION, run_id=job.run_id, journal=journal, **options)
    elif job.way == "ainvoke":
        state = asyncio.run(arun_durable(agent, QUESTION, run_id=job.run_id, journal=journal, **options))
    elif job.way == "stream":
        with journal.run(job.run_id, **options):
            state = [part for mode, part in agent.stream(QUESTION, stream_mode=_MODES) if mode == "values"][
                -1
            ]
    else:
        state = asyncio.run(_streamed(agent, journal, job.run_id, options))
    return str(state["messages"][-1].text)


async def _streamed(agent: Any, journal: Journal, run_id: str, options: dict[str, Any]) -> Any:
    async with journal.run(run_id, **options):
        parts = agent.astream(QUESTION, stream_mode=_MODES)
        return [part async for mode, part in parts if mode == "values"][-1]
