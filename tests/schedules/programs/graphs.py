"""Graphs around agents: nodes side by side, agents as nodes, branches that are sent out, tasks, and nodes that are retried."""

import operator
from pathlib import Path
from typing import Annotated, Any, TypedDict

from langchain.agents import create_agent
from langgraph.func import entrypoint, task
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import RetryPolicy, Send

from gnl_langchain import JournalMiddleware
from tests.schedules.loops import Loop
from tests.schedules.scripted_model import scripted
from tests.schedules.stage import Stage, program

from .branches import REQUEST, refunds
from .turns import refund_tool

BRANCHES = 3


class Gathered(TypedDict):
    out: Annotated[list[str], operator.add]


def _loop(stage: Stage, name: str, count: int) -> Loop:
    tools = {"refund": refund_tool(stage)}
    return Loop(scripted(refunds(name, count), stage.world), tools, stage.never, jitter=0.003)


@program
def nodes_side_by_side(stage: Stage) -> str:
    """Two nodes at once, one with more to do; model and tools are called inside of them. Then a third one."""
    graph = StateGraph(Gathered)
    for name, count in (("A", 1), ("B", 3)):
        loop = _loop(stage, name, count)
        graph.add_node(name, lambda state, loop=loop, name=name: {"out": [loop.ask(f"go {name}")]})
        graph.add_edge(START, name)
        graph.add_edge(name, "end")
    graph.add_node("end", lambda state: {"out": [_loop(stage, "Z", 1).ask("end")]})
    return " ".join(sorted(stage.durable_value(graph.compile(checkpointer=stage.saver), {"out": []})["out"]))


def _agent(stage: Stage, name: str, count: int) -> Any:
    return create_agent(
        scripted(refunds(name, count), stage.world),
        [refund_tool(stage)],
        middleware=[JournalMiddleware(policies={"refund": stage.never})],
    )


@program
def agents_as_nodes(stage: Stage) -> str:
    """Two agents as subgraphs side by side: the same inner nodes, the same prompt."""
    graph = StateGraph(MessagesState)
    for name, count in (("A", 1), ("B", 3)):
        graph.add_node(name, _agent(stage, name, count))
        graph.add_edge(START, name)
    state = stage.durable_value(graph.compile(checkpointer=stage.saver), REQUEST)
    return " ".join(sorted(message.text for message in state["messages"] if message.text.startswith("done")))


@program
def sent_to_an_agent(stage: Stage) -> str:
    """One agent as a subgraph that is sent to three times with one prompt: all are meant."""
    graph = StateGraph(MessagesState)
    graph.add_node("agent", _agent(stage, "s", 2))
    graph.add_node("plan", lambda state: {"messages": []})
    graph.add_edge(START, "plan")
    graph.add_conditional_edges("plan", lambda state: [Send("agent", REQUEST)] * BRANCHES, ["agent"])
    state = stage.durable_value(graph.compile(checkpointer=stage.saver), REQUEST)
    return " ".join(message.text for message in state["messages"] if message.text.startswith("done"))


@program
def tasks_side_by_side(stage: Stage) -> str:
    """The functional API: tasks at once, two of them alike, then work in the body, then one more task."""

    @task
    def work(name: str) -> str:
        return _loop(stage, name, 2).ask(f"go {name}")

    @task
    def same(number: int) -> str:
        return _loop(stage, "same", 1).ask("same")

    @entrypoint(checkpointer=stage.saver)
    def main(given: Any) -> list[str]:
        begun = [work("A"), work("B"), same(1), same(2)]
        ended = [each.result() for each in begun]
        return [*ended, _loop(stage, "Z", 1).ask("end"), work("C").result()]

    return " ".join(stage.durable_value(main, {"go": 1}))


@program
def retried_node(stage: Stage) -> str:
    """A node with a retry policy fails once, after the effects of its tools."""
    failed = Path(stage.job.folder, "failed")

    def node(state: Gathered) -> Any:
        said = _loop(stage, "R", 2).ask("go")
        if not failed.exists():
            failed.touch()
            raise ConnectionError("after the effects")
        return {"out": [said]}

    graph = StateGraph(Gathered)
    policy = RetryPolicy(initial_interval=0.001, retry_on=ConnectionError)
    graph.add_node("node", node, retry_policy=policy)
    graph.add_edge(START, "node")
    return " ".join(stage.durable_value(graph.compile(checkpointer=stage.saver), {"out": []})["out"])
