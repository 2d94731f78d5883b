"""The ways in which LangGraph's checkpoints let work happen twice, closed without a checkpointer.

Each process really dies, at the worst moment for the framework; the same call in another process ends the run.
"""

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage
from langchain_core.tools import StructuredTool
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import RetryPolicy

from gnl_langchain import JournalMiddleware, arun_durable, journaled_model, run_durable
from gnl_middleware import Done, InterruptedCall, NotDone, current_step, never
from tests import worlds
from tests.langchain.processes import in_process
from tests.langchain.scripted import QUESTION, ScriptedModel, calling, said, texts, turns
from tests.worlds import DEATH


class World(worlds.World):
    """The world of these processes."""

    def fail_once(self) -> None:
        """Raise, the first time that any process comes here."""
        marker = self.folder / "failed"
        if not marker.exists():
            marker.touch()
            raise ValueError("boom")

    def act(self, what: str) -> str:
        """The side effect of a tool."""
        step = current_step()
        self.effects.add(f"{what} {'' if step is None else step.idempotency_key}")
        return f"did {what}"

    def recover(self, call: InterruptedCall) -> Done | NotDone:
        """Look whether a call left its effect."""
        found = [line.split()[0] for line in self.effects.lines() if line.endswith(call.idempotency_key)]
        return Done(f"did {found[0]}") if found else NotDone()

    def model(self, *said: Any, dies_at: int | None = None) -> ScriptedModel:
        """A model that bills each request, and may be cut off right after one was answered."""
        script = turns(*said)

        def answer(messages: Any) -> AIMessage:
            if dies_at == len(messages):
                self.die_once("model")
            return script(messages)

        return ScriptedModel(script=answer, bill=self.bill)

    @property
    def done(self) -> list[str]:
        """The effects, by name."""
        return sorted(line.split()[0] for line in self.effects.lines())


def run(folder: Path, agent: Any, way: str) -> list[str]:
    options = {"run_id": "order-7", "journal": folder / "runs.db"}
    if way == "async":
        return texts(asyncio.run(arun_durable(agent, QUESTION, **options))["messages"])
    return texts(run_durable(agent, QUESTION, **options)["messages"])


def graph(model: Any, tools: ToolNode, **node: Any) -> Any:
    """A hand-written graph: a model node and one node for all tools."""
    made = StateGraph(MessagesState)
    made.add_node("model", lambda state: {"messages": [model.invoke(state["messages"])]})
    made.add_node("tools", tools, **node)
    made.add_edge(START, "model")
    made.add_conditional_edges("model", lambda state: "tools" if state["messages"][-1].tool_calls else END)
    made.add_edge("tools", "model")
    return made.compile()


def journaled_node(tools: list[Any], journaling: JournalMiddleware, **options: Any) -> ToolNode:
    return ToolNode(
        tools, wrap_tool_call=journaling.wrap_tool_call, awrap_tool_call=journaling.awrap_tool_call, **options
    )


# a. A tool crashes after its effect, before anything is saved.


def charged(folder, way):
    """Runs in a process of its own."""
    world = World(folder)

    def charge(order: int) -> str:
        """Charge the card."""
        result = world.act("charge")
        world.die_once("tool")
        return result

    model = world.model(calling("charge", order=7), said())
    policies = {"charge": never(recover=world.recover)}
    return run(folder, create_agent(model, [charge], middleware=[JournalMiddleware(policies=policies)]), way)


@pytest.mark.parametrize("way", ["sync", "async"])
def test_a_tool_that_crashed_after_its_effect_charges_once(tmp_path, way):
    """Hole a: the second process asks ``recover`` and charges nothing; the model's first reply is not paid again."""
    died = in_process(charged, tmp_path, way)

    ended = in_process(charged, tmp_path, way)

    assert died.code == DEATH
    assert ended.value == ["please refund order 7", "", "did charge", "Done."], ended
    assert World(tmp_path).done == ["charge"]
    assert World(tmp_path).bill.lines() == ["scripted 1", "scripted 3"]


