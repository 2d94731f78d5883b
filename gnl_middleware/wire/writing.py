"""Requests and answers written in a provider's format, from what was said; whole, or as a stream of few events."""

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from .told import Answered, Asks, Json
from .turns import Turn

_CREATED = 0


def request_body(wire: str, model: str, turns: Sequence[Turn]) -> Json:
    """A request of the format ``chat``, ``responses`` or ``anthropic``."""
    return {"model": model, **_REQUESTS[wire](turns)}


def answer_body(wire: str, model: str, answered: Answered, name: str) -> Json:
    """An answer in this format.

    Args:
        wire: ``chat``, ``responses`` or ``anthropic``.
        model: The model's name.
        answered: What it says.
        name: What its id is made of.
    """
    return _ANSWERS[wire](model, answered, name)


def as_stream(wire: str, answer: Json, *, with_usage: bool = True) -> str:
    """An answer as the server-sent events of its format; chat completions tell what it cost only where they are asked to."""
    told = answer if with_usage else {**answer, "usage": None}
    return "".join(_EVENTS[wire](told))


def _chat_request(turns: Sequence[Turn]) -> Json:
    messages: list[Json] = []
    for turn in turns:
        message: Json = {"role": turn.role, "content": turn.text}
        if turn.asks:
            message["tool_calls"] = _chat_calls(turn.asks)
        messages.append(message if turn.answers is None else message | {"tool_call_id": turn.answers})
    return {"messages": messages}


def _chat_calls(asks: Iterable[Asks]) -> list[Json]:
    return [
        {
            "id": each.call_id,
            "type": "function",
            "function": {"name": each.name, "arguments": _text(each.arguments)},
        }
        for each in asks
    ]


def _chat_answer(model: str, answered: Answered, name: str) -> Json:
    said = answered.said
    message: Json = {"role": "assistant", "content": said.text or None}
    if said.asks:
        message["tool_calls"] = _chat_calls(said.asks)
    return {
        "id": f"chatcmpl-{name}",
        "object": "chat.completion",
        "created": _CREATED,
        "model": model,
        "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls" if said.asks else "stop"}],
        "usage": {"prompt_tokens": answered.tokens, "completion_tokens": 0, "total_tokens": answered.tokens},
    }


