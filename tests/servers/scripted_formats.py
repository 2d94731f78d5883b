"""How a scripted reply is written in OpenAI's responses and in Anthropic's messages, whole and streamed.

Ids and token counts are made from the request, so the same request always gets the same bytes.
"""

import hashlib
import json
from collections.abc import Iterator
from typing import Any

from tests.servers.scripted_openai import Reply

_CREATED = 1_767_225_600  # 2026-01-01T00:00:00Z: a time that never changes
_PIECE = 12


def digest_of(request: dict[str, Any]) -> str:
    """A name for a request, the same for the same conversation."""
    told = request.get("messages", request.get("input"))
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:24]


def response(request: dict[str, Any], reply: Reply) -> dict[str, Any]:
    """An answer of the responses API."""
    name = digest_of(request)
    items: list[dict[str, Any]] = []
    if reply.thought:
        summary = [{"type": "summary_text", "text": reply.thought}]
        secret = "gAAA" + hashlib.sha256(reply.thought.encode()).hexdigest()
        items.append(
            {"id": f"rs_{name}", "type": "reasoning", "summary": summary, "encrypted_content": secret}
        )
    if reply.text is not None:
        content = [{"type": "output_text", "text": reply.text, "annotations": []}]
        message = {"id": f"msg_{name}", "type": "message", "role": "assistant", "status": "completed"}
        items.append(message | {"content": content})
    for index, call in enumerate(reply.calls):
        asked = {"type": "function_call", "call_id": call.id, "name": call.name, "status": "completed"}
        items.append({"id": f"fc_{name}_{index}", "arguments": json.dumps(call.arguments), **asked})
    return {
        "id": f"resp_{name}",
        "object": "response",
        "created_at": _CREATED,
        "status": "completed",
        "model": request["model"],
        "output": items,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": _response_usage(request, items),
    }


def _response_usage(request: dict[str, Any], items: list[dict[str, Any]]) -> dict[str, Any]:
    asked, said = len(json.dumps(request["input"])) // 4, len(json.dumps(items)) // 4
    return {
        "input_tokens": asked,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": said,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": asked + said,
    }


def response_events(request: dict[str, Any], reply: Reply) -> Iterator[str]:
    """The same as a stream."""
    whole = response(request, reply)
    number = iter(range(1_000_000))

    def event(kind: str, **data: Any) -> str:
        return _event(kind, {"type": kind, "sequence_number": next(number), **data})

    yield event("response.created", response=whole | {"status": "in_progress", "output": [], "usage": None})
    for index, item in enumerate(whole["output"]):
        yield event("response.output_item.added", output_index=index, item=item | {"status": "in_progress"})
        where = {"item_id": item["id"], "output_index": index}
        if item["type"] == "message":
            for piece in _pieces(reply.text or ""):
                delta = {"content_index": 0, "delta": piece, "logprobs": []}
                yield event("response.output_text.delta", **where, **delta)
        elif item["type"] == "function_call":
            for piece in _pieces(item["arguments"]):
                yield event("response.function_call_arguments.delta", **where, delta=piece)
        yield event("response.output_item.done", output_index=index, item=item)
    yield event("response.completed", response=whole)


def message(request: dict[str, Any], reply: Reply) -> dict[str, Any]:
    """An answer of Anthropic's messages API."""
    content: list[dict[str, Any]] = [] if reply.text is None else [{"type": "text", "text": reply.text}]
    content += [
        {"type": "tool_use", "id": call.id, "name": call.name, "input": call.arguments}
        for call in reply.calls
    ]
    usage = {
        "input_tokens": len(json.dumps(request["messages"])) // 4,
        "output_tokens": len(json.dumps(content)) // 4,
    }
    return {
        "id": f"msg_{digest_of(request)}",
        "type": "message",
        "role": "assistant",
        "model": request["model"],
        "content": content,
        "stop_reason": "tool_use" if reply.calls else "end_turn",
        "stop_sequence": None,
        "usage": usage,
    }


def message_events(request: dict[str, Any], reply: Reply) -> Iterator[str]:
    """The same as a stream."""
    whole = message(request, reply)
    start = whole | {"content": [], "stop_reason": None, "usage": whole["usage"] | {"output_tokens": 1}}
    yield _event("message_start", {"type": "message_start", "message": start})
    for index, block in enumerate(whole["content"]):
        empty = block | ({"text": ""} if block["type"] == "text" else {"input": {}})
        yield _block("start", index, content_block=empty)
        text = block.get("text") or json.dumps(block.get("input"))
        for piece in _pieces(text):
            named = {"text": piece} if block["type"] == "text" else {"partial_json": piece}
            kind = "text_delta" if block["type"] == "text" else "input_json_delta"
            yield _block("delta", index, delta={"type": kind, **named})
        yield _block("stop", index)
    ending = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    usage = {"output_tokens": whole["usage"]["output_tokens"]}
    yield _event("message_delta", {"type": "message_delta", "delta": ending, "usage": usage})
    yield _event("message_stop", {"type": "message_stop"})


def _block(what: str, index: int, **data: Any) -> str:
    kind = f"content_block_{what}"
    return _event(kind, {"type": kind, "index": index, **data})


def _event(kind: str, data: dict[str, Any]) -> str:
    return f"event: {kind}\ndata: {json.dumps(data)}\n\n"


def _pieces(text: str) -> Iterator[str]:
    for start in range(0, len(text), _PIECE):
        yield text[start : start + _PIECE]
