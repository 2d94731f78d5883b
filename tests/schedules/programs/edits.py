"""A person at work between the attempts: edits a thread's state, goes on from an older checkpoint, edits what was asked for."""

from collections.abc import Sequence
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langgraph.types import Command

from gnl_langchain import JournalMiddleware
from tests.schedules.scripted_model import answers, calls, scripted
from tests.schedules.stage import THREAD, Stage, program

from .turns import REQUEST, one_after_another, refund_tool

_CONFIG: Any = {"configurable": {"thread_id": THREAD}}
_UPDATES: dict[str, dict[str, Any]] = {
    "noop": {"messages": []},
    "message": {"messages": [HumanMessage("hurry")]},
}


def _refunding(stage: Stage) -> Any:
    return create_agent(
        scripted(one_after_another(stage.option("ids", "fresh")), stage.world),
        [refund_tool(stage)],
        middleware=[JournalMiddleware(policies={"refund": stage.never})],
        checkpointer=stage.saver,
    )


@program
def updated_before_the_resume(stage: Stage) -> str:
    """A person updates the state of the thread after the crash; the steps of the graph are counted on from there."""
    agent = _refunding(stage)
    if stage.job.number > 1 and agent.get_state(_CONFIG).next:
        agent.update_state(_CONFIG, _UPDATES[stage.option("update")])
    return stage.durable(agent, REQUEST)


@program
def from_the_first_checkpoint(stage: Stage) -> str:
    """The thread is taken up where it began, as it is or after an update there, while the journal is further."""
    agent = _refunding(stage)
    begun = [state for state in agent.get_state_history(_CONFIG) if state.next == ("model",)]
    if stage.job.number == 1 or not begun:
        return stage.durable(agent, REQUEST)
    place = begun[-1].config["configurable"]
    if (update := stage.option("update")) != "none":
        node = "__start__" if update == "as the start" else None
        place = agent.update_state(begun[-1].config, {"messages": []}, as_node=node)["configurable"]
    state = stage.durable_value(
        agent, None, **{name: place[name] for name in ("checkpoint_id", "checkpoint_ns")}
    )
    return state["messages"][-1].text


@program
def edited_approval(stage: Stage) -> str:
    """Two refunds wait for a person, who edits one and approves the other."""

    def script(messages: Sequence[BaseMessage], asked: int) -> AIMessage:
        if done := answers(messages):
            # What was edited is answered with a note about the edit before the tool's own words.
            return AIMessage("done: " + " | ".join(text.splitlines()[-1] for text in done))
        return calls(("refund", {"order": 1}, f"a{asked}"), ("refund", {"order": 2}, f"b{asked}"))

    agent = create_agent(
        scripted(script, stage.world),
        [refund_tool(stage)],
        middleware=[
            HumanInTheLoopMiddleware(interrupt_on={"refund": True}),
            JournalMiddleware(policies={"refund": stage.never}),
        ],
        checkpointer=stage.saver,
    )
    edited = {"type": "edit", "edited_action": {"name": "refund", "args": {"order": 9}}}
    decided = Command(resume={"decisions": [edited, {"type": "approve"}]})
    state = stage.durable_value(agent, REQUEST)
    if "__interrupt__" in state:
        state = stage.durable_value(agent, decided)
    return state["messages"][-1].text