def _chat_events(answer: Json) -> Iterable[str]:
    choice = answer["choices"][0]
    calls = [{"index": index, **call} for index, call in enumerate(choice["message"].get("tool_calls") or [])]
    delta = {"role": "assistant", "content": choice["message"].get("content")} | (
        {"tool_calls": calls} if calls else {}
    )
    same = {name: value for name, value in answer.items() if name not in ("choices", "usage")}
    same["object"] = "chat.completion.chunk"
    yield _data(same | {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
    yield _data(same | {"choices": [{"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}]})
    if answer.get("usage"):
        yield _data(same | {"choices": [], "usage": answer["usage"]})
    yield "data: [DONE]\n\n"


def _responses_request(turns: Sequence[Turn]) -> Json:
    items: list[Json] = []
    for turn in turns:
        if turn.answers is not None:
            items.append({"type": "function_call_output", "call_id": turn.answers, "output": turn.text})
        else:
            items += [{"role": turn.role, "content": turn.text}] if turn.text or not turn.asks else []
            items += _response_calls(turn.asks)
    return {"input": items}


def _response_calls(asks: Iterable[Asks]) -> list[Json]:
    return [
        {
            "type": "function_call",
            "call_id": each.call_id,
            "name": each.name,
            "arguments": _text(each.arguments),
        }
        for each in asks
    ]


def _responses_answer(model: str, answered: Answered, name: str) -> Json:
    said, items = answered.said, list[Json]()
    if said.text:
        content: list[Json] = [{"type": "output_text", "text": said.text, "annotations": []}]
        items.append({"type": "message", "role": "assistant", "status": "completed", "content": content})
    items += [{**call, "status": "completed"} for call in _response_calls(said.asks)]
    usage = {
        "input_tokens": answered.tokens,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": 0,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": answered.tokens,
    }
    return {
        "id": f"resp_{name}",
        "object": "response",
        "created_at": _CREATED,
        "status": "completed",
        "model": model,
        "output": [{"id": f"item_{name}_{index}", **item} for index, item in enumerate(items)],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": usage,
    }


def _responses_events(answer: Json) -> Iterable[str]:
    started: Json = answer | {"status": "in_progress", "output": [], "usage": None}
    events: list[tuple[str, Json]] = [("response.created", {"response": started})]
    for index, item in enumerate(answer["output"]):
        where = {"output_index": index, "item_id": item["id"]}
        added: Json = {**item, "content": []} if item["type"] == "message" else item
        events.append(("response.output_item.added", {"output_index": index, "item": added}))
        for place, part in enumerate(item.get("content") or []):
            delta: Json = {"content_index": place, "delta": part["text"], "logprobs": []}
            events.append(("response.output_text.delta", where | delta))
        events.append(("response.output_item.done", {"output_index": index, "item": item}))
    events.append(("response.completed", {"response": answer}))
    for number, (kind, data) in enumerate(events):
        yield _event(kind, {"type": kind, "sequence_number": number, **data})


def _anthropic_request(turns: Sequence[Turn]) -> Json:
    messages: list[Json] = []
    for turn in turns:
        if turn.role == "system":
            continue
        role, blocks = _anthropic_blocks(turn)
        if messages and role == "user" == messages[-1]["role"]:
            messages[-1]["content"] += blocks
        else:
            messages.append({"role": role, "content": blocks})
    system = "\n".join(turn.text for turn in turns if turn.role == "system")
    return {"max_tokens": 4096, "messages": messages} | ({"system": system} if system else {})


def _anthropic_blocks(turn: Turn) -> tuple[str, list[Json]]:
    if turn.answers is not None:
        return "user", [{"type": "tool_result", "tool_use_id": turn.answers, "content": turn.text}]
    text: list[Json] = [{"type": "text", "text": turn.text}] if turn.text else []
    uses = [
        {"type": "tool_use", "id": each.call_id, "name": each.name, "input": each.arguments}
        for each in turn.asks
    ]
    return turn.role, text + uses


def _anthropic_answer(model: str, answered: Answered, name: str) -> Json:
    _, blocks = _anthropic_blocks(Turn("assistant", answered.said.text, answered.said.asks))
    return {
        "id": f"msg_{name}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": blocks,
        "stop_reason": "tool_use" if answered.said.asks else "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": answered.tokens, "output_tokens": 0},
    }


def _anthropic_events(answer: Json) -> Iterable[str]:
    start: Json = answer | {"content": [], "stop_reason": None}
    yield _event("message_start", {"type": "message_start", "message": start})
    for index, block in enumerate(answer["content"]):
        is_text = block["type"] == "text"
        empty = block | ({"text": ""} if is_text else {"input": {}})
        told = {"type": "text_delta", "text": block["text"]} if is_text else {"type": "input_json_delta"}
        delta = told if is_text else told | {"partial_json": json.dumps(block["input"])}
        for what, data in (
            ("start", {"content_block": empty}),
            ("delta", {"delta": delta}),
            ("stop", Json()),
        ):
            kind = f"content_block_{what}"
            yield _event(kind, {"type": kind, "index": index, **data})
    ending = {"stop_reason": answer["stop_reason"], "stop_sequence": None}
    usage = {"output_tokens": answer["usage"]["output_tokens"]}
    yield _event("message_delta", {"type": "message_delta", "delta": ending, "usage": usage})
    yield _event("message_stop", {"type": "message_stop"})


def _text(arguments: Any) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments)


def _data(data: Json) -> str:
    return f"data: {json.dumps(data)}\n\n"


def _event(kind: str, data: Json) -> str:
    return f"event: {kind}\n{_data(data)}"


_REQUESTS: dict[str, Callable[[Sequence[Turn]], Json]] = {
    "chat": _chat_request,
    "responses": _responses_request,
    "anthropic": _anthropic_request,
}
_ANSWERS: dict[str, Callable[[str, Answered, str], Json]] = {
    "chat": _chat_answer,
    "responses": _responses_answer,
    "anthropic": _anthropic_answer,
}
_EVENTS: dict[str, Callable[[Json], Iterable[str]]] = {
    "chat": _chat_events,
    "responses": _responses_events,
    "anthropic": _anthropic_events,
}
