"""The agents that are killed: tools in sequence, in parallel, and inside one another, each synchronous and asynchronous."""

import hashlib
from collections.abc import Awaitable, Callable
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import AIMessage
from langchain_core.tools import StructuredTool

from gnl_langchain import JournalMiddleware
from gnl_middleware import Done, InterruptedCall, NotDone, current_step, journaled, keyed, never, safe

from .model import Calls, TurnModel, turn_of
from .world import World

SHAPES: dict[str, tuple[Calls, ...]] = {
    "sequential": ((("lookup", "s0"),), (("charge", "s1"),), (("mail", "s2"),), (("charge", "s3"),)),
    "parallel": (
        (("charge", "p0"), ("mail", "p1"), ("lookup", "p2"), ("charge", "p3")),
        (("mail", "p4"), ("charge", "p5")),
    ),
    "nested": (
        (("delegate", "n0"),),
        (("delegate", "n1"), ("charge", "n2"), ("bill", "n3")),
    ),
}
"""What the model of each agent asks for, turn by turn."""

QUESTION = {"messages": [("user", "please settle my orders")]}


class Given(AgentMiddleware[Any, Any]):
    """Tells the world what the agent is given: from then on it must never be forgotten. Stands around the journal."""

    def __init__(self, world: World, agent: str) -> None:
        super().__init__()
        self._world, self._agent = world, agent

    def wrap_model_call(self, request: Any, handler: Callable[..., Any]) -> Any:
        """Note the reply."""
        return self._reply(request, handler(request))

    async def awrap_model_call(self, request: Any, handler: Callable[..., Awaitable[Any]]) -> Any:
        """Note the reply."""
        return self._reply(request, await handler(request))

    def wrap_tool_call(self, request: Any, handler: Callable[..., Any]) -> Any:
        """Note the tool's answer."""
        return self._answer(request, handler(request))

    async def awrap_tool_call(self, request: Any, handler: Callable[..., Awaitable[Any]]) -> Any:
        """Note the tool's answer."""
        return self._answer(request, await handler(request))

    def _reply(self, request: Any, response: Any) -> Any:
        reply: AIMessage = response.result[0]
        name = f"{self._agent}/{turn_of(request.messages)}"
        self._world.note("given", name, value=digest(reply.content, reply.tool_calls))
        return response

    def _answer(self, request: Any, answer: Any) -> Any:
        name = f"{request.tool_call['name']}:{request.tool_call['args']['order']}"
        self._world.note("given", name, value=digest(answer.content))
        return answer


class Shop:
    """The tools of one run, and what they do to the world.

    Args:
        world: The world.
        streamed: Whether inner agents are streamed, too.
    """

    def __init__(self, world: World, *, streamed: bool) -> None:
        self._world, self._streamed = world, streamed

        @journaled(replay=never(recover=world.recover))
        def post(order: str) -> str:
            return self._effect("post", order, "never")

        async def recover(call: InterruptedCall) -> Done | NotDone:
            return world.recover(call)

        @journaled(replay=never(recover=recover))
        async def post_later(order: str) -> str:
            return self._effect("post", order, "never")

        self._post, self._post_later = post, post_later

    def agent(self, name: str, script: tuple[Calls, ...]) -> Any:
        """An agent whose calls are journalled."""
        tools = [self._tool(each) for each in sorted({tool for calls in script for tool, _ in calls})]
        policies = {
            "charge": never(recover=self._world.recover),
            "mail": keyed,
            "lookup": safe,
            "delegate": safe,
            "bill": safe,
        }
        named = {tool.name: policies[tool.name] for tool in tools}
        return create_agent(
            TurnModel(agent=name, script=script, note=self._world.note),
            tools,
            middleware=[Given(self._world, name), JournalMiddleware(policies=named)],
        )

    def _tool(self, name: str) -> StructuredTool:
        work: Callable[[str], str] = getattr(self, f"_{name}")
        work_async: Callable[[str], Awaitable[str]] | None = getattr(self, f"_{name}_async", None)

        def call(order: str) -> str:
            return work(order)

        async def call_async(order: str) -> str:
            return work(order) if work_async is None else await work_async(order)

        return StructuredTool.from_function(
            call, call_async, name=name, description=f"{name.capitalize()} an order."
        )

    def _effect(self, name: str, order: str, policy: str) -> str:
        result = f"{name} of {order} is done"
        key = current_step().idempotency_key
        self._world.note("effect", f"{name}:{order}", key=key, policy=policy, result=result)
        return result

    def _charge(self, order: str) -> str:
        return self._effect("charge", order, "never")

    def _mail(self, order: str) -> str:
        return self._effect("mail", order, "keyed")

    def _lookup(self, order: str) -> str:
        self._world.note("read", f"lookup:{order}")
        return f"{order} is open"

    def _bill(self, order: str) -> str:
        """A plain journalled function inside a tool."""
        self._world.note("read", f"bill:{order}")
        return self._billed(order, self._post(order))

    async def _bill_async(self, order: str) -> str:
        self._world.note("read", f"bill:{order}")
        return self._billed(order, await self._post_later(order))

    def _billed(self, order: str, posted: str) -> str:
        self._world.note("given", f"post:{order}", value=digest(posted))
        return f"billed: {posted}"

    def _inner(self, order: str) -> Any:
        self._world.note("read", f"delegate:{order}")
        script = ((("charge", f"{order}a"),), (("charge", f"{order}b"), ("mail", f"{order}c")))
        return self.agent(f"inner-{order}", script)

    def _delegate(self, order: str) -> str:
        """An agent inside a tool."""
        agent = self._inner(order)
        if not self._streamed:
            return agent.invoke(QUESTION)["messages"][-1].text
        states = [
            part
            for mode, part in agent.stream(QUESTION, stream_mode=["messages", "values"])
            if mode == "values"
        ]
        return states[-1]["messages"][-1].text

    async def _delegate_async(self, order: str) -> str:
        agent = self._inner(order)
        if not self._streamed:
            return (await agent.ainvoke(QUESTION))["messages"][-1].text
        parts = agent.astream(QUESTION, stream_mode=["messages", "values"])
        states = [part async for mode, part in parts if mode == "values"]
        return states[-1]["messages"][-1].text


def digest(*parts: Any) -> str:
    """A short name of a value."""
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]
