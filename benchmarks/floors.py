"""The least that a journal can do, by hand: an intent before the side effect, its outcome after it, each on the disk."""

import sqlite3
import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import orjson
import psycopg

from .subject import Place, Subject, Work, database_size, file_size
from .text import payload

_TABLE = (
    "CREATE TABLE steps (run TEXT, number INTEGER, kind TEXT, key TEXT, arguments {0}, value {0},"
    " PRIMARY KEY (run, number))"
)


class _Rows:
    """The rows of one run: what the model is newly told and says, and what the tool is given and returns."""

    def __init__(self, run_id: str, size: int) -> None:
        self.run_id, self._size, self._told = run_id, size, "please begin"

    def before(self, number: int) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """The model's row, complete, and the intent of the call that it asks for."""
        arguments = {"number": number, "size": self._size}
        call = {"id": f"call_{number}", "name": "effect", "args": arguments}
        told = orjson.dumps([{"role": "tool", "content": self._told}])
        reply = orjson.dumps({"role": "assistant", "content": "", "tool_calls": [call]})
        model = (self.run_id, 2 * number, "model", f"m{number}", told, reply)
        return model, (self.run_id, 2 * number + 1, "tool", f"t{number}", orjson.dumps(arguments), None)

    def after(self, number: int) -> tuple[Any, ...]:
        """The outcome of the call."""
        self._told = payload(number, self._size)
        return orjson.dumps(self._told), self.run_id, 2 * number + 1


class SqliteFloor(Subject):
    """The standard library's sqlite3: WAL, synchronous=FULL, prepared statements, two commits per step."""

    name = "by hand, SQLite"
    database = "sqlite"
    resumes = True

    def prepare(self, place: Place) -> None:
        """Open one connection; runs at once take it in turn."""
        self._path = place.file()
        self._connection = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False)
        self._connection.execute("PRAGMA journal_mode=WAL")
        self._connection.execute("PRAGMA synchronous=FULL")
        self._connection.execute(_TABLE.format("BLOB"))
        self._lock = threading.Lock()

    @contextmanager
    def open(self, run_id: str, size: int) -> Generator[Work]:
        """Nothing is opened: what is there is read, the rest is written."""
        yield lambda steps: self._steps(_Rows(run_id, size), steps)

    def _steps(self, rows: _Rows, steps: int) -> None:
        for number in range(self.read_back(rows.run_id), steps):
            with self._lock:
                self._connection.execute("BEGIN IMMEDIATE")
                self._connection.executemany(
                    "INSERT INTO steps VALUES (?, ?, ?, ?, ?, ?)", rows.before(number)
                )
                self._connection.execute("COMMIT")
            outcome = rows.after(number)
            with self._lock:
                self._connection.execute("BEGIN IMMEDIATE")
                self._connection.execute("UPDATE steps SET value = ? WHERE run = ? AND number = ?", outcome)
                self._connection.execute("COMMIT")

    def read_back(self, run_id: str) -> int:
        """Read and decode all that a run recorded; gives how many steps that is."""
        with self._lock:
            rows = self._connection.execute(
                "SELECT number, kind, key, arguments, value FROM steps WHERE run = ? ORDER BY number",
                (run_id,),
            ).fetchall()
        return _decoded(rows)

    def stored(self) -> int:
        """Bytes of the file."""
        return file_size(self._path)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


class PostgresFloor(Subject):
    """psycopg with a connection per run: two statements per step, each its own commit, prepared by the driver."""

    name = "by hand, PostgreSQL"
    database = "postgres"
    resumes = True

    def prepare(self, place: Place) -> None:
        """Make the table; the connection of a run alone is kept open."""
        self._url = place.database()
        self._kept = [psycopg.connect(self._url, autocommit=True)]
        self._kept[0].execute(_TABLE.format("BYTEA"))
        self._lock = threading.Lock()

    @contextmanager
    def open(self, run_id: str, size: int) -> Generator[Work]:
        """Take a connection for the run."""
        with self._lock:
            connection = self._kept.pop() if self._kept else None
        connection = connection or psycopg.connect(self._url, autocommit=True)
        try:
            yield lambda steps: self._steps(connection, _Rows(run_id, size), steps)
        finally:
            with self._lock:
                self._kept.append(connection)

    def _steps(self, connection: psycopg.Connection, rows: _Rows, steps: int) -> None:
        insert = "INSERT INTO steps VALUES (%s, %s, %s, %s, %s, %s), (%s, %s, %s, %s, %s, %s)"
        for number in range(self._read_back(connection, rows.run_id), steps):
            model, intent = rows.before(number)
            connection.execute(insert, (*model, *intent))
            connection.execute(
                "UPDATE steps SET value = %s WHERE run = %s AND number = %s", rows.after(number)
            )

    def _read_back(self, connection: psycopg.Connection, run_id: str) -> int:
        query = "SELECT number, kind, key, arguments, value FROM steps WHERE run = %s ORDER BY number"
        return _decoded(connection.execute(query, (run_id,)).fetchall())

    def stored(self) -> int:
        """Bytes of the database."""
        return database_size(self._url)

    @contextmanager
    def activated(self) -> Generator[None]:
        """Connections that were opened for runs at once are not kept for ever."""
        yield
        while len(self._kept) > 1:
            self._kept.pop().close()

    def close(self) -> None:
        """Close the connections."""
        for connection in self._kept:
            connection.close()


def _decoded(rows: list[tuple[Any, ...]]) -> int:
    """How many steps the rows are, all decoded."""
    for row in rows:
        orjson.loads(row[3])
        orjson.loads(row[4])
    return len(rows) // 2
