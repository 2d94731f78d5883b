"""Graphs that wait for a person: in a task, in an agent inside of a tool, behind a middleware that asks for decisions."""

from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.messages import AIMessage
from langgraph.func import entrypoint, task
from langgraph.types import interrupt

from gnl_langchain import JournalMiddleware, journaled_model
from gnl_langgraph import JournalToolNode, journaled_node
from gnl_middleware import journaled, never
from tests.langchain.scripted import QUESTION, ScriptedModel, calling, said
from tests.langgraph.programs import agent_graph
from tests.langgraph.worlds import World


def in_a_task(world: World, saver: Any) -> Any:
    """B31: a task does work before two pauses, and another one is a single step with a pause in it."""
    hold = journaled(replay=never(recover=world.recover), name="hold")(lambda: world.act("hold"))

    @task
    def ask() -> list[str]:
        world.effects.add("plain -")
        return [hold(), interrupt("first?"), interrupt("second?")]

    @task
    @journaled_node(replay=never(recover=world.recover))
    def whole(given: str) -> str:
        answer = interrupt("third?")
        return f"{world.act('whole')} {answer}"

    @entrypoint(checkpointer=saver)
    def work(given: Any) -> list[Any]:
        asked = ask().result()
        return [*asked, whole(asked[1]).result()]

    return work


def nested_approval(world: World, saver: Any) -> Any:
    """B32: an agent hands its work to another one inside a tool, whose own tool waits for a person."""

    def pay(amount: int) -> str:
        """Pay, once a person has approved it."""
        answer = interrupt(f"pay {amount}?")
        return world.act(f"paid-{amount}-{answer}")

    inner = create_agent(
        world.model(calling("pay", amount=42), said("inner done"), name="inner"),
        [pay],
        middleware=[JournalMiddleware(policies={"pay": never(recover=world.recover)})],
    )

    def delegate(order: int) -> str:
        """Hand the work on."""
        return inner.invoke(QUESTION)["messages"][-1].text

    model = journaled_model(world.model(calling("delegate", order=7), said()))
    return agent_graph(model, JournalToolNode([delegate], safe=[delegate]), saver)


def one_rejected(world: World, saver: Any) -> Any:
    """B07: two calls of one reply, of which one needs an approval; the model is strict about the answers to its calls."""

    def act(place: int) -> str:
        """Act."""
        return world.act(f"act-{place}")

    def gated(place: int) -> str:
        """Act, once a person has approved it."""
        return world.act(f"gated-{place}")

    calls = [
        {"name": name, "args": {"place": place}, "id": f"c{place}", "type": "tool_call"}
        for place, name in enumerate(("gated", "act"), start=1)
    ]

    def answer(messages: Any) -> AIMessage:
        answers = [message.tool_call_id for message in messages if message.type == "tool"]
        if not answers:
            return AIMessage("", tool_calls=calls)
        # As a provider would, which refuses a history with a call that has no answer, or two.
        return said(f"Done: {answers}")

    policies = {name: never(recover=world.recover) for name in ("act", "gated")}
    return create_agent(
        ScriptedModel(script=answer, bill=world.bill),
        [act, gated],
        middleware=[
            HumanInTheLoopMiddleware(interrupt_on={"gated": True}),
            JournalMiddleware(policies=policies),
        ],
        checkpointer=saver,
    )
