"""The reference order: look something up, mail a customer once, answer. Five steps, and one of them must not repeat."""

import socket
from collections.abc import Sequence
from typing import Any

from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage

from gnl_langchain import JournalMiddleware
from gnl_middleware import safe
from tests.schedules.scripted_model import answers, calls, scripted
from tests.schedules.stage import THREAD, Stage, program

from .turns import refund_tool

REQUEST = {"messages": [("user", "tell the customer of order 4471 where it is")]}
REPLY = "I have mailed: order 4471 left the warehouse"


def order_script(messages: Sequence[BaseMessage], asked: int) -> AIMessage:
    """Look up, mail, answer; with other call ids each time it is asked."""
    done = answers(messages)
    if not done:
        return calls(("lookup", {"order": "4471"}, f"call_{asked}"))
    if len(done) == 1:
        return calls(("send_email", {"text": done[0]}, f"call_{asked}"))
    return AIMessage(f"I have mailed: {done[0]}")


def order_agent(stage: Stage, send_email: Any) -> Any:
    """The agent of the reference order."""

    def lookup(order: str) -> str:
        """Where an order is."""
        return f"order {order} left the warehouse"

    return create_agent(
        scripted(order_script, stage.world),
        [lookup, send_email],
        middleware=[JournalMiddleware(policies={"lookup": safe, "send_email": stage.never})],
    )


@program
def order(stage: Stage) -> str:
    """The reference order."""

    def send_email(text: str) -> str:
        """Mail the customer."""
        return stage.world.act("email", "sent")

    return stage.durable(order_agent(stage, send_email), REQUEST)


@program
def slow_order(stage: Stage) -> str:
    """The reference order, whose mail server, played by the test, takes its time."""

    def send_email(text: str) -> str:
        """Mail the customer."""
        with socket.create_connection(("127.0.0.1", int(stage.option("port")))) as mail_server:
            result = stage.world.act("email", "sent")
            mail_server.recv(1)
        return result

    return stage.durable(order_agent(stage, send_email), REQUEST)


@program
def input_given_again(stage: Stage) -> str:
    """A thread of a checkpointer whose caller gives the same input on every attempt, in a run opened by hand."""

    def script(messages: Sequence[BaseMessage], asked: int) -> AIMessage:
        if messages[-1].type == "tool":
            return AIMessage("done")
        return calls(("refund", {"order": 7}, f"call_{asked}"))

    agent = create_agent(
        scripted(script, stage.world),
        [refund_tool(stage)],
        middleware=[JournalMiddleware(policies={"refund": stage.never})],
        checkpointer=stage.saver,
    )
    config = {"configurable": {"thread_id": THREAD}}
    with stage.run():
        state = agent.invoke({"messages": [("user", "refund 7")]}, config, durability="sync")
    return state["messages"][-1].text
