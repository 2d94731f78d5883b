"""Graphs that die once at the worst moment; each runs in a process of its own, and another one ends it."""

import asyncio
import json
import warnings
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig, RunnableLambda
from langchain_core.tools import StructuredTool
from langgraph.func import entrypoint, task
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import create_react_agent
from langgraph.types import Command, RetryPolicy, interrupt
from langgraph.warnings import LangGraphDeprecationWarning

from gnl_langchain import (
    JournalMiddleware,
    arun_durable,
    astream_durable,
    journaled_model,
    run_durable,
    stream_durable,
)
from gnl_langgraph import JournalToolNode, journaled_node
from gnl_middleware import Done, NotDone, current_run, journaled, never
from tests.langchain.scripted import QUESTION, ScriptedModel, calling, said
from tests.langgraph.worlds import THREAD, World

Build = Callable[[World, Any], Any]
"""From the world and a checkpointer to a graph."""


def ended(folder: Path, program: str, store: str, way: str, given: Any = None) -> Any:
    """Run a program to its end or its death; runs in a process of its own.

    Args:
        folder: Outlives the process.
        program: The name of a builder in this module, or in that of the pauses.
        store: ``none``, or ``sqlite`` or ``postgres`` (or ``slow``: with the latency of a remote database) with a durability
            behind a colon.
        way: ``invoke``, ``ainvoke``, ``stream`` or ``astream``.
        given: What the graph is given, as ``input`` or ``resume``, and the ``run_id``; by default the question, in one run.
    """
    world, (kind, _, durability) = World(folder), store.partition(":")
    from tests.langgraph import pausing

    build: Build = globals().get(program) or getattr(pausing, program)
    named = given or {"input": QUESTION}
    options: dict[str, Any] = {"run_id": named.get("run_id", "order-7"), "journal": world.journal}
    if kind != "none":
        options |= {"config": THREAD, "durability": durability}
    given = Command(resume=named["resume"]) if "resume" in named else named["input"]
    if way.startswith("a"):
        return asyncio.run(_ended_async(world.async_saver(kind), partial(build, world), way, given, options))
    with world.saver(kind, latency=0.05 if kind == "slow" else 0.0) as saver:
        graph = build(world, saver)
        if way == "invoke":
            return said_by(run_durable(graph, given, **options))
        state = None
        for state in stream_durable(graph, given, stream_mode="values", **options):  # noqa: B007 - the last one counts
            pass
        return said_by(state)


async def _ended_async(
    checkpoints: AbstractAsyncContextManager[Any],
    build: Callable[[Any], Any],
    way: str,
    given: Any,
    options: dict[str, Any],
) -> Any:
    async with checkpoints as saver:
        graph = build(saver)
        if way == "ainvoke":
            return said_by(await arun_durable(graph, given, **options))
        state = None
        async for state in astream_durable(graph, given, stream_mode="values", **options):  # noqa: B007 - see above
            pass
        return said_by(state)


def said_by(state: Any) -> Any:
    """What a graph ended with, as plain data."""
    if isinstance(state, dict) and "__interrupt__" in state:
        return "paused"
    if isinstance(state, dict) and "messages" in state:
        return [str(message.content) for message in state["messages"]]
    return json.loads(json.dumps(state))


def agent_graph(model: Any, tools: Any, saver: Any = None, **node: Any) -> Any:
    """A hand-written graph: a model node and one node for all tools."""

    def ask(state: Any) -> Any:
        return {"messages": [model.invoke(state["messages"])]}

    async def ask_async(state: Any) -> Any:
        return {"messages": [await model.ainvoke(state["messages"])]}

    made = StateGraph(MessagesState)
    made.add_node("model", RunnableLambda(ask, ask_async))
    made.add_node("tools", tools, **node)
    made.add_edge(START, "model")
    made.add_conditional_edges("model", lambda state: "tools" if state["messages"][-1].tool_calls else END)
    made.add_edge("tools", "model")
    return made.compile(checkpointer=saver)


