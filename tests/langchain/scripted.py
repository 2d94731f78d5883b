"""A chat model that answers from a script and remembers every request, and what tests count with."""

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import Field

QUESTION = {"messages": [("user", "please refund order 7")]}

Turn = AIMessage | BaseException
Script = Callable[[Sequence[BaseMessage]], Turn]


class ScriptedModel(BaseChatModel):
    """Answers from a script.

    Attributes:
        script: From the messages to a reply, or to an error that is raised.
        asked: Every request, live; copies of the model share it.
        bill: Where each request is noted on the disk, or None.
    """

    script: Any
    model_name: str = "scripted"
    bill: Any = None
    asked: list[list[BaseMessage]] = Field(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "scripted"

    @property
    def _identifying_params(self) -> dict[str, Any]:
        return {"model": self.model_name}

    def _reply(self, messages: list[BaseMessage]) -> AIMessage:
        self.asked.append(list(messages))
        if self.bill is not None:
            self.bill.add(f"{self.model_name} {len(messages)}")
        turn = self.script(messages)
        if isinstance(turn, BaseException):
            raise turn
        return turn

    def _generate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **options: Any
    ) -> ChatResult:
        reply = self._reply(messages)
        return ChatResult(
            generations=[ChatGeneration(message=reply)], llm_output={"model_name": self.model_name}
        )

    def _stream(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **options: Any
    ) -> Iterator[ChatGenerationChunk]:
        reply = self._reply(messages)
        for word in str(reply.content).split(" "):
            yield ChatGenerationChunk(message=AIMessageChunk(content=f"{word} "))
        calls = [
            {
                "name": call["name"],
                "args": json.dumps(call["args"]),
                "id": call["id"],
                "index": place,
                "type": "tool_call_chunk",
            }
            for place, call in enumerate(reply.tool_calls)
        ]
        last = AIMessageChunk(
            content="",
            tool_call_chunks=calls,
            chunk_position="last",
            response_metadata=reply.response_metadata,
            usage_metadata=reply.usage_metadata,
        )
        yield ChatGenerationChunk(message=last)

    def bind_tools(self, tools: Sequence[Any], **options: Any) -> Any:
        """Show the tools to the script as any provider would get them."""
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools], **options)


def turns(*said: Turn) -> Script:
    """The n-th of these after n replies in the history: no state, so another process goes on where this one was."""
    return lambda messages: said[sum(isinstance(message, AIMessage) for message in messages)]


def failing_first(script: Script, *errors: BaseException) -> Script:
    """The script, after each of these errors has been raised once."""
    left = list(errors)
    return lambda messages: left.pop(0) if left else script(messages)


def calling(*names: str, text: str = "", **arguments: Any) -> AIMessage:
    """A reply that calls these tools in parallel, all with the same arguments."""
    calls = [
        {"name": name, "args": arguments, "id": f"call_{place}_{name}", "type": "tool_call"}
        for place, name in enumerate(names)
    ]
    return AIMessage(text, tool_calls=calls)


def said(text: str = "Done.") -> AIMessage:
    """A reply that ends the turn."""
    return AIMessage(text)


def texts(messages: Sequence[BaseMessage]) -> list[str]:
    """The text of each message."""
    return [str(message.content) for message in messages]
