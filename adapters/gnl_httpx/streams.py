"""The bodies of journalled responses, as httpx2 and as httpx want them: both ask for streams of their own classes."""

import contextlib
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterator
from functools import cache
from types import ModuleType
from typing import Any

from gnl_middleware.wire.recorded import Chunk, Head

from .calls import NotRecordedError, Step


def library_of(request: Any) -> ModuleType:
    """The library that a request is of: httpx2, or httpx."""
    return sys.modules[type(request).__module__.partition(".")[0]]


@cache
def stream_class(library: ModuleType) -> Any:
    """The class of a library's streams, with ours in front."""
    return type("JournaledStream", (_Stream, library.SyncByteStream), {})


@cache
def async_stream_class(library: ModuleType) -> Any:
    """As ``stream_class``."""
    return type("JournaledStream", (_AsyncStream, library.AsyncByteStream), {})


class _Came:
    """What a reader was given so far."""

    def __init__(self, step: Step, head: Head, chunks: Any, live: Any) -> None:
        self._step, self._chunks, self._live = step, chunks, live
        self._came: list[Chunk] = [head]
        self._ended = False

    def _is_worth_its_rest(self) -> bool:
        """Whether the reader has the whole answer, and only what ends the transfer is still to come.

        SDKs stop at the event that says so; without the rest there would be no outcome, and the model be asked again.
        """
        return not self._ended and self._step.is_whole(self._came)


class _Stream(_Came):
    def __iter__(self) -> Iterator[bytes]:
        chunks: Generator[Chunk] = self._chunks
        try:
            for chunk in chunks:
                if isinstance(chunk, bytes):
                    self._came.append(chunk)
                    yield chunk
        except NotRecordedError as cut:
            self._ended = True
            yield from (chunk for chunk in cut.chunks if isinstance(chunk, bytes))
        self._ended = True

    def close(self) -> None:
        if self._is_worth_its_rest():
            with contextlib.suppress(NotRecordedError):
                for _ in self._chunks:
                    pass
        self._chunks.close()
        self._live.close()  # which gives the connection back


class _AsyncStream(_Came):
    async def __aiter__(self) -> AsyncIterator[bytes]:
        chunks: AsyncGenerator[Chunk] = self._chunks
        try:
            async for chunk in chunks:
                if isinstance(chunk, bytes):
                    self._came.append(chunk)
                    yield chunk
        except NotRecordedError as cut:
            self._ended = True
            for chunk in cut.chunks:
                if isinstance(chunk, bytes):
                    yield chunk
        self._ended = True

    async def aclose(self) -> None:
        if self._is_worth_its_rest():
            with contextlib.suppress(NotRecordedError):
                async for _ in self._chunks:
                    pass
        await self._chunks.aclose()
        await self._live.aclose()
