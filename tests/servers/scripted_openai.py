"""A server that speaks OpenAI's chat completions, and what others speak, and answers from a script, on loopback only.

The script is a function of the request body, so it holds no state: a client that dies and comes back is answered as
if nothing had happened. Ids, times and token counts are made from the request, so the same request always gets the
same bytes. Streams are cut into many small chunks, as providers do.

Example:
    >>> with ScriptedOpenAI(lambda request: Reply("Hello.")) as server:
    ...     server.base_url.startswith("http://127.0.0.1:")
    True
"""

import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any

from tests.servers.loopback import Loopback

_CREATED = 1_767_225_600  # 2026-01-01T00:00:00Z: a time that never changes
_PIECE = 12


@dataclass(frozen=True)
class ToolCall:
    """A tool that the scripted model wants called."""

    id: str
    name: str
    arguments: dict[str, Any]


@dataclass(frozen=True)
class Reply:
    """What the scripted model says: text, tool calls, or both.

    Attributes:
        thought: What it thinks first, where the format has a place for it.
        breaks: As a stream, it ends in an error half way.
    """

    text: str | None = None
    calls: tuple[ToolCall, ...] = ()
    thought: str | None = None
    breaks: bool = False


@dataclass(frozen=True)
class Failure:
    """An answer that is an HTTP error."""

    status: int
    message: str
    headers: dict[str, str] = field(default_factory=dict)


Script = Callable[[dict[str, Any]], Reply | Failure]
Written = tuple[
    Callable[[dict[str, Any], Reply], dict[str, Any]], Callable[[dict[str, Any], Reply], Iterator[str]]
]
"""How a reply is written in a format: whole, and as a stream."""


class ScriptedOpenAI(Loopback):
    """The running server; a context manager that leaves neither thread nor socket behind.

    Attributes:
        requests: The body of every request, as bytes, in the order of arrival.
    """

    def __init__(self, script: Script, *, port: int = 0, formats: dict[str, Written] | None = None) -> None:
        self.requests: list[bytes] = []
        self._formats: dict[str, Written] = {
            "/v1/chat/completions": (_completion, _events),
            **(formats or {}),
        }
        self._script = script
        super().__init__(self._handler(), port=port)

    @property
    def base_url(self) -> str:
        """What OPENAI_BASE_URL should say."""
        return f"http://127.0.0.1:{self.port}/v1"

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        owner = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                owner.requests.append(body)
                if self.path not in owner._formats:
                    self._send(404, "application/json", _error(f"there is no {self.path} here"), {})
                    return
                request = json.loads(body)
                whole, events = owner._formats[self.path]
                answer = owner._script(request)
                if isinstance(answer, Failure):
                    self._send(answer.status, "application/json", _error(answer.message), answer.headers)
                elif request.get("stream"):
                    self._send(
                        200, "text/event-stream", "".join(_broken(events(request, answer), answer)), {}
                    )
                else:
                    self._send(200, "application/json", json.dumps(whole(request, answer)), {})

            def _send(self, status: int, kind: str, text: str, headers: dict[str, str]) -> None:
                data = text.encode()
                self.send_response(status)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(data)))
                for name, value in headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *args: Any) -> None:
                """Say nothing: the tests' output is theirs."""

        return Handler


def _error(message: str) -> str:
    return json.dumps({"error": {"message": message, "type": "scripted", "param": None, "code": None}})


def _broken(events: Iterator[str], reply: Reply) -> Iterator[str]:
    """The events; or the first of them, then an error, where the reply breaks."""
    if not reply.breaks:
        yield from events
        return
    yield from list(events)[:3]
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "scripted"}}
    yield f"event: error\ndata: {json.dumps(error)}\n\n"


def _envelope(request: dict[str, Any], kind: str) -> dict[str, Any]:
    digest = hashlib.sha256(json.dumps(request["messages"], sort_keys=True).encode()).hexdigest()
    return {"id": f"chatcmpl-{digest[:24]}", "object": kind, "created": _CREATED, "model": request["model"]}


def _usage(request: dict[str, Any], reply: Reply) -> dict[str, int]:
    """Plausible token counts: four characters make a token."""
    prompt = len(json.dumps(request["messages"])) // 4
    completion = (len(reply.text or "") + sum(len(json.dumps(call.arguments)) for call in reply.calls)) // 4
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
    }


def _finish_reason(reply: Reply) -> str:
    return "tool_calls" if reply.calls else "stop"


def _completion(request: dict[str, Any], reply: Reply) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": reply.text}
    if reply.calls:
        message["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": json.dumps(call.arguments)},
            }
            for call in reply.calls
        ]
    choice = {"index": 0, "message": message, "finish_reason": _finish_reason(reply)}
    return _envelope(request, "chat.completion") | {"choices": [choice], "usage": _usage(request, reply)}


def _events(request: dict[str, Any], reply: Reply) -> Iterator[str]:
    envelope = _envelope(request, "chat.completion.chunk")

    def event(delta: dict[str, Any], finish_reason: str | None = None) -> str:
        choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
        return f"data: {json.dumps(envelope | {'choices': [choice]})}\n\n"

    yield event({"role": "assistant", "content": None if reply.text is None else ""})
    for piece in _pieces(reply.text or ""):
        yield event({"content": piece})
    for index, call in enumerate(reply.calls):
        opening = {"index": index, "id": call.id, "type": "function"}
        yield event({"tool_calls": [opening | {"function": {"name": call.name, "arguments": ""}}]})
        for piece in _pieces(json.dumps(call.arguments)):
            yield event({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    yield event({}, _finish_reason(reply))
    if (request.get("stream_options") or {}).get("include_usage"):
        yield f"data: {json.dumps(envelope | {'choices': [], 'usage': _usage(request, reply)})}\n\n"
    yield "data: [DONE]\n\n"


def _pieces(text: str) -> Iterator[str]:
    for start in range(0, len(text), _PIECE):
        yield text[start : start + _PIECE]
