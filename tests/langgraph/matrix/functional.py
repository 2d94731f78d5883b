"""The functional API: tasks that ask and act, called by an entrypoint; written once for ``def`` and once for ``async def``."""

import asyncio
from typing import Any

from langchain_core.messages import HumanMessage
from langgraph.func import entrypoint, task

from gnl_langchain import journaled_model, journaled_tools
from gnl_langgraph import journaled_node
from tests.langchain.scripted import said
from tests.langgraph.matrix.jobs import BOTH_AT_ONCE, BOTH_IN_TURN, BRANCHES, DESK, World, model
from tests.langgraph.matrix.written import loop


def _tools(world: World, *tools: Any) -> dict[str, Any]:
    return {tool.name: tool for tool in journaled_tools(tools, policies=world.policies(*tools))}


def agent(world: World, script: Any, *given: Any, saver: Any, synchronous: bool) -> Any:
    """Ask in a task, and call each tool in a task of its own, all at once, until the model asks for none."""
    asked, tools = journaled_model(model(*script)), _tools(world, *given)
    return (_agent if synchronous else _agent_async)(asked, tools, saver)


def _agent(asked: Any, tools: Any, saver: Any) -> Any:
    @task
    def ask(messages: Any) -> Any:
        return asked.invoke(messages)

    @task
    def act(call: Any) -> Any:
        return tools[call["name"]].invoke(call)

    @entrypoint(checkpointer=saver)
    def work(given: Any) -> Any:
        messages: list[Any] = [HumanMessage("please refund order 7")]
        while True:
            reply = ask(messages).result()
            messages.append(reply)
            if not reply.tool_calls:
                return [message.text.strip() for message in messages]
            messages += [done.result() for done in [act(call) for call in reply.tool_calls]]

    return work


def _agent_async(asked: Any, tools: Any, saver: Any) -> Any:
    @task
    async def ask(messages: Any) -> Any:
        return await asked.ainvoke(messages)

    @task
    async def act(call: Any) -> Any:
        return await tools[call["name"]].ainvoke(call)

    @entrypoint(checkpointer=saver)
    async def work(given: Any) -> Any:
        messages: list[Any] = [HumanMessage("please refund order 7")]
        while True:
            reply = await ask(messages)
            messages.append(reply)
            if not reply.tool_calls:
                return [message.text.strip() for message in messages]
            messages += await asyncio.gather(*[act(call) for call in reply.tool_calls])

    return work


def sequential(world: World, saver: Any, *, synchronous: bool) -> Any:
    """One call in each turn."""
    tools = (world.tool("book"), world.tool("mail"))
    return agent(world, BOTH_IN_TURN, *tools, saver=saver, synchronous=synchronous)


def parallel(world: World, saver: Any, *, synchronous: bool) -> Any:
    """Two calls in one turn, in two tasks."""
    tools = (world.tool("book"), world.tool("mail"))
    return agent(world, BOTH_AT_ONCE, *tools, saver=saver, synchronous=synchronous)


def nested(world: World, saver: Any, *, synchronous: bool) -> Any:
    """A task whose tool runs a graph of its own."""
    desk = loop(world, BOTH_IN_TURN, world.tool("book"), world.tool("mail"))
    return agent(world, DESK, world.tool("desk", desk=desk), saver=saver, synchronous=synchronous)


def pausing(world: World, saver: Any, *, synchronous: bool) -> Any:
    """A task that waits for a person, beside one that does not."""
    tools = (world.tool("book"), world.tool("mail", asks=True))
    return agent(world, BOTH_AT_ONCE, *tools, saver=saver, synchronous=synchronous)


def fanned_out(world: World, saver: Any, *, synchronous: bool) -> Any:
    """Three tasks at once: each asks the same, and acts."""
    asked = journaled_model(model(said()))
    book = journaled_node(replay=world.never, name="book")(lambda state: world.act("book"))
    mail = journaled_node(replay=world.never, name="mail")(lambda state: world.act("mail"))

    @task
    def branch(same: int) -> Any:
        return [asked.invoke("the same in each").text.strip(), book({"same": same})]

    @entrypoint(checkpointer=saver)
    def work(given: Any) -> Any:
        found = [begun.result() for begun in [branch(1) for _ in range(BRANCHES)]]
        return [*found, mail({"all": len(found)})]

    @task
    async def branch_async(same: int) -> Any:
        return [(await asked.ainvoke("the same in each")).text.strip(), book({"same": same})]

    @entrypoint(checkpointer=saver)
    async def work_async(given: Any) -> Any:
        found = await asyncio.gather(*[branch_async(1) for _ in range(BRANCHES)])
        return [*found, mail({"all": len(found)})]

    return work if synchronous else work_async


SHAPES = {
    "sequential": sequential,
    "parallel": parallel,
    "nested": nested,
    "fan-out": fanned_out,
    "interrupt": pausing,
}