# c. Parallel calls, of which one fails or crashes while its siblings are done, running or not begun.


BEFORE_THE_EFFECT, AFTER_THE_EFFECT = {1: 0.3}, {2: 0.6}
"""Seconds that a call takes, by its place: call 0 is done when call 1 fails or crashes, and call 2 still runs."""


def parallel_tools(world: World, how: str) -> Any:
    """A tool of which three calls run at once, one of them fails or crashes after its effect."""

    def effect(place: int) -> str:
        result = world.act(f"call-{place}")
        if place == 1 and how == "crash":
            world.die_once("tool")
        if place == 1 and how == "raise":
            world.fail_once()
        return result

    def body(place: int) -> str:
        time.sleep(BEFORE_THE_EFFECT.get(place, 0))
        result = effect(place)
        time.sleep(AFTER_THE_EFFECT.get(place, 0))
        return result

    async def body_async(place: int) -> str:
        await asyncio.sleep(BEFORE_THE_EFFECT.get(place, 0))
        result = effect(place)
        await asyncio.sleep(AFTER_THE_EFFECT.get(place, 0))
        return result

    return StructuredTool.from_function(body, body_async, name="act", description="Act.")


def acted(folder, kind, how, way):
    """Runs in a process of its own."""
    world = World(folder)
    calls = [
        {"name": "act", "args": {"place": place}, "id": f"call_{place}", "type": "tool_call"}
        for place in range(3)
    ]
    model, tool = world.model(AIMessage("", tool_calls=calls), said()), parallel_tools(world, how)
    journaling = JournalMiddleware(policies={"act": never(recover=world.recover)})
    if kind == "create_agent":
        agent = create_agent(model, [tool], middleware=[journaling])
    else:
        agent = graph(journaled_model(model), journaled_node([tool], journaling))
    return run(folder, agent, way)


@pytest.mark.parametrize("way", ["sync", "async"])
@pytest.mark.parametrize("how", ["raise", "crash"])
@pytest.mark.parametrize("kind", ["create_agent", "ToolNode"])
def test_parallel_calls_have_one_effect_each(tmp_path, kind, how, way):
    """Hole c: whatever state its siblings are in when one call fails or crashes, each effect happens once."""
    first = in_process(acted, tmp_path, kind, how, way)

    ended = in_process(acted, tmp_path, kind, how, way)

    assert first.code == DEATH if how == "crash" else first.error[0] == "ValueError"
    assert ended.value == ["please refund order 7", "", "did call-0", "did call-1", "did call-2", "Done."], (
        ended
    )
    assert World(tmp_path).done == ["call-0", "call-1", "call-2"]
    assert World(tmp_path).bill.lines() == ["scripted 1", "scripted 5"]


# d. A model's reply arrived, and is paid for again.


def answered(folder, where):
    """Runs in a process of its own."""
    world = World(folder)

    def charge(order: int) -> str:
        """Charge the card."""
        if where == "in-tool":
            world.die_once("tool")
        return world.act("charge")

    dies_at = {"after-first-reply": 1, "after-last-reply": 3}.get(where)
    model = world.model(calling("charge", order=7), said(), dies_at=dies_at)
    policies = {"charge": never(recover=world.recover)}
    return run(
        folder, create_agent(model, [charge], middleware=[JournalMiddleware(policies=policies)]), "sync"
    )


@pytest.mark.parametrize(
    ("where", "billed"),
    [
        ("in-tool", ["scripted 1", "scripted 3"]),
        # The reply that the worker took to its grave is asked for again: nobody ever had it.
        ("after-first-reply", ["scripted 1", "scripted 1", "scripted 3"]),
        ("after-last-reply", ["scripted 1", "scripted 3", "scripted 3"]),
    ],
)
def test_finished_model_calls_are_not_billed_again(tmp_path, where, billed):
    """Hole d: the same call with the same input resumes; no recorded reply is paid twice, no message is added."""
    died = in_process(answered, tmp_path, where)

    ended = in_process(answered, tmp_path, where)

    assert died.code == DEATH
    assert ended.value == ["please refund order 7", "", "did charge", "Done."], ended
    assert World(tmp_path).done == ["charge"]
    assert World(tmp_path).bill.lines() == billed


