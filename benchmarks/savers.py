"""The checkpointers of LangGraph, as its users would make them."""

import sqlite3
from abc import ABC, abstractmethod
from typing import Any, Literal

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver
from psycopg.rows import dict_row
from psycopg_pool import ConnectionPool

from .subject import Database, Place, database_size, file_size

Durability = Literal["sync", "async", "exit"]
DURABILITIES: tuple[Durability, ...] = ("sync", "async", "exit")
_CONNECTIONS = 10


class Saver(ABC):
    """A checkpointer and its database."""

    database: Database
    saver: BaseCheckpointSaver[Any]

    @abstractmethod
    def prepare(self, place: Place) -> None:
        """Make the database and its tables."""

    @abstractmethod
    def stored(self) -> int:
        """Bytes that it takes."""

    @abstractmethod
    def close(self) -> None:
        """Close its connections."""


class SqliteCheckpoints(Saver):
    """``SqliteSaver``: one connection behind a lock, in WAL mode, synchronous=FULL as SQLite has it by default."""

    title = "SqliteSaver"
    database: Database = "sqlite"

    def prepare(self, place: Place) -> None:
        """Make the file."""
        self._path = place.file()
        self._connection = sqlite3.connect(self._path, check_same_thread=False)
        self.saver = SqliteSaver(self._connection)
        self.saver.setup()

    def stored(self) -> int:
        """Bytes of the file."""
        return file_size(self._path)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


class PostgresCheckpoints(Saver):
    """``PostgresSaver`` on a pool of connections."""

    title = "PostgresSaver"
    database: Database = "postgres"

    def prepare(self, place: Place) -> None:
        """Make the database."""
        self._url = place.database()
        options = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}
        self._pool = ConnectionPool(self._url, min_size=1, max_size=_CONNECTIONS, kwargs=options, open=True)
        self.saver = PostgresSaver(self._pool)
        self.saver.setup()

    def stored(self) -> int:
        """Bytes of the database."""
        return database_size(self._url)

    def close(self) -> None:
        """Close the pool."""
        self._pool.close()
