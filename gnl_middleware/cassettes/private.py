"""vcrpy as it is used here, its private details included: it carries no types, so here is where they are waived.

vcrpy replaces the transports of httpx, httpx2, requests, urllib3, http.client and aiohttp while its cassette is active,
and asks that cassette for answers. What it asks, ours answers from a ``Tape``; files are read and written by us.
"""

# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false, reportUntypedBaseClass=false

import json
from contextlib import AbstractContextManager
from typing import Any, cast
from urllib.parse import urlencode

from vcr.cassette import Cassette
from vcr.record_mode import RecordMode

from .interaction import Request, Response
from .tape import Tape


def patched_transports(tape: Tape) -> AbstractContextManager[Any]:
    """While it is entered, the requests of this process are answered by the tape."""
    mode = RecordMode.ALL if tape.recording else RecordMode.NONE
    return _Played.use(path=tape.path, record_mode=mode, tape=tape)


class _Played(Cassette):
    """A cassette whose requests go to a tape; it neither loads nor saves anything by itself."""

    def __init__(self, *, tape: Tape, **options: Any) -> None:
        super().__init__(**options)
        self._tape = tape

    def can_play_response_for(self, request: Any) -> bool:
        return self._tape.is_answered(_request(request))

    def play_response(self, request: Any) -> dict[str, Any]:
        # Made anew for each: the replacements take headers out of what they are given.
        return _as_played(self._tape.answer(_request(request)))

    def append(self, request: Any, response: Any) -> None:
        self._tape.record(_request(request), _response(response))

    def find_requests_with_most_matches(self, request: Any) -> list[Any]:  # noqa: ARG002 - vcrpy's signature
        # Asked where aiohttp follows a redirect, and answered by the request that it makes of it.
        return []

    def _load(self) -> None:
        self.rewound = True

    def _save(self, force: bool = False) -> None:
        pass


def _request(request: Any) -> Request:
    headers = {str(name).lower(): (_text(value),) for name, value in request.headers.items()}
    body, content_type = _body(request.body)
    if content_type and "content-type" not in headers:
        headers["content-type"] = (content_type,)
    return Request(str(request.method), str(request.uri), headers, body)


def _response(response: dict[str, Any]) -> Response:
    status, headers = response["status"], response["headers"]
    return Response(
        status=int(status["code"]),
        reason=str(status["message"] or ""),
        headers={
            str(name).lower(): tuple(_text(value) for value in values) for name, values in headers.items()
        },
        body=_body(response["body"].get("string"))[0],
    )


def _as_played(response: Response) -> dict[str, Any]:
    return {
        "status": {"code": response.status, "message": response.reason},
        "headers": {name: list(values) for name, values in response.headers.items()},
        "body": {"string": response.body},
    }


def _body(body: Any) -> tuple[bytes, str]:
    """The bytes that are sent, and the content type that a client gives them later than vcrpy looks."""
    if body is None or isinstance(body, str):
        return (body or "").encode(), ""
    if isinstance(body, dict | list):
        # aiohttp encodes json= and data= after vcrpy has looked at them, and both look alike here.
        try:
            return json.dumps(body).encode(), "application/json"
        except TypeError:
            return urlencode(cast("Any", body)).encode(), "application/x-www-form-urlencoded"
    if isinstance(body, bytes | bytearray):
        return bytes(body), ""
    parts = [body.read()] if hasattr(body, "read") else body
    return b"".join(_body(part)[0] for part in parts), ""


def _text(value: Any) -> str:
    if isinstance(value, list | tuple):
        return _text(value[0]) if value else ""
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)
