"""Graphs written by hand: a model node, a node for its tools, and nodes that something is sent to."""

import operator
from typing import Annotated, Any, TypedDict

from langchain_core.runnables import RunnableLambda
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import Send

from gnl_langchain import journaled_model
from gnl_langgraph import JournalToolNode, journaled_node
from tests.langgraph.matrix.jobs import BOTH_AT_ONCE, BOTH_IN_TURN, BRANCHES, DESK, World, model


def loop(world: World, script: Any, *tools: Any, saver: Any = None) -> Any:
    """Ask the model, call its tools, until it asks for none."""
    asked = journaled_model(model(*script))

    def ask(state: Any) -> Any:
        return {"messages": [asked.invoke(state["messages"])]}

    async def ask_async(state: Any) -> Any:
        return {"messages": [await asked.ainvoke(state["messages"])]}

    graph = StateGraph(MessagesState)
    graph.add_node("model", RunnableLambda(ask, ask_async))
    graph.add_node("tools", JournalToolNode(list(tools), policies=world.policies(*tools)))
    graph.add_edge(START, "model")
    graph.add_conditional_edges("model", lambda state: "tools" if state["messages"][-1].tool_calls else END)
    graph.add_edge("tools", "model")
    return graph.compile(checkpointer=saver)


def sequential(world: World, saver: Any) -> Any:
    """One call in each turn."""
    return loop(world, BOTH_IN_TURN, world.tool("book"), world.tool("mail"), saver=saver)


def parallel(world: World, saver: Any) -> Any:
    """Two calls in one turn."""
    return loop(world, BOTH_AT_ONCE, world.tool("book"), world.tool("mail"), saver=saver)


def nested(world: World, saver: Any) -> Any:
    """A tool that runs a graph of its own."""
    inner = loop(world, BOTH_IN_TURN, world.tool("book"), world.tool("mail"))
    return loop(world, DESK, world.tool("desk", desk=inner), saver=saver)


def pausing(world: World, saver: Any) -> Any:
    """Two calls in one turn, one of which waits for a person."""
    return loop(world, BOTH_AT_ONCE, world.tool("book"), world.tool("mail", asks=True), saver=saver)


class Gathered(TypedDict):
    said: Annotated[list[str], operator.add]


def fanned_out(world: World, saver: Any) -> Any:
    """A node and a graph that are sent to, three times at once: each asks the same, and acts."""
    asked = journaled_model(model(BOTH_IN_TURN[-1]))
    book = journaled_node(replay=world.never, name="book")(lambda state: world.act("book"))
    mail = journaled_node(replay=world.never, name="mail")(lambda state: world.act("mail"))

    def branch(state: Any) -> Any:
        return {"said": [asked.invoke("the same in each").text.strip(), book({"same": 1})]}

    async def branch_async(state: Any) -> Any:
        return {"said": [(await asked.ainvoke("the same in each")).text.strip(), book({"same": 1})]}

    graph = StateGraph(Gathered)
    graph.add_node("branch", RunnableLambda(branch, branch_async))
    graph.add_node("end", lambda state: {"said": [mail({"all": len(state["said"])})]})
    graph.add_conditional_edges(START, lambda state: [Send("branch", {})] * BRANCHES, ["branch"])
    graph.add_edge("branch", "end")
    return graph.compile(checkpointer=saver)


SHAPES = {
    "sequential": sequential,
    "parallel": parallel,
    "nested": nested,
    "fan-out": fanned_out,
    "interrupt": pausing,
}