def tool_crash(world: World, saver: Any) -> Any:
    """Hole a: the tool dies after its effect."""

    def charge(order: int) -> str:
        """Charge the card."""
        result = world.act("charge")
        world.die_once("tool")
        return result

    tools = JournalToolNode([charge], policies={"charge": never(recover=world.recover)})
    return agent_graph(journaled_model(world.model(calling("charge", order=7), said())), tools, saver)


def before_interrupt(world: World, saver: Any) -> Any:
    """Hole b and B31: work before two pauses, in a node, in a tool, in a task's function and in a subgraph."""
    hold = journaled(replay=never(recover=world.recover), name="hold")(lambda: world.act("hold"))

    def node(state: Any) -> Any:
        hold()
        answers = [interrupt("first?"), interrupt("second?")]
        return {"messages": [AIMessage(f"node {answers}")]}

    def book(place: int) -> str:
        """Book a seat."""
        hold()
        return f"booked {interrupt('third?')}"

    inner = StateGraph(MessagesState)
    inner.add_node("node", node)
    inner.add_edge(START, "node")
    tools = JournalToolNode([book], safe=[book])
    booking = agent_graph(journaled_model(world.model(calling("book", place=1), said())), tools)
    outer = StateGraph(MessagesState)
    outer.add_node("inner", inner.compile())
    outer.add_node("booking", lambda state: {"messages": [booking.invoke(QUESTION)["messages"][-1]]})
    outer.add_edge(START, "inner")
    outer.add_edge("inner", "booking")
    return outer.compile(checkpointer=saver)


def parallel_crash(world: World, saver: Any) -> Any:
    """Hole c: three calls of one reply; one of them dies after its effect."""

    def body(place: int) -> str:
        result = world.act(f"call-{place}")
        if place == 1:
            world.die_once("tool")
        return result

    async def body_async(place: int) -> str:
        return body(place)

    tool = StructuredTool.from_function(body, body_async, name="act", description="Act.")
    calls = [
        {"name": "act", "args": {"place": place}, "id": f"call_{place}", "type": "tool_call"}
        for place in range(3)
    ]
    model = world.model(AIMessage("", tool_calls=calls), said())
    tools = JournalToolNode([tool], policies={"act": never(recover=world.recover)}, handle_tool_errors=True)
    return agent_graph(journaled_model(model), tools, saver)


def model_crash(world: World, saver: Any) -> Any:
    """Hole d: dies when the last reply has arrived; and a node with several calls dies between them."""

    def charge(order: int) -> str:
        """Charge the card."""
        return world.act("charge")

    model = journaled_model(world.model(calling("charge", order=7), said(), dies_at=3))
    tools = JournalToolNode([charge], policies={"charge": never(recover=world.recover)})
    return agent_graph(model, tools, saver)


def many_calls(world: World, saver: Any) -> Any:
    """Hole d: a node with several calls and values of its own dies between them."""
    plan = journaled(replay=never(recover=world.recover), name="plan")(lambda: world.act("plan"))
    draft = journaled(replay=never(recover=world.recover), name="draft")(lambda: world.act("draft"))

    def node(state: Any) -> Any:
        told = [plan(), str(current_run().uuid4()), draft()]
        world.effects.add(f"told-{told[1]} -")
        world.die_once("node")
        return {"messages": [AIMessage(" ".join([told[0], told[2]]))]}

    made = StateGraph(MessagesState)
    made.add_node("node", node)
    made.add_edge(START, "node")
    return made.compile(checkpointer=saver)


def agent_as_tool(world: World, saver: Any) -> Any:
    """Hole e: an agent inside a tool dies in its second step."""

    def first(order: int) -> str:
        """The first step."""
        return world.act("first")

    def second(order: int) -> str:
        """The second step."""
        result = world.act("second")
        world.die_once("inner")
        return result

    policies = {name: never(recover=world.recover) for name in ("first", "second")}
    inner = create_agent(
        world.model(calling("first", order=1), calling("second", order=1), said("inner done"), name="inner"),
        [first, second],
        middleware=[JournalMiddleware(policies=policies)],
    )

    def delegate(order: int) -> str:
        """Hand the task on."""
        return inner.invoke(QUESTION)["messages"][-1].text

    model = journaled_model(world.model(calling("delegate", order=7), said()))
    return agent_graph(model, JournalToolNode([delegate], safe=[delegate]), saver)


