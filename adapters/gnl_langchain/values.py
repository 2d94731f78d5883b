"""LangChain's values through the journal: messages, chunks and commands, registered one by one, never by a name in data.

Providers leave pydantic objects in a reply's ``additional_kwargs``; those become plain data, and the live caller gets
what a replay would give. Anywhere else such an object is refused with its path: nobody's result changes its type quietly.
"""

from collections.abc import Mapping
from typing import Any

from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)
from langgraph.errors import ParentCommand
from langgraph.types import Command, Send
from pydantic import BaseModel

from gnl_middleware.adapter import register

from .private import MessageText
from .requests import normalised

_FILLED_BY_PROVIDERS = frozenset({"additional_kwargs", "response_metadata"})
_MESSAGES: tuple[type[BaseMessage], ...] = (
    AIMessage,
    AIMessageChunk,
    HumanMessage,
    SystemMessage,
    ToolMessage,
    ChatMessage,
    FunctionMessage,
    RemoveMessage,
)


def plain(value: Any) -> Any:
    """A value with the pydantic objects inside its containers as plain data; messages and the rest as they are."""
    if isinstance(value, BaseMessage):
        return value
    if isinstance(value, BaseModel):
        return plain(value.model_dump(mode="json"))
    if type(value) is dict:
        return {key: plain(item) for key, item in value.items()}  # pyright: ignore[reportUnknownVariableType]
    if type(value) is list:
        return [plain(item) for item in value]  # pyright: ignore[reportUnknownVariableType]
    return value


def raised_or_given(value: Any) -> Any:
    """A recorded outcome as the caller gets it: a command to the parent graph is raised, as it was."""
    if isinstance(value, ParentCommand):
        raise value
    return value


def message_fields(message: BaseMessage) -> dict[str, Any]:
    """The fields of a message that say something, in their order."""
    fields = {name: getattr(message, name) for name in type(message).model_fields if name != "type"}
    fields |= message.model_extra or {}
    said = {name: value for name, value in fields.items() if name == "content" or not _says_nothing(value)}
    return {name: plain(value) if name in _FILLED_BY_PROVIDERS else value for name, value in said.items()}


def _says_nothing(value: Any) -> bool:
    return value is None or (isinstance(value, list | dict) and not value)


def _chunk_fields(message: AIMessageChunk) -> dict[str, Any]:
    # The merged calls of a chunk are parsed from its call chunks; parsing them again repairs nothing and loses nothing.
    fields = message_fields(message)
    if fields.get("tool_call_chunks"):
        fields.pop("tool_calls", None)
        fields.pop("invalid_tool_calls", None)
    return fields


def _command_fields(command: Command[Any]) -> dict[str, Any]:
    fields: Mapping[str, Any] = {
        "graph": command.graph,
        "update": command.update,
        "resume": command.resume,
        "goto": command.goto,
    }
    return {name: value for name, value in fields.items() if value is not None}


def _send_fields(send: Send) -> dict[str, Any]:
    return {"node": send.node, "arg": send.arg}


def _register_all() -> None:
    for kind in _MESSAGES:
        register(
            kind,
            tag=f"langchain.{kind.__name__}",
            to_plain=_chunk_fields if kind is AIMessageChunk else message_fields,
            from_plain=_rebuilder(kind),
            canonical=normalised,
        )
    # What ``message.text`` is; people hand it to functions and return it from tools.
    register(MessageText, tag="langchain.Text", to_plain=str, from_plain=MessageText)
    register(Command, tag="langgraph.Command", to_plain=_command_fields, from_plain=_rebuilder(Command))
    register(Send, tag="langgraph.Send", to_plain=_send_fields, from_plain=_rebuilder(Send))
    register(
        ParentCommand,
        tag="langgraph.ParentCommand",
        to_plain=lambda error: error.args[0],
        from_plain=ParentCommand,
    )


def _rebuilder(kind: Any) -> Any:
    return lambda fields: kind(**fields)  # pyright: ignore[reportUnknownLambdaType, reportUnknownVariableType]


_register_all()
