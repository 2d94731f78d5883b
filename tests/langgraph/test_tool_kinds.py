"""Tools of every kind at every wrapping point: unwrapped, recorded and replayed they give the graph the same."""

from typing import Any

import pytest
from langchain_core.runnables import RunnableLambda
from langgraph.graph import END, START, StateGraph
from langgraph.prebuilt import ToolNode

from gnl_langchain import journaled_model, journaled_tools
from gnl_langgraph import JournalToolNode
from gnl_middleware import never
from tests.langchain.driving import drive, drive_plain
from tests.langchain.scripted import ScriptedModel, calling, said, turns
from tests.langchain.tool_kinds import KINDS, TicketState
from tests.worlds import Log

POINTS = ("JournalToolNode", "journaled_tools")
CASES = [
    (point, kind, way)
    for point in POINTS
    for kind, spec in KINDS.items()
    for way in ("invoke", "ainvoke")
    if (way == "ainvoke" or not spec.only_async)
]


def graph_of(tool: Any, point: str) -> tuple[ScriptedModel, Any]:
    """A hand-written graph around one tool, journalled at this point; or, unwrapped, nowhere."""
    plain = ScriptedModel(script=turns(calling("act", order=7), said()))
    model: Any = plain if point == "unwrapped" else journaled_model(plain)
    if point == "JournalToolNode":
        tools: ToolNode = JournalToolNode([tool], never=["act"])
    else:
        found = list(ToolNode([tool]).tools_by_name.values())
        tools = ToolNode(found if point == "unwrapped" else journaled_tools(found, policies={"a*": never}))

    async def ask(state: Any) -> Any:
        return {"messages": [await model.ainvoke(state["messages"])]}

    graph = StateGraph(TicketState)
    graph.add_node(
        "model", RunnableLambda(lambda state: {"messages": [model.invoke(state["messages"])]}, ask)
    )
    graph.add_node("tools", tools)
    graph.add_edge(START, "model")
    graph.add_conditional_edges("model", lambda state: "tools" if state["messages"][-1].tool_calls else END)
    graph.add_edge("tools", "model")
    return plain, graph.compile()


def shown(state: dict[str, Any]) -> dict[str, Any]:
    messages = [message.model_dump(exclude={"id"}) for message in state["messages"]]
    return {**state, "messages": messages}


@pytest.mark.parametrize(("point", "kind", "way"), CASES)
def test_unwrapped_recorded_and_replayed_are_equal(journal, tmp_path, point, kind, way):
    """Whatever a tool returns, the graph's state is the same without a journal, with one, and read back from it."""
    effects = Log(tmp_path / "effects")
    unwrapped = drive_plain(graph_of(KINDS[kind].make(effects), "unwrapped")[1], way)
    model, graph = graph_of(KINDS[kind].make(effects), point)

    recorded = drive(journal, graph, way)
    replayed = drive(journal, graph, way, offline=True)

    assert shown(recorded.state) == shown(unwrapped)
    assert shown(replayed.state) == shown(unwrapped)
    assert effects.lines() == ["ran"] * 2
    assert (replayed.ran, len(model.asked)) == (0, 2)
