"""Two agents of ``create_agent`` in one graph: the first hands over to the second, which does the work."""

from typing import Any

from langchain.agents import create_agent
from langchain.tools import ToolRuntime
from langchain_core.messages import ToolMessage
from langchain_core.tools import tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command, Send

from gnl_langchain import JournalMiddleware
from tests.langchain.scripted import calling, said
from tests.langgraph.matrix.jobs import BOTH_AT_ONCE, BOTH_IN_TURN, BRANCHES, DESK, ONE, World, model
from tests.langgraph.matrix.written import loop


def _handover(*, times: int = 1) -> Any:
    @tool
    def hand_over(runtime: ToolRuntime) -> Command[str]:
        """Hand over."""
        answer = ToolMessage("Billing goes on.", tool_call_id=runtime.tool_call_id)
        if times == 1:
            messages = [*runtime.state["messages"], answer]
            return Command(goto="billing", update={"messages": messages}, graph=Command.PARENT)
        sent = [Send("billing", {"messages": [("user", "the same in each")]}) for _ in range(times)]
        return Command(goto=sent, graph=Command.PARENT)

    return hand_over


def _agent(world: World, name: str, script: Any, *tools: Any) -> Any:
    journal = JournalMiddleware(policies=world.policies(*tools))
    return create_agent(model(*script, name=name), list(tools), name=name, middleware=[journal])


def _team(world: World, billing: Any, saver: Any, *, times: int = 1) -> Any:
    triage = _agent(world, "triage", (calling("hand_over"), said("unused")), _handover(times=times))
    graph = StateGraph(MessagesState)
    graph.add_node("triage", triage, destinations=("billing",))
    graph.add_node("billing", billing)
    graph.add_edge(START, "triage")
    return graph.compile(checkpointer=saver)


def _behind(script: Any) -> Any:
    """The second agent sees the first one's reply in its history."""
    return (said("unused"), *script)


def sequential(world: World, saver: Any) -> Any:
    """One call in each turn."""
    billing = _agent(world, "billing", _behind(BOTH_IN_TURN), world.tool("book"), world.tool("mail"))
    return _team(world, billing, saver)


def parallel(world: World, saver: Any) -> Any:
    """Two calls in one turn."""
    billing = _agent(world, "billing", _behind(BOTH_AT_ONCE), world.tool("book"), world.tool("mail"))
    return _team(world, billing, saver)


def nested(world: World, saver: Any) -> Any:
    """A tool that runs a graph of its own."""
    inner = loop(world, BOTH_IN_TURN, world.tool("book"), world.tool("mail"))
    return _team(world, _agent(world, "billing", _behind(DESK), world.tool("desk", desk=inner)), saver)


def fanned_out(world: World, saver: Any) -> Any:
    """Handed over to one agent three times at once, with equal prompts."""
    return _team(world, _agent(world, "billing", ONE, world.tool("book")), saver, times=BRANCHES)


def pausing(world: World, saver: Any) -> Any:
    """Two calls in one turn, one of which waits for a person."""
    billing = _agent(
        world, "billing", _behind(BOTH_AT_ONCE), world.tool("book"), world.tool("mail", asks=True)
    )
    return _team(world, billing, saver)


SHAPES = {
    "sequential": sequential,
    "parallel": parallel,
    "nested": nested,
    "fan-out": fanned_out,
    "interrupt": pausing,
}
