"""The transport: raw responses are recorded as they come, and given back byte for byte, with their chunk boundaries."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterator
from types import ModuleType
from typing import Any, cast

import httpx2

from gnl_middleware.adapter import OnNoRun, perform_stream, perform_stream_async
from gnl_middleware.wire.recorded import Chunk, Head, head_of, kept

from .calls import NotRecordedError, Step, step_of
from .streams import async_stream_class, library_of, stream_class

_ERROR = 400


class JournalTransport(httpx2.BaseTransport, httpx2.AsyncBaseTransport):
    """A transport whose requests to models are steps of the open run: answered from the journal, or sent and recorded.

    It understands OpenAI's chat completions and responses and Anthropic's messages, streamed or not, with ``Client`` and
    ``AsyncClient``; any other request goes through untouched. Recorded is what came over the wire: status, headers (cookies
    left out), bytes and chunk boundaries. An error, a stream that broke off, and one that its reader left half way are no
    outcome: the model is asked again, also by the retries of the SDK. A framework's wrapper above it journals alone.

    Args:
        transport: The transport that sends, of httpx2 or httpx; by default the one that such a client makes for itself.
        on_no_run: Outside any run: ``raise`` NoActiveRunError, or ``passthrough``.

    Example:
        >>> OpenAI(http_client=httpx2.Client(transport=JournalTransport()))     # doctest: +SKIP
        >>> AsyncAnthropic(http_client=httpx2.AsyncClient(transport=JournalTransport()))     # doctest: +SKIP
    """

    def __init__(self, transport: Any = None, *, on_no_run: OnNoRun = "raise") -> None:
        self._transport = transport
        self._on_no_run: OnNoRun = on_no_run

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """Answer from the journal, or send and record.

        Raises:
            GnlError: The call may not run, or cannot be recorded.
        """
        send = self._sender(httpx2.HTTPTransport).handle_request
        step = step_of(request.method, str(request.url), request.read(), self._on_no_run)
        if step is None:
            return send(request)
        library, live = library_of(request), _live(step, lambda: send(request))
        chunks = perform_stream(step.session, step.call, lambda: live, kept)
        try:
            head = next(chunks)
        except NotRecordedError as refused:
            return _refused(library, refused)
        return _response(library, head, stream_class(library)(step, head, chunks, live))

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """As ``handle_request``.

        Raises:
            GnlError: The call may not run, or cannot be recorded.
        """
        send = self._sender(httpx2.AsyncHTTPTransport).handle_async_request
        step = step_of(request.method, str(request.url), await request.aread(), self._on_no_run)
        if step is None:
            return await send(request)
        library, live = library_of(request), _live_async(step, lambda: send(request))
        chunks = perform_stream_async(step.session, step.call, lambda: live, kept)
        try:
            head = await anext(chunks)
        except NotRecordedError as refused:
            return _refused(library, refused)
        return _response(library, head, async_stream_class(library)(step, head, chunks, live))

    def close(self) -> None:
        """Close the transport that sends."""
        if self._transport is not None:
            self._transport.close()

    async def aclose(self) -> None:
        """Close the transport that sends."""
        if self._transport is not None:
            await self._transport.aclose()

    def _sender(self, default: Callable[[], Any]) -> Any:
        if self._transport is None:
            self._transport = default()
        return self._transport


def _live(step: Step, send: Callable[[], Any]) -> Generator[Chunk]:
    response = send()
    head = head_of(response)
    if head.status >= _ERROR:
        raise NotRecordedError(response)
    came: list[Chunk] = [head]
    try:
        yield head
        for chunk in cast("Iterator[bytes]", response.stream):
            came.append(chunk)
            yield chunk
    finally:
        response.close()
    if not step.is_whole(came):
        raise NotRecordedError(chunks=came[-1:])


async def _live_async(step: Step, send: Callable[[], Any]) -> AsyncGenerator[Chunk]:
    response = await send()
    head = head_of(response)
    if head.status >= _ERROR:
        raise NotRecordedError(response)
    came: list[Chunk] = [head]
    try:
        yield head
        async for chunk in cast("AsyncIterator[bytes]", response.stream):
            came.append(chunk)
            yield chunk
    finally:
        await response.aclose()
    if not step.is_whole(came):
        raise NotRecordedError(chunks=came[-1:])


def _refused(library: ModuleType, refused: NotRecordedError) -> Any:
    """The live response; or, where an answer had no body at all, its head."""
    if refused.response is not None:
        return refused.response
    return _response(library, refused.chunks[0], library.ByteStream(b""))


def _response(library: ModuleType, head: Chunk, stream: Any) -> Any:
    if not isinstance(head, Head):
        raise TypeError("an answer begins with its head")
    extensions = {"reason_phrase": head.reason.encode("ascii", "replace")} if head.reason else {}
    return library.Response(head.status, headers=list(head.headers), stream=stream, extensions=extensions)
