"""The rows of a journal past the library, in a file or on a server: to look at them, and to change them."""

import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import sqlalchemy as sa

from gnl_middleware.storage.address import parse


@contextmanager
def connected(url: str) -> Iterator[sa.Connection]:
    """A transaction of its own in the journal's tables."""
    address = parse(url)
    engine = sa.create_engine(address.url)
    try:
        with engine.begin() as connection:
            if address.schema:
                connection.execute(sa.text(f'SET search_path = "{address.schema}"'))
            yield connection
    finally:
        engine.dispose()


def found(url: str, query: str, **parameters: Any) -> list[Any]:
    """What a query finds."""
    with connected(url) as connection:
        return [tuple(row) for row in connection.execute(sa.text(query), parameters)]


def changed(url: str, statement: str, **parameters: Any) -> None:
    """Change exactly one row."""
    with connected(url) as connection:
        count = connection.execute(sa.text(statement), parameters).rowcount
        assert count == 1, f"{count} rows changed by {statement}"


def everything(url: str) -> bytes:
    """All that the journal's tables hold, as one text to search for what must not be there."""
    with connected(url) as connection:
        tables = sa.inspect(connection).get_table_names(schema=parse(url).schema)
        told = b""
        for table in tables:
            for row in connection.execute(sa.text(f"SELECT * FROM {table}")):
                for cell in row:
                    told += cell if isinstance(cell, bytes) else str(cell).encode("utf-8", "surrogatepass")
                    told += b"\n"
        return told


def plain(body: bytes, compressed: int) -> bytes:
    """A payload as it was before it was stored."""
    return zlib.decompress(body) if compressed else body
