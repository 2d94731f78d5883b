"""A model's reply as it is recorded: one response, or the events in which it came; either can be read as the other.

Items and events are kept field by field, also those of types that this version of the SDK does not know, and put together
again by the lenient constructors with which the client reads a provider's answer.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import openai
from agents import ModelResponse, Usage
from agents.items import TResponseStreamEvent
from openai.types.responses import Response, ResponseCompletedEvent, ResponseUsage
from pydantic import BaseModel, TypeAdapter

from gnl_middleware.adapter import Message, Reply
from gnl_middleware.adapter import encode as encode_plain

from .private import RAW_USAGE, REQUEST_ID, event_types, noted_on_response, put_notes
from .requests import as_reply, calls_of

_USAGE = TypeAdapter(Usage)
_EVENTS = event_types()
_NEVER_BILLED = "gnl-replay"


@dataclass(frozen=True, slots=True)
class Chunk:
    """An event of a stream: as it is recorded, and as the agent gets it."""

    kept: dict[str, Any]
    event: Any


def encode(value: ModelResponse | Sequence[Mapping[str, Any]]) -> bytes:
    """A response, or the events that were kept, as bytes.

    Raises:
        UnserializableValueError: The provider's answer holds something that cannot be journalled.
    """
    if isinstance(value, ModelResponse):
        return encode_plain({"response": _kept_response(value)})
    return encode_plain({"events": list(value)})


def chunk(event: Any) -> Chunk:
    """An event of a live stream."""
    kept = _kept(event)
    response = getattr(event, "response", None)
    if response is not None and (notes := noted_on_response(response)):
        kept["notes"] = notes
    return Chunk(kept, _event(kept))


def as_response(recorded: Mapping[str, Any]) -> ModelResponse:
    """The recorded reply as one response."""
    if "events" in recorded:
        return _response_of(_last(recorded["events"]))
    return _response(recorded["response"])


def as_chunks(recorded: Mapping[str, Any]) -> Iterator[Chunk]:
    """The recorded reply as events; a whole response comes as the one event that the SDK needs."""
    if "events" in recorded:
        return (Chunk(kept, _event(kept)) for kept in recorded["events"])
    return iter([Chunk({}, _completed(_response(recorded["response"])))])


def describe(value: ModelResponse | Sequence[Mapping[str, Any]]) -> Reply:
    """How the reply will be recognised later, which tools it calls, and what it cost."""
    response = value if isinstance(value, ModelResponse) else _response_of(_last(value))
    return Reply(
        digest=standing(response).reply or "",
        calls=calls_of(response.output),
        tokens=response.usage.total_tokens,
    )


def redescribe(recorded: Mapping[str, Any]) -> Reply:
    """The same of what was recorded."""
    return describe(recorded["events"] if "events" in recorded else as_response(recorded))


def whole(events: list[dict[str, Any]]) -> ModelResponse:
    """The events that were kept of a stream as one response."""
    return _response_of(_last(events))


def standing(response: ModelResponse) -> Message:
    """The reply as it will stand in later requests."""
    return as_reply(response.output)


def is_end(event: Any) -> bool:
    """Whether an event brings the whole reply."""
    return isinstance(event, ResponseCompletedEvent)


def response_of(event: TResponseStreamEvent) -> ModelResponse:
    """The reply that the last event of a stream brings."""
    return _response_of(cast("ResponseCompletedEvent", event))


def _last(events: Sequence[Mapping[str, Any]]) -> ResponseCompletedEvent:
    # Some providers send the items on the way and leave them out of the last event: the SDK puts them back.
    completed = cast("ResponseCompletedEvent", _event(events[-1]))
    if not completed.response.output:
        done = [_event(kept) for kept in events if _kind(kept) == "response.output_item.done"]
        completed.response.output = [event.item for event in done]
    return completed


def _kind(kept: Mapping[str, Any]) -> Any:
    return kept["fields"].get("type")


def _kept(value: Any) -> dict[str, Any]:
    """What is recorded of an item or event."""
    if isinstance(value, BaseModel):
        return {"model": True, "fields": value.model_dump(mode="json", exclude_unset=True, warnings=False)}
    return {"model": False, "fields": value}


def _event(kept: Mapping[str, Any]) -> Any:
    if not kept["model"]:
        return kept["fields"]
    event = _EVENTS.get(_kind(kept), openai.BaseModel).construct(**kept["fields"])
    if "notes" in kept:
        put_notes(event.response, kept["notes"])
    return event


def _kept_response(response: ModelResponse) -> dict[str, Any]:
    return {
        "output": [_kept(item) for item in response.output],
        "usage": _USAGE.dump_python(response.usage, mode="json", warnings=False),
        "response_id": response.response_id,
        "request_id": response.request_id,
        "raw_usage": response.raw_usage,
    }


def _response(kept: Mapping[str, Any]) -> ModelResponse:
    fields = [item["fields"] for item in kept["output"] if item["model"]]
    built = iter(Response.construct(output=fields).output)
    response = ModelResponse(
        output=[],
        usage=_USAGE.validate_python(kept["usage"]),
        response_id=kept["response_id"],
        request_id=kept["request_id"],
        raw_usage=kept["raw_usage"],
    )
    # Set, not given to the constructor, which refuses items of types that it does not know.
    response.output = [next(built) if item["model"] else item["fields"] for item in kept["output"]]
    return response


def _response_of(event: ResponseCompletedEvent) -> ModelResponse:
    response, notes = event.response, noted_on_response(event.response)
    used = response.usage
    usage = (
        Usage(requests=1)
        if used is None
        else Usage(
            requests=1,
            input_tokens=used.input_tokens,
            output_tokens=used.output_tokens,
            total_tokens=used.total_tokens,
            input_tokens_details=used.input_tokens_details,
            output_tokens_details=used.output_tokens_details,
        )
    )
    made = ModelResponse(
        output=[],
        usage=usage,
        response_id=response.id,
        request_id=notes.get(REQUEST_ID),
        raw_usage=notes.get(RAW_USAGE),
    )
    made.output = list(response.output)
    return made


def _completed(response: ModelResponse) -> ResponseCompletedEvent:
    usage = response.usage
    made = Response.construct(
        id=response.response_id or _NEVER_BILLED,
        created_at=0.0,
        model=_NEVER_BILLED,
        object="response",
        output=[],
        tool_choice="auto",
        tools=[],
        parallel_tool_calls=True,
        usage=ResponseUsage.construct(
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            total_tokens=usage.total_tokens,
            input_tokens_details=usage.input_tokens_details,
            output_tokens_details=usage.output_tokens_details,
        ),
    )
    made.output = response.output
    put_notes(made, {REQUEST_ID: response.request_id, RAW_USAGE: response.raw_usage})
    return ResponseCompletedEvent.construct(type="response.completed", sequence_number=0, response=made)
