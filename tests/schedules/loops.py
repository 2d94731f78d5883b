"""An agent's loop written by hand: a journalled model, and the middleware's tool boundary without a graph around it."""

import asyncio
import json
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, cast

from langchain.agents.middleware.types import ToolCallRequest
from langchain_core.messages import (
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
    messages_from_dict,
    messages_to_dict,
)

from gnl_langchain import JournalMiddleware, journaled_model
from gnl_middleware import Policy
from tests.schedules.scripted_model import ScriptedModel

Tools = Mapping[str, Callable[..., str]]


class Loop:
    """One agent: its model, its tools, and how long it dawdles before each call.

    Args:
        model: What it asks.
        tools: What it calls, by name.
        policy: The replay label of all its tools.
        system: Its system prompt.
        jitter: Longest pause in seconds before a call, so that concurrent agents interleave anew each time.
        saved: File in which it keeps the conversation after each turn, to go on from there.
    """

    def __init__(
        self,
        model: ScriptedModel,
        tools: Tools,
        policy: Policy,
        *,
        system: str | None = None,
        jitter: float = 0.0,
        saved: Path | None = None,
    ) -> None:
        self._model = journaled_model(model)
        self._tools = tools
        self._middleware = JournalMiddleware(policies=dict.fromkeys(tools, policy))
        self._system, self._jitter, self._saved = system, jitter, saved

    def ask(self, prompt: str) -> str:
        """Converse until the model asks for no more tools; gives its last words."""
        messages = self._beginning(prompt)
        while True:
            time.sleep(self._pause())
            reply = self._model.invoke(messages)
            messages.append(reply)
            if not reply.tool_calls:
                return reply.text
            for call in reply.tool_calls:
                messages.append(self._middleware.wrap_tool_call(_request(call, messages), self._call))
            self._save(messages)

    async def ask_async(self, prompt: str) -> str:
        """As ``ask``, beside other agents on the same event loop."""
        messages = self._beginning(prompt)
        while True:
            await asyncio.sleep(self._pause())
            reply = await self._model.ainvoke(messages)
            messages.append(reply)
            if not reply.tool_calls:
                return reply.text
            for call in reply.tool_calls:
                given = self._middleware.awrap_tool_call(_request(call, messages), self._call_async)
                messages.append(await cast("Awaitable[Any]", given))

    def _beginning(self, prompt: str) -> list[BaseMessage]:
        if self._saved is not None and self._saved.exists():
            return messages_from_dict(json.loads(self._saved.read_text(encoding="utf-8")))
        system = [SystemMessage(self._system)] if self._system else []
        return [*system, HumanMessage(prompt)]

    def _save(self, messages: list[BaseMessage]) -> None:
        if self._saved is not None:
            draft = self._saved.with_suffix(".draft")
            draft.write_text(json.dumps(messages_to_dict(messages)), encoding="utf-8")
            draft.rename(self._saved)

    def _call(self, request: ToolCallRequest) -> ToolMessage:
        time.sleep(self._pause())
        return self._answer(request)

    async def _call_async(self, request: ToolCallRequest) -> ToolMessage:
        await asyncio.sleep(self._pause())
        return self._answer(request)

    def _answer(self, request: ToolCallRequest) -> ToolMessage:
        call = request.tool_call
        text = self._tools[call["name"]](**call["args"])
        return ToolMessage(text, tool_call_id=call["id"] or "", name=call["name"])

    def _pause(self) -> float:
        return random.uniform(0, self._jitter)


def _request(call: Any, messages: list[BaseMessage]) -> ToolCallRequest:
    return ToolCallRequest(
        tool_call=call, tool=None, state={"messages": list(messages)}, runtime=cast("Any", None)
    )
