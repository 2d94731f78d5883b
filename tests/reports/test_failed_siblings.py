"""Calls of one reply were gathered as one, so an error of one threw away what its siblings had finished."""

import asyncio

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage
from langgraph.errors import NodeCancelledError

from gnl_langchain import JournalMiddleware, arun_durable, run_durable
from gnl_middleware import never
from tests.schedules.scripted_model import answers, calls, scripted

REQUEST = {"messages": [("user", "both")]}


def script(order):
    """Both tools in one reply, in the given order."""

    def say(messages, asked):
        if done := answers(messages):
            return AIMessage("done: " + " | ".join(done))
        return calls(*((name, {}, f"{name}_{asked}") for name in order))

    return say


def middleware(world):
    return JournalMiddleware(policies=dict.fromkeys(("good", "bad"), never(recover=world.recover)))


@pytest.mark.parametrize("order", [("good", "bad"), ("bad", "good")], ids=" ".join)
@pytest.mark.parametrize("moment", ["good has ended", "good is running"])
@pytest.mark.parametrize("error", [ValueError("bad"), asyncio.CancelledError()], ids=["error", "cancelled"])
async def test_asynchronous_siblings(world, journal, order, moment, error):
    """A sibling that failed, or was cancelled by itself, takes nothing with it: each effect once over both attempts."""
    good_acted, good_ended, broken = asyncio.Event(), asyncio.Event(), [error]

    async def good() -> str:
        """Works."""
        result = world.act("good", "good")
        good_acted.set()
        if broken and moment == "good is running":
            await asyncio.sleep(0.02)  # where a cancellation would reach it
        return result

    async def bad() -> str:
        """Fails once."""
        await good_acted.wait()
        if broken:
            if moment == "good has ended":
                await asyncio.wait_for(good_ended.wait(), timeout=10)
            raise broken.pop()
        return world.act("bad", "bad")

    class Watching(JournalMiddleware):
        async def awrap_tool_call(self, request, handler):
            try:
                return await super().awrap_tool_call(request, handler)
            finally:
                if request.tool_call["name"] == "good":
                    good_ended.set()

    watching = Watching(policies=dict.fromkeys(("good", "bad"), never(recover=world.recover)))
    agent = create_agent(scripted(script(order), world), [good, bad], middleware=[watching])

    with pytest.raises((ValueError, NodeCancelledError)):
        await arun_durable(agent, REQUEST, run_id="job", journal=journal)
    state = await arun_durable(agent, REQUEST, run_id="job", journal=journal)

    assert state["messages"][-1].text == "done: " + " | ".join(order)
    assert world.effects == {"good": 1, "bad": 1}
    assert world.model_calls == 2


@pytest.mark.parametrize("order", [("good", "bad"), ("bad", "good")], ids=" ".join)
def test_synchronous_siblings(world, journal, order):
    """The same in threads: what finished is journalled at the moment it ends, the error included."""
    broken = [ValueError("bad")]

    def good() -> str:
        """Works."""
        return world.act("good", "good")

    def bad() -> str:
        """Fails once."""
        if broken:
            raise broken.pop()
        return world.act("bad", "bad")

    agent = create_agent(scripted(script(order), world), [good, bad], middleware=[middleware(world)])

    with pytest.raises(ValueError, match="bad"):
        run_durable(agent, REQUEST, run_id="job", journal=journal)
    recorded = {step.name: (step.status, step.error) for step in journal.steps("job") if step.kind == "tool"}
    state = run_durable(agent, REQUEST, run_id="job", journal=journal)

    assert recorded == {"good": ("done", None), "bad": ("failed", "ValueError: bad")}
    assert state["messages"][-1].text == "done: " + " | ".join(order)
    assert world.effects == {"good": 1, "bad": 1}
    assert world.model_calls == 2