def tasks(world: World, saver: Any) -> Any:
    """Hole e: the functional API; the second task dies after its effect, and a third one is a plain journalled node."""

    @task
    @journaled(replay=never(recover=world.recover), name="first")
    def first() -> str:
        return world.act("first")

    @task
    @journaled_node(replay=never(recover=world.recover))
    def second(after: str) -> str:
        result = world.act("second")
        world.die_once("task")
        return result

    @entrypoint(checkpointer=saver)
    def workflow(given: Any) -> list[str]:
        one = first().result()
        return [one, second(one).result()]

    return workflow


def retried(world: World, saver: Any) -> Any:
    """Hole e: a retry policy around the node of two tools, one of which fails once after its effect."""
    failed = world.folder / "failed"

    def act(place: int) -> str:
        """Act."""
        result = world.act(f"call-{place}")
        if place == 1 and not failed.exists():
            failed.touch()
            raise ConnectionError("flaky")
        return result

    calls = [
        {"name": "act", "args": {"place": place}, "id": f"call_{place}", "type": "tool_call"}
        for place in range(2)
    ]
    model = journaled_model(world.model(AIMessage("", tool_calls=calls), said()))
    tools = JournalToolNode([act], policies={"act": never(recover=world.recover)})
    return agent_graph(
        model, tools, saver, retry_policy=RetryPolicy(initial_interval=0.001, retry_on=ConnectionError)
    )


def one_node(world: World, saver: Any) -> Any:
    """A node that is one step: it dies after its effect, and its update is what ``recover`` says."""

    def recover(call: Any) -> Any:
        return Done({"messages": [AIMessage("shipped")]}) if world.done else NotDone()

    @journaled_node(replay=never(recover=recover))
    def ship(state: Any, config: RunnableConfig) -> Any:
        world.act("ship")
        world.die_once("node")
        return {"messages": [AIMessage("shipped")]}

    made = StateGraph(MessagesState)
    made.add_node("ship", ship)
    made.add_edge(START, "ship")
    return made.compile(checkpointer=saver)


def unsteady(world: World, saver: Any) -> Any:
    """Hole h: a model that would ask for another amount each time, and a charge that dies before anything is saved."""

    def charge(amount: int) -> str:
        """Charge the card."""
        result = world.act(f"charge-{amount}")
        world.die_once("tool")
        return result

    def script(messages: Any) -> Any:
        if len(messages) > 1:
            return said()
        return calling("charge", amount=1 + len(world.bill.lines()))

    model = ScriptedModel(script=script, bill=world.bill)
    tools = JournalToolNode([charge], policies={"charge": never(recover=world.recover)})
    return agent_graph(journaled_model(model), tools, saver)


def react_agent(world: World, saver: Any, version: Any = "v2") -> Any:
    """`create_react_agent`, whose tool dies after its effect."""

    def charge(order: int) -> str:
        """Charge the card."""
        result = world.act("charge")
        world.die_once("tool")
        return result

    tools = JournalToolNode([charge], policies={"charge": never(recover=world.recover)})
    model = journaled_model(world.model(calling("charge", order=7), said()))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LangGraphDeprecationWarning)
        return create_react_agent(model, tools, prompt="Be brief.", checkpointer=saver, version=version)


def first_react_agent(world: World, saver: Any) -> Any:
    """The same with one node for all tools, as it was first."""
    return react_agent(world, saver, "v1")


def chat(world: World, saver: Any) -> Any:
    """A thread of many messages: each is answered by a charge of its own, and the second one dies after its effect."""

    def charge(order: int) -> str:
        """Charge the card."""
        result = world.act(f"charge-{order}")
        if order == 2:
            world.die_once("tool")
        return result

    def answer(messages: Any) -> Any:
        asked = [message for message in messages if message.type == "human"]
        if messages[-1].type == "tool":
            return said(f"Done {len(asked)}.")
        return calling("charge", order=len(asked))

    model = ScriptedModel(script=answer, bill=world.bill)
    tools = JournalToolNode([charge], policies={"charge": never(recover=world.recover)})
    return agent_graph(journaled_model(model), tools, saver)
