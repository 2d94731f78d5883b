"""OpenAI's responses, whose conversation is a list of items: what one reply brought is several of them."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

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
    without_nothing,
)

PATH = "/responses"
_INVENTED = ("id", "status")
_WHOLE = frozenset({"response.completed", "response.incomplete"})


def conversation_of(body: Mapping[str, Any]) -> Conversation:
    """What a request asks."""
    given = body.get("input")
    items = [{"role": "user", "content": given}] if isinstance(given, str) else objects(given)
    told = [*_instructions(body), *_continued(body), *_told(items)]
    left_out = ("input", "instructions", "previous_response_id")
    return Conversation(str(body.get("model") or ""), tuple(told), setup_of(body, left_out))


def said_of(answer: Mapping[str, Any]) -> Answered | None:
    """What an answer says; None where it is not whole."""
    if answer.get("error") or not isinstance(answer.get("output"), list):
        return None
    usage: Any = answer.get("usage") or {}
    return Answered(said_by(objects(answer["output"])), int(usage.get("total_tokens") or 0))


def said_of_events(events: Sequence[Json], *, done: bool) -> Answered | None:  # noqa: ARG001 - a format of its own says so
    """What a stream says; None where it was cut or brought an error."""
    response = whole(events)
    return None if response is None else said_of(response)


def whole(events: Sequence[Json]) -> Json | None:
    """The response that a stream brings at its end; None where it was cut."""
    found = next((event["response"] for event in reversed(events) if event.get("type") in _WHOLE), None)
    if found is None:
        return None
    # Some servers send the items on the way and leave them out at the end.
    items = [event["item"] for event in events if event.get("type") == "response.output_item.done"]
    return found if found.get("output") else {**found, "output": items}


def _instructions(body: Mapping[str, Any]) -> Iterable[Told]:
    if body.get("instructions") is not None:
        yield other("system", {"role": "system", "content": body["instructions"]})


def _continued(body: Mapping[str, Any]) -> Iterable[Told]:
    if body.get("previous_response_id") is not None:
        yield other("assistant", {"role": "assistant", "response": body["previous_response_id"]})


def _told(items: Sequence[Json]) -> Iterable[Told]:
    for is_reply, group in groupby(items, key=_is_of_reply):
        if is_reply:
            brought = list(group)
            message = {"role": "assistant", "items": [without_nothing(item, _INVENTED) for item in brought]}
            yield assistant(message, said_by(brought))
        else:
            yield from (_given(item) for item in group)


def _is_of_reply(item: Json) -> bool:
    kind = str(item.get("type") or "message")
    if kind == "message":
        return item.get("role") == "assistant"
    return not (kind.endswith(("_output", "_response")) or kind in {"item_reference", "compaction"})


def _given(item: Json) -> Told:
    answers = None if item.get("call_id") is None else str(item["call_id"])
    role = "tool" if answers is not None else str(item.get("role") or item.get("type"))
    return other(role, without_nothing(item, _INVENTED), answers=answers)


def said_by(items: Sequence[Json]) -> Said:
    """What the items of one reply say."""
    text = "".join(text_of(item.get("content")) for item in items if item.get("role") == "assistant")
    asks = tuple(
        Asks(str(item["call_id"]), str(item.get("name") or item.get("type")), _asked_for(item))
        for item in items
        if item.get("call_id")
    )
    return Said(text, asks)


def _asked_for(item: Json) -> Any:
    return arguments_of(item.get("arguments", item.get("input", item.get("action"))))
