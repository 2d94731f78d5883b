"""One agent, turn after turn: in sequence, in parallel, polling, summarising, and waiting for a person."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import SummarizationMiddleware
from langchain_core.messages import AIMessage, BaseMessage
from langgraph.types import Command, interrupt

from gnl_langchain import JournalMiddleware, journaled_model
from tests.schedules.loops import Loop
from tests.schedules.scripted_model import Script, answers, calls, scripted
from tests.schedules.stage import THREAD, Stage, program

REQUEST = {"messages": [("user", "refund 7, 8 and 9")]}
ORDERS = (7, 8, 9)
REFUNDS = {f"refund {order}": 1 for order in ORDERS}
REPLY = "done: refunded 7 | refunded 8 | refunded 9"
POLLS = 4


def refund_tool(stage: Stage) -> Any:
    """A side effect: money goes back."""

    def refund(order: int | str) -> str:
        """Refund an order."""
        return stage.world.act(f"refund {order}", f"refunded {order}")

    return refund


def one_after_another(ids: str) -> Script:
    """Three refunds in three turns, with call ids that are all the same, or made up anew for each reply."""

    def script(messages: Sequence[BaseMessage], asked: int) -> AIMessage:
        done = answers(messages)
        if len(done) == len(ORDERS):
            return AIMessage("done: " + " | ".join(done))
        call_id = {"reused": "call_0", "fresh": f"call_{asked}"}[ids]
        return calls(("refund", {"order": ORDERS[len(done)]}, call_id))

    return script


@program
def in_sequence(stage: Stage) -> str:
    """Three refunds, one after another."""
    agent = create_agent(
        scripted(one_after_another(stage.option("ids", "fresh")), stage.world),
        [refund_tool(stage)],
        middleware=[JournalMiddleware(policies={"refund": stage.never})],
        checkpointer=stage.saver,
    )
    return stage.durable(agent, REQUEST)


@program
def in_parallel(stage: Stage) -> str:
    """Three refunds asked for in one reply."""

    def script(messages: Sequence[BaseMessage], asked: int) -> AIMessage:
        if done := answers(messages):
            return AIMessage("done: " + " | ".join(done))
        return calls(*(("refund", {"order": order}, f"call_{order}_{asked}") for order in ORDERS))

    agent = create_agent(
        scripted(script, stage.world),
        [refund_tool(stage)],
        middleware=[JournalMiddleware(policies={"refund": stage.never})],
        checkpointer=stage.saver,
    )
    return stage.durable(agent, REQUEST)


def polling_script(messages: Sequence[BaseMessage], asked: int) -> AIMessage:
    """The same reply with the same call id in each turn."""
    done = answers(messages)
    return calls(("poll", {"job": 1}, "call_0")) if len(done) < POLLS else AIMessage(f"done: {len(done)}")


def poll_tool(stage: Stage) -> Any:
    """A side effect that looks the same every time it is asked for."""

    def poll(job: int) -> str:
        """Poll a job."""
        return stage.world.act(f"poll {job}", "pending")

    return poll


@program
def polling(stage: Stage) -> str:
    """Four polls that look alike and are all meant."""
    agent = create_agent(
        scripted(polling_script, stage.world),
        [poll_tool(stage)],
        middleware=[JournalMiddleware(policies={"poll": stage.never})],
        checkpointer=stage.saver,
    )
    return stage.durable(agent, REQUEST)


@program
def polling_by_hand(stage: Stage) -> str:
    """The same in a loop written by hand."""
    with stage.run():
        loop = Loop(scripted(polling_script, stage.world), {"poll": poll_tool(stage)}, stage.never)
        return loop.ask("poll until it is done")


@program
def saved_by_hand(stage: Stage) -> str:
    """A loop that keeps its conversation itself and goes on from the last turn that it kept."""
    script, tool = {
        "polls": (polling_script, poll_tool(stage)),
        "refunds": (one_after_another("fresh"), refund_tool(stage)),
    }[stage.option("what")]
    saved = Path(stage.job.folder, "conversation.json")
    with stage.run():
        loop = Loop(scripted(script, stage.world), {tool.__name__: tool}, stage.never, saved=saved)
        return loop.ask("go on until it is done")


@program
def summarising(stage: Stage) -> str:
    """Five refunds under a middleware that asks a model of its own to summarise what lies behind."""

    def refund(order: str) -> str:
        """Refund an order; answers with the order's number."""
        return stage.world.act(f"refund {order}", order.removeprefix("o"))

    def script(messages: Sequence[BaseMessage], asked: int) -> AIMessage:
        done = answers(messages)
        order = int(done[-1]) + 1 if done else 0
        return calls(("refund", {"order": f"o{order}"}, f"call_{asked}")) if order < 5 else AIMessage("done")

    summariser = scripted(lambda messages, asked: AIMessage(f"summary {asked}"), stage.world, name="summary")
    trigger, keep = (int(size) for size in stage.option("window", "5:2").split(":"))
    agent = create_agent(
        scripted(script, stage.world),
        [refund],
        middleware=[
            SummarizationMiddleware(
                model=journaled_model(summariser),
                trigger=("messages", trigger),
                keep=("messages", keep),
                token_counter=len,
            ),
            JournalMiddleware(policies={"refund": stage.never}),
        ],
        checkpointer=stage.saver,
    )
    return stage.durable(agent, REQUEST)


@program
def asking_a_person(stage: Stage) -> str:
    """A tool stops at an approval between two siblings that do not; then the person answers."""

    def approve(order: int) -> str:
        """Ask a person."""
        answer = interrupt("may I?")
        return stage.world.act(f"approved {order}", f"the person says {answer}")

    def script(messages: Sequence[BaseMessage], asked: int) -> AIMessage:
        if done := answers(messages):
            return AIMessage("done: " + " | ".join(done))
        return calls(
            ("refund", {"order": 7}, f"a{asked}"),
            ("approve", {"order": 1}, f"b{asked}"),
            ("refund", {"order": 8}, f"c{asked}"),
        )

    agent = create_agent(
        scripted(script, stage.world),
        [refund_tool(stage), approve],
        middleware=[JournalMiddleware(policies={"refund": stage.never, "approve": stage.never})],
        checkpointer=stage.saver,
    )
    config = {"configurable": {"thread_id": THREAD}}
    if not agent.get_state(config).interrupts:
        stage.durable(agent, REQUEST)
    waits = bool(agent.get_state(config).interrupts)
    return stage.durable(agent, Command(resume="yes") if waits else REQUEST)
