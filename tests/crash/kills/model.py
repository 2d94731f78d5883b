"""A chat model that answers from a script and tells the world each time that it is asked."""

import json
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Any

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.utils.function_calling import convert_to_openai_tool

Calls = Sequence[tuple[str, str]]
"""The tools that one reply calls, each with the order that it is about."""


def turn_of(messages: Sequence[BaseMessage]) -> int:
    """How many replies stand in the history: a script needs no other state, so any process can go on with it."""
    return sum(isinstance(message, AIMessage) for message in messages)


class TurnModel(BaseChatModel):
    """Says what its script says, turn by turn, word by word.

    Attributes:
        agent: Whose model it is.
        script: The calls of each turn; after the last one comes a reply without calls.
        note: Tells the world.
    """

    agent: str
    script: tuple[Any, ...]
    note: Callable[..., None]

    @property
    def _llm_type(self) -> str:
        return "turns"

    @property
    def _identifying_params(self) -> dict[str, Any]:
        return {"model": self.agent}

    def _reply(self, messages: Sequence[BaseMessage]) -> AIMessage:
        turn = turn_of(messages)
        self.note("asked", f"{self.agent}/{turn}")
        calls: Calls = self.script[turn] if turn < len(self.script) else ()
        return AIMessage(
            f"turn {turn} of {self.agent}",
            tool_calls=[
                {"name": name, "args": {"order": order}, "id": f"{name}-{order}", "type": "tool_call"}
                for name, order in calls
            ],
        )

    def _generate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **options: Any
    ) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self._reply(messages))])

    async def _agenerate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **options: Any
    ) -> ChatResult:
        return self._generate(messages)

    def _stream(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **options: Any
    ) -> Iterator[ChatGenerationChunk]:
        reply = self._reply(messages)
        for word in str(reply.content).split(" "):
            # Each word takes the time of a sync, so that many kills come between two of them.
            self.note("token", word)
            yield ChatGenerationChunk(message=AIMessageChunk(content=f"{word} "))
        calls = [
            {"name": call["name"], "args": json.dumps(call["args"]), "id": call["id"], "index": place}
            for place, call in enumerate(reply.tool_calls)
        ]
        last = AIMessageChunk(content="", tool_call_chunks=calls, chunk_position="last")
        yield ChatGenerationChunk(message=last)

    async def _astream(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **options: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        for chunk in self._stream(messages):
            yield chunk

    def bind_tools(self, tools: Sequence[Any], **options: Any) -> Any:
        """Take the tools as any provider would get them."""
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools], **options)
