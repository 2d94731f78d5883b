"""A chat model that follows a script: what it says depends on what it is told and on how often it was asked."""

from collections.abc import Callable, Sequence
from typing import Any

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable

from tests.schedules.world import World

Script = Callable[[Sequence[BaseMessage], int], AIMessage]
"""From the conversation, and the number of this question in the world, to the reply."""


class ScriptedModel(BaseChatModel):
    """Asks the world to count each question, then answers by its script.

    Attributes:
        script: What it says.
        world: Where its questions are counted, so that a repeated one shows.
        model_name: What people call it.
    """

    script: Any
    world: Any
    model_name: str = "scripted"

    @property
    def _llm_type(self) -> str:
        return "scripted"

    @property
    def _identifying_params(self) -> dict[str, Any]:
        return {"model_name": self.model_name}

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: Any = None,
        **options: Any,
    ) -> ChatResult:
        reply = self.script(messages, self.world.asked(self.model_name))
        return ChatResult(generations=[ChatGeneration(message=reply)])

    def bind_tools(self, tools: Sequence[Any], **options: Any) -> Runnable[Any, AIMessage]:
        return self.bind(tools=[getattr(tool, "name", None) or tool.__name__ for tool in tools], **options)


def scripted(script: Script, world: World, *, name: str = "scripted") -> ScriptedModel:
    """A model with a script."""
    return ScriptedModel(script=script, world=world, model_name=name)


def calls(*asked: tuple[str, dict[str, Any], str]) -> AIMessage:
    """A reply that asks for tool calls, each given as (tool, arguments, call id)."""
    return AIMessage(
        content="",
        tool_calls=[{"name": name, "args": args, "id": call_id} for name, args, call_id in asked],
    )


def answers(messages: Sequence[BaseMessage]) -> list[str]:
    """The texts of the tools' answers in a conversation."""
    return [str(message.text) for message in messages if isinstance(message, ToolMessage)]
