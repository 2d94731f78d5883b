"""Several agents in one run: side by side, one inside another, one after another."""

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain.agents.middleware.types import ToolCallRequest
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.tools import StructuredTool

from gnl_langchain import JournalMiddleware
from gnl_middleware import Run, safe
from tests.schedules.loops import Loop
from tests.schedules.scripted_model import Script, answers, calls, scripted
from tests.schedules.stage import Stage, program

from .turns import refund_tool

REQUEST = {"messages": [("user", "refund")]}


def refunds(name: str, count: int) -> Script:
    """So many refunds for one customer, in as many turns."""

    def script(messages: Sequence[BaseMessage], asked: int) -> AIMessage:
        done = len(answers(messages))
        if done == count:
            return AIMessage(f"done {name}")
        return calls(("refund", {"order": f"{name}{done}"}, f"{name}-{done}-{asked}"))

    return script


def scope(run: Run, name: str, stage: Stage) -> contextlib.AbstractContextManager[None]:
    """The branch's scope, where the schedule names its branches."""
    return run.scope(name) if stage.option("scopes") == "named" else contextlib.nullcontext()


@program
def side_by_side(stage: Stage) -> str:
    """Two agents at once on one event loop; who begins first changes from attempt to attempt."""
    first = "AB"[(stage.job.number + len(stage.option("order"))) % 2]

    async def agent(run: Run, name: str) -> str:
        loop = Loop(
            scripted(refunds(name, 2), stage.world), {"refund": refund_tool(stage)}, stage.never, jitter=0.004
        )
        with scope(run, name, stage):
            await asyncio.sleep(0 if name == first else 0.01)
            return await loop.ask_async(f"I am {name}")

    async def both() -> str:
        async with stage.run() as run:
            return " ".join(await asyncio.gather(agent(run, "A"), agent(run, "B")))

    return asyncio.run(both())


@program
def one_branch_fails(stage: Stage) -> str:
    """Two branches whose models give the same call id: the tool of one fails and ends the run, the other goes on."""
    failed = threading.Event()

    def branch(run: Run, name: str) -> str:
        def refund(order: str) -> str:
            if name == "A" and stage.job.number == 1:
                failed.set()
                raise ValueError("the bank is down")
            if stage.job.number == 1:
                failed.wait()
            return stage.world.act(f"refund {order}", f"refunded {order}")

        def script(messages: Sequence[BaseMessage], asked: int) -> AIMessage:
            if answers(messages):
                return AIMessage(f"done {name}")
            return calls(("refund", {"order": name}, "call_0"))

        loop = Loop(scripted(script, stage.world), {"refund": refund}, safe)
        with scope(run, name, stage):
            return loop.ask(f"I am {name}")

    async def both() -> str:
        async with stage.run() as run:
            work = [asyncio.to_thread(branch, run, name) for name in "AB"]
            ended = await asyncio.gather(*work, return_exceptions=True)
            for outcome in ended:
                if isinstance(outcome, BaseException):
                    raise outcome
            return " ".join(map(str, ended))

    return asyncio.run(both())


@program
def agents_as_tools(stage: Stage) -> str:
    """An agent asks two others through tools, in one reply, beside a refund of its own."""

    def refund(order: str) -> str:
        """Refund an order."""
        time.sleep(0.002 * (len(order) % 3))
        return stage.world.act(f"refund {order}", "ok")

    def script(messages: Sequence[BaseMessage], asked: int) -> AIMessage:
        done, task = len(answers(messages)), messages[0].text
        if done == 2:
            return AIMessage(f"{task} done")
        return calls(("refund", {"order": f"{task}-{done}"}, f"inner_{done}"))

    inner = create_agent(
        scripted(script, stage.world, name="inner"),
        [refund],
        middleware=[JournalMiddleware(policies={"refund": stage.never})],
    )

    def delegate(task: str) -> str:
        """Hand a task to another agent."""
        return inner.invoke({"messages": [("user", task)]})["messages"][-1].text

    def outer_script(messages: Sequence[BaseMessage], asked: int) -> AIMessage:
        if done := answers(messages):
            return AIMessage("done: " + " | ".join(done))
        second = "t1" if stage.option("prompts") == "same" else "t2"
        return calls(
            ("delegate", {"task": "t1"}, "d1"),
            ("delegate", {"task": second}, "d2"),
            ("refund", {"order": "top"}, "r1"),
        )

    outer = create_agent(
        scripted(outer_script, stage.world, name="outer"),
        [delegate, refund],
        middleware=[JournalMiddleware(policies={"delegate": safe, "refund": stage.never})],
        checkpointer=stage.saver,
    )
    return stage.durable(outer, REQUEST)


def _agent(stage: Stage) -> Any:
    return create_agent(
        scripted(refunds("R", 2), stage.world),
        [refund_tool(stage)],
        middleware=[JournalMiddleware(policies={"refund": stage.never})],
        checkpointer=stage.saver,
    )


@program
def invoked_twice(stage: Stage) -> str:
    """One agent, invoked twice in one run with one prompt: both are meant."""
    with stage.run():
        return " ".join(_agent(stage).invoke(REQUEST)["messages"][-1].text for _ in range(2))


@program
def two_threads(stage: Stage) -> str:
    """One agent on two threads of a checkpointer, in one run, with one prompt; what a thread finished is skipped."""
    agent = _agent(stage)
    with stage.run() as run:
        for name in ("first", "second"):
            with run.scope(name):
                config = {"configurable": {"thread_id": name}}
                state = agent.get_state(config)
                if not state.values.get("messages"):
                    agent.invoke(REQUEST, config, durability="sync")
                elif state.next:
                    agent.invoke(None, config, durability="sync")
        return "done"


@program
def two_calls_of_one_tool(stage: Stage) -> str:
    """Two refunds of one reply, maybe in a process that also serves another agent with a tool of the same name.

    The second call comes first after the restart, so it must settle its interrupted sibling.
    """
    first_refund, second_ended = threading.Event(), threading.Event()

    class SecondFirst(AgentMiddleware[Any, Any]):
        def wrap_tool_call(self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Any]) -> Any:
            is_first = request.tool_call["args"]["order"] == 7
            if is_first and stage.job.number > 1:
                second_ended.wait(timeout=10)
            if not is_first and stage.job.number == 1:
                first_refund.wait(timeout=10)
            try:
                return handler(request)
            finally:
                second_ended.set()

    def refund(order: int) -> str:
        """Refund an order."""
        return stage.world.act(f"refund {order}", f"refunded {order}")

    def script(messages: Sequence[BaseMessage], asked: int) -> AIMessage:
        if done := answers(messages):
            return AIMessage("done: " + " | ".join(done))
        return calls(*(("refund", {"order": order}, f"call_{order}") for order in (7, 8)))

    others = [JournalMiddleware(never=["refund"])] if stage.option("namesake") != "alone" else []
    tool = stage.never(StructuredTool.from_function(refund)) if stage.option("label") == "tool" else refund
    policies = {"refund": stage.never} if stage.option("label") == "middleware" else None
    agent = create_agent(
        scripted(script, stage.world),
        [tool],
        middleware=[SecondFirst(), JournalMiddleware(policies=policies)],
        checkpointer=stage.saver,
    )
    reply = stage.durable(agent, REQUEST)
    assert len(others) < 2  # kept alive until here
    return reply
