"""What the servers of the tests have in common: they answer on loopback and leave neither thread nor socket behind."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self


class Loopback:
    """A server that runs inside a ``with`` block.

    Args:
        handler: Answers each request.
        port: Where it listens; any free one by default.
    """

    def __init__(self, handler: type[BaseHTTPRequestHandler], *, port: int = 0) -> None:
        self._server = ThreadingHTTPServer(("127.0.0.1", port), handler)
        self._server.daemon_threads = False  # so that closing waits for answers under way
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), name="loopback")

    @property
    def port(self) -> int:
        """Where it listens."""
        return self._server.server_address[1]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
