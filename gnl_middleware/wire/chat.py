"""OpenAI's chat completions, which many other servers speak, too."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from .told import (
    Answered,
    Asks,
    Conversation,
    Json,
    Said,
    Told,
    arguments_of,
    assistant,
    objects,
    other,
    setup_of,
    text_of,
)

PATH = "/chat/completions"


def conversation_of(body: Mapping[str, Any]) -> Conversation:
    """What a request asks."""
    told = tuple(_told(message) for message in objects(body["messages"]))
    return Conversation(str(body.get("model") or ""), told, setup_of(body, ("messages", "n")))


def said_of(answer: Mapping[str, Any]) -> Answered | None:
    """What an answer says; None where it is not whole."""
    choices = objects(answer.get("choices"))
    if not choices or not isinstance(choices[0].get("message"), dict):
        return None
    return Answered(_said(choices[0]["message"]), _tokens(answer.get("usage")))


def said_of_events(events: Sequence[Json], *, done: bool) -> Answered | None:
    """What a stream says; None where it was cut or brought an error."""
    if any(event.get("error") for event in events):
        return None
    message, finished, tokens = merged(events)
    return Answered(_said(message), tokens) if done or finished else None


def merged(events: Sequence[Json]) -> tuple[Json, bool, int]:
    """The message that a stream brings, whether it has ended, and what it cost in tokens."""
    text, calls, finished, tokens = "", dict[int, Json](), False, 0
    for event in events:
        tokens = _tokens(event.get("usage")) or tokens
        for choice in objects(event.get("choices"))[:1]:
            delta: Json = choice.get("delta") or {}
            text += str(delta.get("content") or "")
            finished = finished or bool(choice.get("finish_reason"))
            for piece in objects(delta.get("tool_calls")):
                _add(
                    calls.setdefault(int(piece.get("index") or 0), {"id": "", "name": "", "arguments": ""}),
                    piece,
                )
    listed = [
        {
            "id": each["id"],
            "type": "function",
            "function": {"name": each["name"], "arguments": each["arguments"]},
        }
        for _, each in sorted(calls.items())
    ]
    return {"role": "assistant", "content": text, "tool_calls": listed}, finished, tokens


def _add(call: Json, piece: Json) -> None:
    function: Json = piece.get("function") or {}
    call["id"] = call["id"] or piece.get("id") or ""
    call["name"] += function.get("name") or ""
    call["arguments"] += function.get("arguments") or ""


def _told(message: Json) -> Told:
    role = str(message.get("role") or "")
    if role == "assistant":
        return assistant(message, _said(message))
    return other(role, message, answers=message.get("tool_call_id") if role == "tool" else None)


def _said(message: Mapping[str, Any]) -> Said:
    asks: list[Asks] = []
    for call in objects(message.get("tool_calls")):
        function = cast("Json", call.get("function") or call.get("custom") or {})
        given = function.get("arguments", function.get("input"))
        asks.append(Asks(str(call.get("id") or ""), str(function.get("name") or ""), arguments_of(given)))
    return Said(text_of(message.get("content")), tuple(asks))


def _tokens(usage: Any) -> int:
    used = cast("Json", usage) if isinstance(usage, dict) else Json()
    return int(used.get("total_tokens") or 0)
