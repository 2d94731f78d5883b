"""What a model is told, without what is made up anew each time.

Left out: ids and states of items, fields that say nothing, generated ``prompt_cache_key``s, how failures are retried,
secrets, and the values of headers. Kept: roles, texts, other content, call ids, names and arguments of tools, reasoning,
model, settings, tools, handoffs and the output schema.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import groupby
from typing import Any, cast

from agents import FunctionTool, Handoff, ModelSettings, Tool
from agents.agent_output import AgentOutputSchemaBase

from gnl_middleware.adapter import Message, ReplyCall, Request, digest, request_of, without_secrets

from .values import described, plain

_INVENTED = frozenset({"id", "status"})
_HOW_IT_IS_SENT = frozenset({"retry", "timeout", "preserve_raw_usage", "include_usage"})
_NAMED_BY_TYPE = {
    "shell_call": "shell",
    "local_shell_call": "local_shell",
    "apply_patch_call": "apply_patch",
}
_ASKED_FOR = {"shell_call": "action", "local_shell_call": "action", "apply_patch_call": "operation"}
_WITHOUT_CALL_ID = frozenset({"apply_patch_call"})
"""Calls whose id the SDK hides from the code that carries them out."""


Describe = Callable[[Sequence[Any]], Iterable[tuple[Any, Message]]]
"""From items to the messages that they are: as the model is told them, and as identity sees them."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What the SDK asks a model.

    Attributes:
        previous_response_id: The reply that the server continues; only what is new is in ``input`` then.
        conversation_id: The conversation that the server keeps; as above.
    """

    instructions: str | None
    input: str | Sequence[Any]
    settings: ModelSettings
    tools: Sequence[Tool]
    output_schema: AgentOutputSchemaBase | None
    handoffs: Sequence[Handoff[Any, Any]]
    previous_response_id: str | None
    conversation_id: str | None
    prompt: Any

    def continued(self) -> dict[str, Any]:
        """What of it the SDK gives by name."""
        return {
            "previous_response_id": self.previous_response_id,
            "conversation_id": self.conversation_id,
            "prompt": self.prompt,
        }

    def conversation(
        self, replied: Mapping[str, Message], describe: Describe
    ) -> tuple[tuple[Any, ...], tuple[Message, ...]]:
        """The normalised messages, and as identity sees them.

        Args:
            replied: Replies of this run by their response id, where the server keeps the history.
            describe: Gives the messages that items are.
        """
        told: list[tuple[Any, Message]] = []
        if self.instructions is not None:
            told.append(_message("system", self.instructions))
        if self.conversation_id is not None:
            told.append(_message("conversation", self.conversation_id))
        if self.previous_response_id is not None:
            told.append(_continued(self.previous_response_id, replied.get(self.previous_response_id)))
        told.extend(describe(_given_items(self.input)))
        return tuple(message for message, _ in told), tuple(part for _, part in told)

    def setup(self, model: Any) -> dict[str, Any]:
        """The model, its settings, tools, handoffs and output schema, as plain data."""
        schema = self.output_schema
        output = (
            None
            if schema is None or schema.is_plain_text()
            else {"name": schema.name(), "schema": schema.json_schema()}
        )
        return {
            "model": model_name(model),
            "type": type(model).__qualname__,
            "settings": _settings(self.settings),
            "tools": [_tool(tool) for tool in self.tools],
            "handoffs": [_handoff(handoff) for handoff in self.handoffs],
            "output": output,
            "prompt": described(self.prompt),
        }

    def request(
        self, model: Any, replied: Mapping[str, Message], describe: Describe
    ) -> tuple[Request, tuple[Any, ...], Any]:
        """The request, its normalised messages and its setup."""
        messages, parts = self.conversation(replied, describe)
        setup = self.setup(model)
        return request_of(messages, parts, setup), messages, setup


def items_of(given: str | Sequence[Any]) -> list[dict[str, Any]]:
    """The items of an input, as plain data."""
    return [plain(item) for item in _given_items(given)]


def _given_items(given: str | Sequence[Any]) -> Sequence[Any]:
    return [{"role": "user", "content": given}] if isinstance(given, str) else given


def as_messages(items: Iterable[Any]) -> tuple[tuple[Any, ...], tuple[Message, ...]]:
    """Items of a history as normalised messages, and as identity sees them."""
    found = list(messages_of(items_of(list(items))))
    return tuple(told for told, _ in found), tuple(part for _, part in found)


def first_request(instructions: Any, given: str | Sequence[Any]) -> Request:
    """What a model is asked at first, by an agent with these instructions; its setup is left out."""
    begun = [] if instructions is None else [_message("system", instructions)]
    parts = [part for _, part in (*begun, *messages_of(items_of(given)))]
    return Request(messages=tuple(parts), setup="")


def as_reply(items: Iterable[Any]) -> Message:
    """A reply as it will stand in later requests."""
    return _assistant(items_of(list(items)))[1]


def calls_of(items: Iterable[Any]) -> tuple[ReplyCall, ...]:
    """The calls that a reply asks for, in order; those that the provider answers itself as well."""
    return tuple(
        ReplyCall(
            call_id="" if item.get("type") in _WITHOUT_CALL_ID else str(item["call_id"]),
            name=called_name(item),
            arguments_digest=digest(asked_for(item)),
        )
        for item in items_of(list(items))
        if item.get("call_id")
    )


def called_name(call: Any) -> str:
    """The name by which a call asks for its tool, with its namespace."""
    item = plain(call)
    name = str(item.get("name") or _NAMED_BY_TYPE.get(str(item.get("type")), item.get("type")))
    namespace = item.get("namespace")
    # A tool that is loaded when it is searched for is called by its own name as the namespace.
    return f"{namespace}.{name}" if namespace and namespace != name else name


def asked_for(call: Any) -> Any:
    """The arguments of a call, as plain data."""
    item = plain(call)
    if item.get("type") == "function_call":
        return parsed(str(item.get("arguments") or ""))
    return described(item.get(_ASKED_FOR.get(str(item.get("type")), "input")))


def parsed(text: str) -> Any:
    """Arguments as the model wrote them; as data where they are a JSON object, whose layout does not count."""
    try:
        found = json.loads(text)
    except ValueError:
        return text
    return cast("Any", found) if isinstance(found, dict) else text


def model_name(model: Any) -> str:
    """What people call the model."""
    name = getattr(model, "model", None)
    return name if isinstance(name, str) else type(model).__qualname__


def messages_of(items: Sequence[dict[str, Any]]) -> Iterable[tuple[Any, Message]]:
    """The conversation in messages: what one reply brought is one, though the SDK spreads it over several items."""
    for is_reply, group in groupby(items, key=is_of_reply):
        if is_reply:
            yield _assistant(list(group))
        else:
            yield from (_given(item) for item in group)


def is_of_reply(item: Mapping[str, Any]) -> bool:
    """Whether an item was brought by a reply."""
    role, kind = item.get("role"), str(item.get("type") or "message")
    if kind == "message":
        return role == "assistant"
    return not (kind.endswith(("_output", "_response")) or kind in ("item_reference", "compaction"))


def _given(item: dict[str, Any]) -> tuple[Any, Message]:
    told = _told(item)
    if item.get("call_id"):
        return told, Message("tool", digest(told), answers=str(item["call_id"]))
    return told, Message(str(item.get("role") or item.get("type")), digest(told))


def _assistant(items: Sequence[dict[str, Any]]) -> tuple[Any, Message]:
    told = {"role": "assistant", "items": [_told(item) for item in items]}
    calls = [item for item in items if item.get("call_id")]
    text = "".join(_text(item) for item in items)
    asked = [[called_name(call), asked_for(call), str(call["call_id"])] for call in calls]
    # Reasoning is not part of it: what becomes of it in a history depends on settings.
    ids = tuple(str(call["call_id"]) for call in calls)
    return told, Message("assistant", digest(told), call_ids=ids, reply=digest([text, asked]))


def _text(item: Mapping[str, Any]) -> str:
    content = item.get("content") if item.get("role") == "assistant" else None
    if isinstance(content, str):
        return content
    parts = cast("list[dict[str, Any]]", content) if isinstance(content, list) else []
    return "".join(str(part.get("text") or part.get("refusal") or "") for part in parts)


def _told(item: Mapping[str, Any]) -> dict[str, Any]:
    is_reference = item.get("type") == "item_reference"
    return {
        name: _said(value)
        for name, value in item.items()
        if (is_reference or name not in _INVENTED) and not _says_nothing(value)
    }


def _said(value: Any) -> Any:
    if isinstance(value, dict):
        found = cast("dict[str, Any]", value)
        return {name: _said(item) for name, item in found.items() if not _says_nothing(item)}
    if isinstance(value, list):
        return [_said(item) for item in cast("list[Any]", value)]
    return described(value)


def _says_nothing(value: Any) -> bool:
    return value is None or (isinstance(value, list | dict) and not value)


def _message(role: str, text: str) -> tuple[Any, Message]:
    told = {"role": role, "content": text}
    return told, Message(role, digest(told))


def _continued(response_id: str, reply: Message | None) -> tuple[Any, Message]:
    """The reply that the server continues; the same request whether or not this attempt has seen that reply."""
    told = {"role": "assistant", "response": response_id}
    known = reply or Message("assistant", "")
    return told, Message("assistant", digest(told), call_ids=known.call_ids, reply=known.reply)


def _settings(settings: ModelSettings) -> dict[str, Any]:
    found = {field.name: getattr(settings, field.name) for field in fields(settings)}
    if isinstance(found.get("extra_args"), dict):
        arguments = {name: value for name, value in found["extra_args"].items() if name != "prompt_cache_key"}
        found["extra_args"] = arguments
    told = {
        name: described(value)
        for name, value in found.items()
        if name not in _HOW_IT_IS_SENT and not _says_nothing(value)
    }
    return without_secrets(told)


def _tool(tool: Tool) -> dict[str, Any]:
    if isinstance(tool, FunctionTool):
        return {
            "name": tool.qualified_name,
            "description": tool.description,
            "parameters": described(tool.params_json_schema),
            "strict": tool.strict_json_schema,
            "output": described(tool.output_json_schema),
            "callers": described(tool.allowed_callers),
        }
    known = ("description", "format", "tool_config", "environment", "vector_store_ids", "filters")
    settings = {name: described(getattr(tool, name, None)) for name in known}
    return {"type": type(tool).__qualname__, "name": tool.name, **settings}


def _handoff(handoff: Handoff[Any, Any]) -> dict[str, Any]:
    return {
        "name": handoff.tool_name,
        "description": handoff.tool_description,
        "parameters": described(handoff.input_json_schema),
    }
