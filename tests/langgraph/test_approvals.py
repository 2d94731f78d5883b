"""Pauses: an approval is for the arguments that were shown, a pause is no outcome, and a cancelled call is no unbegun one."""

import asyncio
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt

from gnl_langchain import journaled_model, run_durable
from gnl_langgraph import JournalToolNode
from gnl_middleware import DivergenceError, SideEffectRetryBlockedError
from tests.langchain.scripted import QUESTION, ScriptedModel, calling, said, turns
from tests.langgraph.programs import agent_graph, said_by
from tests.langgraph.worlds import THREAD


def sending(world: Any, *, swallows: bool = False) -> Any:
    def send(body: str) -> str:
        """Send a text, once a person has approved it."""
        if interrupt(f"send {body}?") == "yes":
            world.act(f"sent-{body}")
        return "done"

    wrapper = (lambda request, handler: handler(request)) if swallows else None
    tools = JournalToolNode([send], never=[send], handle_tool_errors=swallows, wrap_tool_call=wrapper)
    replies = iter(["reviewed", "changed", "changed"])

    def answer(messages: Any) -> Any:
        if any(message.type == "tool" for message in messages):
            return said()
        return calling("send", body=next(replies))

    return agent_graph(journaled_model(ScriptedModel(script=answer)), tools, InMemorySaver())


def durable(graph: Any, given: Any, journal: Any) -> Any:
    return said_by(run_durable(graph, given, run_id="order-7", journal=journal, config=THREAD))


@pytest.mark.parametrize(
    "swallows", [False, True], ids=["plain", "B53: behind a wrapper and handle_tool_errors"]
)
def test_what_was_approved_is_sent(journal, world, swallows):
    """B30: the model is not asked again after the approval, so the reviewed text is sent, once; a pause is no outcome."""
    graph = sending(world, swallows=swallows)
    paused = durable(graph, QUESTION, journal)
    status = journal.runs()[0].status

    ended = durable(graph, Command(resume="yes"), journal)
    again = durable(graph, Command(resume="yes"), journal)

    assert (paused, status) == ("paused", "paused")
    assert ended[-1] == again[-1] == "Done."
    assert world.done == ["sent-reviewed"]


def test_an_approval_is_not_spent_on_other_arguments(journal, world):
    """B30: if the call was changed meanwhile, nothing is sent, and the error names what was shown and what was asked."""
    graph = sending(world)
    durable(graph, QUESTION, journal)
    message = graph.get_state(THREAD).values["messages"][-1]
    changed = [{**message.tool_calls[0], "args": {"body": "changed"}}]
    graph.update_state(
        THREAD, {"messages": [message.model_copy(update={"tool_calls": changed})]}, as_node="model"
    )

    with pytest.raises(DivergenceError) as caught:
        durable(graph, Command(resume="yes"), journal)

    assert (caught.value.recorded, caught.value.asked) == ({"body": "reviewed"}, {"body": "changed"})
    assert world.done == []


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_a_call_that_was_cancelled_has_begun(journal, world, durability):
    """B55: in every durability the cancelled call is one whose effect nobody knows; its finished sibling is done."""
    begun = asyncio.Event()

    async def act(place: int) -> str:
        """Act."""
        world.act(f"call-{place}")
        if place == 1:
            begun.set()
            await asyncio.sleep(60)
        return "done"

    calls = [
        {"name": "act", "args": {"place": place}, "id": f"c{place}", "type": "tool_call"}
        for place in range(2)
    ]
    model = journaled_model(ScriptedModel(script=turns(AIMessage("", tool_calls=calls), said())))
    graph = agent_graph(model, JournalToolNode([act], never=[act]), InMemorySaver())

    async def cancelled() -> None:
        async with journal.run("order-7"):
            work = asyncio.ensure_future(graph.ainvoke(QUESTION, THREAD, durability=durability))
            await begun.wait()
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)

    with pytest.raises(SideEffectRetryBlockedError):
        asyncio.run(cancelled())
    states = {step.key[-2:]: step.status for step in journal.steps("order-7")[1:]}
    assert states == {"c0": "done", "c1": "started"}
    assert world.done == ["call-0", "call-1"]
