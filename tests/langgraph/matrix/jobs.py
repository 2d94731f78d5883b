"""The job of a matrix: a graph, on a thread of its own, with an answer to its pause; the same call on every attempt."""

import asyncio
import contextlib
import json
import sqlite3
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from pathlib import Path
from typing import Any

from langchain_core.tools import StructuredTool
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.types import Command, interrupt

from gnl_langchain import arun_durable, astream_durable, run_durable, stream_durable
from gnl_middleware import Done, InterruptedCall, NotDone, Policy, current_step, never, safe
from gnl_middleware.testing import EffectLog
from tests.langchain.scripted import QUESTION, ScriptedModel, calling, said, turns

GraphOf = Callable[[Any], Any]
"""From a checkpointer to a graph."""
BOTH_IN_TURN = (calling("book", order="7", text="I book it now."), calling("mail", order="7"), said())
BOTH_AT_ONCE = (calling("book", "mail", order="7"), said())
DESK = (calling("desk", order="7"), said("The desk did it."))
ONE = (calling("book", order="7"), said())
BRANCHES = 3


class World:
    """What happened, counted whatever key it came with; and what the service knows of a key.

    Args:
        folder: Outlives the workers.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._service = EffectLog(folder / "service.jsonl")

    def act(self, name: str) -> str:
        """A side effect; that it happened and what it was called with are one write, since a worker may die behind any."""
        self._service.note(name, key=current_step().idempotency_key)
        return f"did {name}"

    def effects(self, run_id: str) -> Mapping[str, int]:
        """How often each happened, also what happened again with the same key."""
        path = Path(self._service.path)
        noted = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        lines = [json.loads(line) for line in noted]
        return dict(Counter(line["tool"] for line in lines if line["run_id"] == run_id))

    def recover(self, call: InterruptedCall) -> Done | NotDone:
        """The truth about an interrupted call."""
        done = self._service.has(call.tool, key=call.idempotency_key)
        return Done(f"did {call.tool}") if done else NotDone()

    @property
    def never(self) -> Policy:
        """The label of what must happen once."""
        return never(recover=self.recover)

    def tool(self, name: str, *, asks: bool = False, desk: Any = None) -> Any:
        """A tool that acts, maybe after a person has answered; or one that hands its work to a graph of its own."""

        def act(order: str) -> str:
            if desk is not None:
                return desk.invoke(QUESTION)["messages"][-1].text
            if asks:
                interrupt("may I?")
            return self.act(name)

        async def act_async(order: str) -> str:
            if desk is not None:
                return (await desk.ainvoke(QUESTION))["messages"][-1].text
            return act(order)

        return StructuredTool.from_function(act, act_async, name=name, description="Act.")

    def policies(self, *tools: Any) -> dict[str, Policy]:
        """The labels of these tools."""
        return {tool.name: safe if tool.name in ("desk", "hand_over") else self.never for tool in tools}


def model(*script: Any, name: str = "scripted") -> ScriptedModel:
    """A model that says these, one after another."""
    return ScriptedModel(script=turns(*script), model_name=name)


class Job:
    """How a worker runs a graph to its end, through its pause.

    Args:
        world: Holds the checkpoints.
        way: ``invoke``, ``ainvoke``, ``stream`` or ``astream``.
        saved: Whether there are checkpoints.
        durability: How they are written.
    """

    def __init__(self, world: World, way: str, *, saved: bool, durability: str = "sync") -> None:
        self._world, self._way, self._saved, self._durability = world, way, saved, durability

    def __call__(self, graph_of: GraphOf, run_id: str, journal: Any) -> Any:
        """Run it."""
        options = {"run_id": run_id, "journal": journal}
        if self._saved:
            config = {"configurable": {"thread_id": run_id}, "recursion_limit": 50}
            options |= {"config": config, "durability": self._durability}
        if self._way.startswith("a"):
            return asyncio.run(self._ended_async(graph_of, options))
        with self._saver(run_id) as saver:
            graph = graph_of(saver)
            state = self._called(graph, QUESTION, options)
            if _is_paused(state):
                state = self._called(graph, Command(resume="yes"), options)
        return _reply(state)

    async def _ended_async(self, graph_of: GraphOf, options: dict[str, Any]) -> Any:
        async with self._async_saver(options["run_id"]) as saver:
            graph = graph_of(saver)
            state = await self._called_async(graph, QUESTION, options)
            if _is_paused(state):
                state = await self._called_async(graph, Command(resume="yes"), options)
        return _reply(state)

    def _called(self, graph: Any, given: Any, options: dict[str, Any]) -> Any:
        if self._way == "invoke":
            return run_durable(graph, given, **options)
        last: dict[str, Any] = {}
        for mode, part in stream_durable(
            graph, given, stream_mode=["messages", "values", "updates"], **options
        ):
            last = _last(last, mode, part)
        return last

    async def _called_async(self, graph: Any, given: Any, options: dict[str, Any]) -> Any:
        if self._way == "ainvoke":
            return await arun_durable(graph, given, **options)
        last: dict[str, Any] = {}
        modes = ["messages", "values", "updates"]
        async for mode, part in astream_durable(graph, given, stream_mode=modes, **options):
            last = _last(last, mode, part)
        return last

    def _path(self, run_id: str) -> str:
        return str(self._world.folder / f"checkpoints-{run_id}.db")

    @contextlib.contextmanager
    def _saver(self, run_id: str) -> Generator[Any]:
        if not self._saved:
            yield None
            return
        with contextlib.closing(sqlite3.connect(self._path(run_id), check_same_thread=False)) as connection:
            yield SqliteSaver(connection)

    @contextlib.asynccontextmanager
    async def _async_saver(self, run_id: str) -> AsyncGenerator[Any]:
        if not self._saved:
            yield None
            return
        async with AsyncSqliteSaver.from_conn_string(self._path(run_id)) as saver:
            yield saver


def _last(last: Any, mode: str, part: Any) -> Any:
    if mode == "values" or (mode == "updates" and _is_paused(part)):
        return part
    return last


def _is_paused(state: Any) -> bool:
    return isinstance(state, dict) and "__interrupt__" in state


def _reply(state: Any) -> Any:
    """What a graph ended with, as plain data."""
    if isinstance(state, dict) and "messages" in state:
        return [str(message.content).strip() for message in state["messages"]]
    return state["said"] if isinstance(state, dict) else state
