"""Streams whose chunks are each made inside a context: a generator shares its consumer's context between chunks."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterator
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from typing import Any

_END: Any = object()


def each_within(chunks: Iterator[Any], context: Callable[[], AbstractContextManager[None]]) -> Generator[Any]:
    """The chunks, with the context entered for each anew."""
    iterator = iter(chunks)
    while True:
        with context():
            chunk = next(iterator, _END)
        if chunk is _END:
            return
        yield chunk


async def each_within_async(
    chunks: AsyncIterator[Any], context: Callable[[], AbstractContextManager[None]]
) -> AsyncGenerator[Any]:
    """As ``each_within``."""
    iterator = aiter(chunks)
    while True:
        with context():
            chunk = await anext(iterator, _END)
        if chunk is _END:
            return
        yield chunk


@contextmanager
def closing_within(chunks: Any, context: Callable[[], AbstractContextManager[None]]) -> Generator[None]:
    """Close a generator when its consumer stops, inside the context: what it still does belongs there."""
    try:
        yield
    finally:
        if hasattr(chunks, "close"):
            with context():
                chunks.close()


@asynccontextmanager
async def closing_within_async(
    chunks: Any, context: Callable[[], AbstractContextManager[None]]
) -> AsyncGenerator[None]:
    """As ``closing_within``."""
    try:
        yield
    finally:
        if hasattr(chunks, "aclose"):
            with context():
                await chunks.aclose()
