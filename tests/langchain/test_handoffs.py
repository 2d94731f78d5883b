"""Tools that answer to a parent graph: the hand-off is the tool's outcome, and a replay hands off again."""

from typing import Annotated, Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import ToolMessage
from langchain_core.tools import InjectedToolCallId, tool
from langgraph.errors import ParentCommand
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import Command

from gnl_langchain import JournalMiddleware
from tests.langchain.driving import WAYS, drive, drive_plain
from tests.langchain.scripted import ScriptedModel, calling, said, texts, turns
from tests.worlds import Log


def handing_off(effects: Log, how: str, *middleware: Any) -> tuple[ScriptedModel, Any]:
    """A graph of an agent that hands off, by a returned or by a raised command, and of the node that takes over."""

    @tool
    def hand_off(call_id: Annotated[str, InjectedToolCallId]) -> Command:
        """Hand the customer to a colleague."""
        effects.add("handed off")
        answer = ToolMessage("handed off", tool_call_id=call_id)
        command = Command(graph=Command.PARENT, goto="colleague", update={"messages": [answer]})
        if how == "raised":
            raise ParentCommand(command)
        return command

    model = ScriptedModel(script=turns(calling("hand_off"), said("never said")))
    parent = StateGraph(MessagesState)
    parent.add_node("agent", create_agent(model, [hand_off], middleware=middleware))
    parent.add_node("colleague", lambda state: {"messages": [("ai", "How can I help?")]})
    parent.add_edge(START, "agent")
    parent.add_edge("colleague", END)
    return model, parent.compile()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("how", ["returned", "raised"])
def test_a_handoff_is_recorded_and_handed_on_again(journal, effects, how, way):
    """A command for the parent graph reaches it live and replayed, and the tool that gave it runs once."""
    _, plain = handing_off(effects, how)
    unwrapped = drive_plain(plain, way)
    model, graph = handing_off(effects, how, JournalMiddleware(never=["hand_off"]))

    recorded = drive(journal, graph, way)
    replayed = drive(journal, graph, way)

    assert texts(unwrapped["messages"])[-2:] == ["handed off", "How can I help?"]
    assert texts(recorded.state["messages"]) == texts(unwrapped["messages"])
    assert texts(replayed.state["messages"]) == texts(unwrapped["messages"])
    assert effects.lines() == ["handed off"] * 2
    assert (replayed.ran, len(model.asked)) == (0, 1)
    assert [step.status for step in journal.steps("run")] == ["done", "done"]
