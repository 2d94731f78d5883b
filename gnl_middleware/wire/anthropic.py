"""Anthropic's messages, whose tools answer inside a message of the user's."""

import json
from collections.abc import Iterable, Mapping, Sequence
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

PATH = "/messages"
_ASKING = frozenset({"tool_use", "server_tool_use", "mcp_tool_use"})


def conversation_of(body: Mapping[str, Any]) -> Conversation:
    """What a request asks; where its beginnings are cached changes with every request and says nothing."""
    told: list[Told] = []
    if body.get("system"):
        told.append(other("system", {"role": "system", "content": _uncached(body["system"])}))
    for message in objects(body["messages"]):
        told.extend(_told({**message, "content": _uncached(message.get("content"))}))
    return Conversation(
        str(body.get("model") or ""), tuple(told), setup_of(body, ("messages", "system", "metadata"))
    )


def said_of(answer: Mapping[str, Any]) -> Answered | None:
    """What an answer says; None where it is not whole."""
    if answer.get("type") == "error" or not isinstance(answer.get("content"), list):
        return None
    return Answered(said_by(objects(answer["content"])), _tokens(answer.get("usage")))


def said_of_events(events: Sequence[Json], *, done: bool) -> Answered | None:  # noqa: ARG001 - a format of its own says so
    """What a stream says; None where it was cut or brought an error."""
    message = whole(events)
    return None if message is None else said_of(message)


def whole(events: Sequence[Json]) -> Json | None:
    """The message that a stream brings; None where it was cut or brought an error."""
    kinds = {event.get("type") for event in events}
    if "error" in kinds or "message_stop" not in kinds:
        return None
    message, blocks = dict[str, Any](), dict[int, Json]()
    for event in events:
        kind = event.get("type")
        if kind == "message_start":
            message = dict(event["message"])
        elif kind == "content_block_start":
            blocks[event["index"]] = {**event["content_block"], "": ""}
        elif kind == "content_block_delta":
            _add(blocks[event["index"]], event["delta"])
        elif kind == "message_delta":
            message |= event["delta"]
            message["usage"] = {**(message.get("usage") or {}), **(event.get("usage") or {})}
    return {**message, "content": [_finished(block) for _, block in sorted(blocks.items())]}


def _add(block: Json, delta: Json) -> None:
    for name in ("text", "thinking", "signature"):
        if name in delta:
            block[name] = str(block.get(name) or "") + delta[name]
    block[""] += delta.get("partial_json") or ""


def _finished(block: Json) -> Json:
    written = block.pop("")
    return {**block, "input": json.loads(written)} if written else block


def _told(message: Json) -> Iterable[Told]:
    content, role = message["content"], str(message.get("role") or "")
    if role == "assistant":
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else objects(content)
        yield assistant(message, said_by(blocks))
        return
    left: list[Json] = []
    for block in objects(content):
        if str(block.get("type", "")).endswith("tool_result"):
            yield other("tool", {"role": "tool", **block}, answers=str(block.get("tool_use_id") or ""))
        else:
            left.append(block)
    if left or isinstance(content, str):
        yield other(role, {**message, "content": left or content})


def said_by(blocks: Sequence[Json]) -> Said:
    """What the blocks of one reply say."""
    asks = tuple(
        Asks(str(block.get("id") or ""), str(block.get("name") or ""), arguments_of(block.get("input")))
        for block in blocks
        if block.get("type") in _ASKING
    )
    return Said(text_of(list(blocks)), asks)


def _uncached(content: Any) -> Any:
    if not isinstance(content, list):
        return content
    blocks = objects(cast("Any", content))
    return [{name: value for name, value in block.items() if name != "cache_control"} for block in blocks]


def _tokens(usage: Any) -> int:
    used = cast("Json", usage) if isinstance(usage, dict) else Json()
    return sum(int(used.get(name) or 0) for name in ("input_tokens", "output_tokens"))