def reviewed(folder):
    """Runs in a process of its own."""
    world = World(folder)
    model = journaled_model(world.model(said("a text"), said(), said()))

    def node(state: Any) -> Any:
        for task in ("plan", "draft", "review"):
            if task == "review":
                world.die_once("node")
            text = model.invoke([("user", task)]).text
        return {"messages": [AIMessage(text)]}

    made = StateGraph(MessagesState)
    made.add_node("work", node)
    made.add_edge(START, "work")
    made.add_edge("work", END)
    return run(folder, made.compile(), "sync")


def test_a_node_with_several_model_calls_pays_for_each_once(tmp_path):
    """Hole d: a node that died between its model calls asks only those again that were not answered."""
    died = in_process(reviewed, tmp_path)

    ended = in_process(reviewed, tmp_path)

    assert died.code == DEATH
    assert ended.value == ["please refund order 7", "a text"], ended
    assert World(tmp_path).bill.lines() == ["scripted 1"] * 3


# e. Work inside a tool or a node is done again as a whole.


def delegated(folder):
    """Runs in a process of its own."""
    world = World(folder)

    def first(task: str) -> str:
        """Do the first thing."""
        return world.act("first")

    def second(task: str) -> str:
        """Do the second thing."""
        result = world.act("second")
        world.die_once("tool")
        return result

    policy = never(recover=world.recover)
    inner = create_agent(
        world.model(calling("first", task="t"), calling("second", task="t"), said("Both are done.")),
        [first, second],
        middleware=[JournalMiddleware(policies={"first": policy, "second": policy})],
    )

    def delegate(task: str) -> str:
        """Hand a task on."""
        return inner.invoke({"messages": [("user", task)]})["messages"][-1].text

    outer = create_agent(
        world.model(calling("delegate", task="t"), said()),
        [delegate],
        middleware=[JournalMiddleware(safe=[delegate])],
    )
    return run(folder, outer, "sync")


def test_an_agent_as_a_tool_goes_on_where_it_was(tmp_path):
    """Hole e: after a crash in the inner agent's second tool, neither of its tools and none of its replies is repeated."""
    died = in_process(delegated, tmp_path)

    ended = in_process(delegated, tmp_path)

    assert died.code == DEATH
    assert ended.value == ["please refund order 7", "", "Both are done.", "Done."], ended
    assert World(tmp_path).done == ["first", "second"]
    assert World(tmp_path).bill.lines() == ["scripted 1"] * 2 + ["scripted 3", "scripted 5", "scripted 3"]


def retried(folder):
    """Runs in a process of its own."""
    world = World(folder)
    left = [ConnectionError("flaky")]

    def act(place: int) -> str:
        """Act."""
        if place == 1 and left:
            raise left.pop()
        return world.act(f"call-{place}")

    calls = [
        {"name": "act", "args": {"place": place}, "id": f"call_{place}", "type": "tool_call"}
        for place in range(3)
    ]
    model = journaled_model(world.model(AIMessage("", tool_calls=calls), said()))
    journaling = JournalMiddleware(policies={"act": never(not_performed=(ConnectionError,))})
    policy = RetryPolicy(initial_interval=0.01, jitter=False)
    return run(folder, graph(model, journaled_node([act], journaling), retry_policy=policy), "sync")


def test_a_retried_tool_node_repeats_only_what_failed(tmp_path):
    """Hole e: LangGraph's RetryPolicy runs the whole node again; its finished calls are read back."""
    ended = in_process(retried, tmp_path)

    assert ended.value == ["please refund order 7", "", "did call-0", "did call-1", "did call-2", "Done."], (
        ended
    )
    assert World(tmp_path).done == ["call-0", "call-1", "call-2"]
    assert World(tmp_path).bill.lines() == ["scripted 1", "scripted 5"]
