"""What a model is told, without what frameworks make up anew each time.

Left out: message ids, run ids, response metadata and usage, the name that an agent gives itself, indexes of content
blocks, tool calls repeated inside the content, secrets, and the values of headers. Kept: roles, text, other content blocks,
call ids, tool names and arguments, the status of a tool's answer, model, settings and tool schemas.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from pydantic import BaseModel

from gnl_middleware.adapter import Message, digest, without_secrets

_CALL_BLOCKS = frozenset(
    {"tool_call", "tool_call_chunk", "tool_use", "input_json_delta", "function_call", "invalid_tool_call"}
)
_INVENTED_IN_BLOCKS = frozenset({"id", "index"})
_HOW_IT_IS_SENT = frozenset(
    {
        *("stream", "streaming", "stream_options", "stream_usage"),
        *("ls_structured_output_format", "structured_output_format", "prompt_cache_key", "run_manager"),
    }
)
UNKNOWN_SETUP = None
"""The setup of a model that is only watched: callbacks are not told what the provider is."""

_ROLES = {"human": "user", "ai": "assistant", "AIMessageChunk": "assistant", "HumanMessageChunk": "user"}


def normalised(message: BaseMessage) -> dict[str, Any]:
    """A message as the provider is told it."""
    told: dict[str, Any] = {"role": role_of(message), "content": _content(message.content)}
    if isinstance(message, AIMessage):
        told["tool_calls"] = [_call(call) for call in message.tool_calls]
        if message.invalid_tool_calls:
            told["invalid_tool_calls"] = [_call(call) for call in message.invalid_tool_calls]
        return told
    if message.name is not None:
        told["name"] = message.name
    if isinstance(message, ToolMessage):
        told |= {"tool_call_id": message.tool_call_id, "status": message.status}
    return told


def role_of(message: BaseMessage) -> str:
    """The role that a message has for a provider."""
    role = getattr(message, "role", None)
    return str(role) if role else _ROLES.get(message.type, message.type.removesuffix("MessageChunk").lower())


def reply_digest(message: AIMessage) -> str:
    """Digest of a reply's text and calls alone: streaming protocols rewrite the rest of its content."""
    content = _content(message.content)
    text = content if isinstance(content, str) else "".join(part for part in content if isinstance(part, str))
    return digest([text, [_call(call) for call in message.tool_calls]])


def identified(message: BaseMessage, told: Mapping[str, Any]) -> Message:
    """A message as identity sees it."""
    if isinstance(message, AIMessage):
        call_ids = tuple(str(call.get("id") or "") for call in message.tool_calls)
        return Message("assistant", digest(told), call_ids=call_ids, reply=reply_digest(message))
    answers = message.tool_call_id if isinstance(message, ToolMessage) else None
    return Message(role_of(message), digest(told), answers=answers)


def setup_of(model: BaseChatModel, stop: Sequence[str] | None, options: Mapping[str, Any]) -> dict[str, Any]:
    """The model, its settings and its tools, as plain data."""
    settings = {**model._identifying_params, **options}  # pyright: ignore[reportPrivateUsage]
    kept = {name: described(value) for name, value in settings.items() if name not in _HOW_IT_IS_SENT}
    return {"type": model._llm_type, "stop": list(stop or []), **without_secrets(kept)}  # pyright: ignore[reportPrivateUsage]


def model_name(model: BaseChatModel) -> str:
    """What people call the model."""
    name = getattr(model, "model_name", None) or getattr(model, "model", None)
    return str(name or model._llm_type)  # pyright: ignore[reportPrivateUsage]


def described(value: Any) -> Any:
    """Any setting as plain data; objects by their type, never by a text that may hold an address or a secret."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Mapping):
        return {str(key): described(item) for key, item in value.items()}  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    if isinstance(value, list | tuple):
        return [described(item) for item in value]  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, type):
        schema = value.model_json_schema() if issubclass(value, BaseModel) else None
        return {"type": value.__qualname__, "schema": schema}
    if isinstance(value, BaseModel):
        return described(value.model_dump(mode="json"))
    return {"object": type(value).__qualname__}


def _call(call: Mapping[str, Any]) -> dict[str, Any]:
    return {"name": call.get("name"), "args": call.get("args"), "id": call.get("id") or ""}


def _content(content: Any) -> Any:
    """Content without its shape: a text equals a list of one text block."""
    if isinstance(content, str):
        return content
    parts: list[Any] = []
    for block in content:
        told = {"type": "text", "text": block} if isinstance(block, str) else dict(block)
        if told.get("type") in _CALL_BLOCKS:
            continue
        if told.get("type") == "text" and not told.get("annotations"):
            _add_text(parts, str(told.get("text", "")))
        else:
            parts.append(
                {name: described(item) for name, item in told.items() if name not in _INVENTED_IN_BLOCKS}
            )
    if not parts:
        return ""
    return parts[0] if len(parts) == 1 and isinstance(parts[0], str) else parts


def _add_text(parts: list[Any], text: str) -> None:
    if parts and isinstance(parts[-1], str):
        parts[-1] += text
    else:
        parts.append(text)
