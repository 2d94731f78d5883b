"""A server on loopback that gives prepared answers one after another, and remembers what it was asked.

Example:
    >>> with AnsweringServer([Answer(b"hello")]) as server:
    ...     server.url.startswith("http://127.0.0.1:")
    True
"""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any

from tests.servers.loopback import Loopback


@dataclass(frozen=True)
class Answer:
    """What the server says once; a status of 204 has no body."""

    body: bytes = b""
    content_type: str = "application/json"
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Asked:
    """What the server was asked."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


class AnsweringServer(Loopback):
    """The running server; a context manager that leaves neither thread nor socket behind.

    Attributes:
        asked: Every request, in the order of arrival. The answers are given in the same order, the last one for ever.
    """

    def __init__(self, answers: Sequence[Answer] = (Answer(b"{}"),)) -> None:
        self.asked: list[Asked] = []
        self.answers = list(answers)
        self._lock = threading.Lock()
        super().__init__(self._handler())

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def _next(self, asked: Asked) -> Answer:
        with self._lock:
            self.asked.append(asked)
            return self.answers[min(len(self.asked), len(self.answers)) - 1]

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        owner = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                answer = owner._next(Asked(self.command, self.path, dict(self.headers), body))
                self.send_response(answer.status)
                self.send_header("content-type", answer.content_type)
                self.send_header("content-length", str(len(answer.body)))
                for name, value in answer.headers.items():
                    self.send_header(name, value)
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(answer.body)

            do_GET = do_HEAD = do_DELETE = do_POST  # noqa: N815 - the names of the library

            def log_message(self, *args: Any) -> None:
                """Say nothing: the tests' output is theirs."""

        return Handler
