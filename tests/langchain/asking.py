"""A question to the real OpenAI client, the server that answers it, and the ways to ask."""

import asyncio
from collections.abc import Callable
from typing import Any

from langchain_core.messages import AIMessage
from pydantic import BaseModel

from tests.servers.scripted_openai import Reply, ToolCall

QUESTION = "What has order 7 cost, and in which currency was it paid?"
TEXT = "Order 7 has cost 42 and was paid in Euro, as every order of this customer was so far."


class Price(BaseModel):
    """The price of an order."""

    amount: int
    currency: str


def quote(order: int) -> str:
    """Quote the price of an order."""
    raise AssertionError("a model runs no tool")


def script(request: dict[str, Any]) -> Reply:
    """Say what the request's format asks for."""
    price = {"amount": 42, "currency": "EUR"}
    names = [tool["function"]["name"] for tool in request.get("tools", ())]
    if request.get("response_format"):
        return Reply('{"amount": 42, "currency": "EUR"}')
    if names == ["Price"]:
        return Reply(calls=(ToolCall("call_1", "Price", price),))
    if names:
        calls = (ToolCall("call_1", "quote", {"order": 7}), ToolCall("call_2", "quote", {"order": 8}))
        return Reply("I ask for two quotes.", calls)
    return Reply(TEXT)


async def collected(chunks: Any) -> list[Any]:
    """All chunks of an asynchronous stream."""
    return [chunk async for chunk in chunks]


ASKED: dict[str, Callable[[Any], Any]] = {
    "invoke": lambda model: model.invoke(QUESTION),
    "ainvoke": lambda model: asyncio.run(model.ainvoke(QUESTION)),
    "stream": lambda model: list(model.stream(QUESTION)),
    "astream": lambda model: asyncio.run(collected(model.astream(QUESTION))),
}
STREAMED = ("stream", "astream")


def merged(value: Any) -> AIMessage:
    """The message that a use gave, whole."""
    if not isinstance(value, list):
        return value
    whole = value[0]
    for chunk in value[1:]:
        whole += chunk
    return whole
