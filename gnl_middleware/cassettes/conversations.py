"""Requests by what the model is told, and answers in the form that is asked for: for cassettes that a journal was exported to."""

import json
from typing import Any

from gnl_middleware.wire import format_of
from gnl_middleware.wire.formats import FORMATS
from gnl_middleware.wire.turns import turns_of
from gnl_middleware.wire.writing import answer_body, as_stream

from .interaction import Request, Response


def turns_asked(request: Request) -> list[Any] | None:
    """The conversation of a request as it is compared; None where it asks no model."""
    wire = format_of(request.method, request.uri)
    asked = None if wire is None else wire.asked(request.body)
    return None if asked is None else [turn.as_data() for turn in turns_of(asked.messages)]


def as_asked_for(request: Request, response: Response, name: str) -> Response:
    """A recorded answer in the format of the request, as a stream where it asks for one.

    Args:
        request: What is asked now.
        response: The recorded answer, in any format and whole.
        name: What the id of an answer is made of that has to be written anew.
    """
    wire = format_of(request.method, request.uri)
    if wire is None:
        return response
    asked: Any = json.loads(request.body)
    # Whatever format it was exported in, it says the same.
    answered = next(
        (found for each in FORMATS if (found := each.answered(response.body, stream=False))), None
    )
    body = json.loads(response.body)
    if answered is not None and wire.answered(response.body, stream=False) is None:
        body = answer_body(wire.name, str(asked.get("model") or ""), answered, name)
    if not asked.get("stream"):
        return Response(response.status, response.reason, response.headers, json.dumps(body).encode())
    headers = {**response.headers, "content-type": ("text/event-stream",)}
    with_usage = wire.name != "chat" or "include_usage" in (asked.get("stream_options") or {})
    return Response(
        response.status, response.reason, headers, as_stream(wire.name, body, with_usage=with_usage).encode()
    )
