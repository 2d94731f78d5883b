"""A chat model of LangChain that answers at once, and the tool that it calls."""

from collections.abc import Sequence
from typing import Any

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from langchain_core.utils.function_calling import convert_to_openai_tool

from .text import payload


class InstantModel(BaseChatModel):
    """Asks for one call of the tool again and again, so often as the first message says; without any state of its own."""

    @property
    def _llm_type(self) -> str:
        return "instant"

    def _generate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **options: Any
    ) -> ChatResult:
        steps, size = (int(number) for number in str(messages[0].content).split())
        number = len(messages) // 2
        reply = AIMessage("Done.") if number == steps else _calling(number, size)
        return ChatResult(generations=[ChatGeneration(message=reply)])

    def bind_tools(self, tools: Sequence[Any], **options: Any) -> Any:
        """As models of providers do."""
        return self.bind(tools=[convert_to_openai_tool(each) for each in tools], **options)


def _calling(number: int, size: int) -> AIMessage:
    arguments = {"number": number, "size": size}
    return AIMessage(
        "", tool_calls=[{"name": "effect", "args": arguments, "id": f"call_{number}", "type": "tool_call"}]
    )


def asked(steps: int, size: int) -> dict[str, Any]:
    """The input of an agent that is to take so many steps."""
    return {"messages": [("user", f"{steps} {size}")]}


def limits(steps: int) -> dict[str, Any]:
    """A configuration that lets a graph take so many steps."""
    return {"recursion_limit": 10 * steps + 50}


@tool
def effect(number: int, size: int) -> str:
    """Do something that must not be done twice."""
    return payload(number, size)
