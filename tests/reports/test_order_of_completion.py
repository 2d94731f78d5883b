"""What is keyed by the order of arrival gets another call's result when a replay arrives in another order."""

import asyncio
import itertools
import random

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import AIMessage, messages_to_dict

from gnl_langchain import JournalMiddleware, arun_durable
from gnl_middleware import never
from tests.schedules.scripted_model import answers, calls, scripted

REQUEST = {"messages": [("user", "all three")]}
NAMES = ("a", "b", "c")
ORDERS = list(itertools.permutations(NAMES))
PAIRS = [(first, second) for first in ORDERS for second in ORDERS]


class Turnstile(AgentMiddleware):
    """Lets calls through in an order of its own, each when the one before has ended.

    Args:
        order: The tools' names.
    """

    def __init__(self, order):
        super().__init__()
        self._order = order
        self._ended = {name: asyncio.Event() for name in order}

    async def awrap_tool_call(self, request, handler):
        name = request.tool_call["name"]
        place = self._order.index(name)
        if place:
            await self._ended[self._order[place - 1]].wait()
        try:
            return await handler(request)
        finally:
            self._ended[name].set()


def agent_of(world, order, *, seen, dies=False):
    """Three tools in one reply; the requests of the last turn are seen by the test."""

    def tool(name):
        async def body() -> str:
            """Act."""
            return world.act(name, f"result of {name}, number {sum(world.effects.values()) + 1}")

        body.__name__ = name
        return body

    def script(messages, asked):
        if not answers(messages):
            return calls(*((name, {}, f"{name}_{asked}") for name in NAMES))
        if dies:
            raise RuntimeError("500")
        seen.append(
            [{**message, "data": {**message["data"], "id": None}} for message in messages_to_dict(messages)]
        )
        return AIMessage("done: " + " | ".join(answers(messages)))

    middleware = [
        Turnstile(order),
        JournalMiddleware(policies=dict.fromkeys(NAMES, never(recover=world.recover))),
    ]
    return create_agent(scripted(script, world), [tool(name) for name in NAMES], middleware=middleware)


def expected(order):
    return "done: " + " | ".join(f"result of {name}, number {order.index(name) + 1}" for name in NAMES)


async def check(world, journal, run_id, first, second):
    """Record in one order, fail before the last turn, replay in another order."""
    seen, before = [], sum(world.effects.values())
    with pytest.raises(RuntimeError, match="500"):
        await arun_durable(
            agent_of(world, first, seen=seen, dies=True), REQUEST, run_id=run_id, journal=journal
        )
    state = await arun_durable(
        agent_of(world, second, seen=seen), REQUEST, run_id=run_id, journal=journal, replay="strict"
    )
    assert state["messages"][-1].text == expected(first)
    assert sum(world.effects.values()) == before + 3
    return seen


@pytest.fixture(params=[pytest.param(4, id="slice"), pytest.param(None, id="whole", marks=pytest.mark.long)])
def pairs(request):
    """Orders at the first attempt and at the second."""
    return PAIRS if request.param is None else random.Random("orders").sample(PAIRS, request.param)


async def test_arrival_in_another_order(tmp_path, journal, pairs):
    """Each call gets its own result, the answers stand in the order of the calls, and strict mode has no complaint."""
    from tests.schedules.world import World

    for first, second in pairs:
        name = "".join(first + second)
        await check(World(tmp_path / name), journal, name, first, second)


@pytest.fixture(params=[pytest.param(5, id="slice"), pytest.param(100, id="whole", marks=pytest.mark.long)])
def repeats(request):
    """How often a finished run is read back."""
    return request.param


async def test_reading_back_again_and_again(world, journal, repeats):
    """However often and in whatever order a run is read back, its messages are the same to the last byte."""
    orders = random.Random("repeats")
    (sent,) = await check(world, journal, "job", ORDERS[1], ORDERS[4])

    states = [
        await arun_durable(
            agent_of(world, orders.choice(ORDERS), seen=[]),
            REQUEST,
            run_id="job",
            journal=journal,
            replay="strict",
            offline=True,
        )
        for _ in range(repeats)
    ]

    read_back = [
        [
            {**message, "data": {**message["data"], "id": None}}
            for message in messages_to_dict(state["messages"][:-1])
        ]
        for state in states
    ]
    assert read_back == [sent] * repeats
    assert world.model_calls == 3
