"""Run an agent inside a run of a journal, in each way in which LangChain runs one."""

import asyncio
from dataclasses import dataclass
from typing import Any

from gnl_middleware import Journal, Run
from tests.langchain.scripted import QUESTION

WAYS = ("invoke", "ainvoke", "stream", "astream")
_MODES = ["messages", "values"]


@dataclass(frozen=True, slots=True)
class Driven:
    """What an agent said, and how much of it ran.

    Attributes:
        state: The agent's last state.
        chunks: The text of each streamed message chunk.
        ran: Steps that ran.
        read_back: Steps whose outcome was read back.
    """

    state: dict[str, Any]
    chunks: list[str]
    ran: int
    read_back: int

    @property
    def reply(self) -> str:
        """The text of the last message."""
        return str(self.state["messages"][-1].text)


def drive(
    journal: Journal,
    agent: Any,
    way: str = "invoke",
    *,
    run_id: str = "run",
    given: Any = QUESTION,
    config: Any = None,
    **options: Any,
) -> Driven:
    """Run the agent to its end inside a run; ``way`` is the method of the agent that is called."""
    opened = journal.run(run_id, **options)
    if way.startswith("a"):
        return asyncio.run(_driven_async(opened, agent, way, given, config))
    with opened as run:
        state, chunks = _called(agent, way, given, config)
    return Driven(state, chunks, run.steps_ran, run.steps_read_back)


def drive_plain(agent: Any, way: str) -> dict[str, Any]:
    """The last state of an agent that runs outside of any run."""
    if way.startswith("a"):
        return asyncio.run(_called_async(agent, way, QUESTION, None))[0]
    return _called(agent, way, QUESTION, None)[0]


async def _driven_async(opened: Run, agent: Any, way: str, given: Any, config: Any) -> Driven:
    async with opened as run:
        state, chunks = await _called_async(agent, way, given, config)
    return Driven(state, chunks, run.steps_ran, run.steps_read_back)


def _called(agent: Any, way: str, given: Any, config: Any) -> tuple[Any, list[str]]:
    if way == "invoke":
        return agent.invoke(given, config), []
    state, chunks = None, []
    for mode, part in agent.stream(given, config, stream_mode=_MODES):
        if mode == "messages":
            chunks.append(str(part[0].content))
        else:
            state = part
    return state, chunks


async def _called_async(agent: Any, way: str, given: Any, config: Any) -> tuple[Any, list[str]]:
    if way == "ainvoke":
        return await agent.ainvoke(given, config), []
    state, chunks = None, []
    async for mode, part in agent.astream(given, config, stream_mode=_MODES):
        if mode == "messages":
            chunks.append(str(part[0].content))
        else:
            state = part
    return state, chunks
