"""What is measured: something that does steps in a run, each a model call and one call of a tool with a side effect."""

import itertools
import sqlite3
import uuid
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Generator
from contextlib import AbstractAsyncContextManager, AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import psycopg
from sqlalchemy import make_url

Database = Literal["sqlite", "postgres", "none"]
Work = Callable[[int], None]
AsyncWork = Callable[[int], Awaitable[None]]

_numbers = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Place:
    """Where subjects put their databases.

    Attributes:
        folder: On the file system that is measured.
        postgres: URL of a server on which databases may be created, or None.
        created: The databases that were created there.
    """

    folder: Path
    postgres: str | None
    created: list[str] = field(default_factory=list)

    def file(self) -> Path:
        """The path of a file that is not there yet."""
        return self.folder / f"{next(_numbers)}.db"

    def database(self) -> str:
        """The URL of an empty database on the server."""
        if self.postgres is None:
            raise ValueError("there is no PostgreSQL here")
        name = f"benchmark_{uuid.uuid4().hex[:12]}"
        with psycopg.connect(self.postgres, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        self.created.append(name)
        return make_url(self.postgres).set(database=name).render_as_string(hide_password=False)

    def clear(self) -> None:
        """Drop the databases."""
        if self.postgres is not None:
            with psycopg.connect(self.postgres, autocommit=True) as connection:
                while self.created:
                    connection.execute(f"DROP DATABASE {self.created.pop()} WITH (FORCE)")


class Subject(ABC):
    """What can do steps, in runs whose outcome another attempt may read back.

    A step is a model call that answers at once, and a call of one tool that must not run twice and returns a text.

    Attributes:
        name: What tables call it.
        database: Where it keeps what it did; decides which floor it is compared with.
        resumes: Whether doing the same steps again in the same run reads them back.
    """

    name: str
    database: Database
    resumes: bool = False

    @abstractmethod
    def prepare(self, place: Place) -> None:
        """Make everything that is needed once: the database, the agent."""

    @contextmanager
    def activated(self) -> Generator[None]:
        """What must be there while it is measured and is nobody's business to measure."""
        yield

    @abstractmethod
    def open(self, run_id: str, size: int) -> AbstractContextManager[Work]:
        """Open a run for steps whose tool returns texts of this many bytes; gives what does the first so many steps of it."""

    def stored(self) -> int:
        """Bytes that everything it did takes; not of subjects that keep nothing."""
        raise NotImplementedError(self.name)

    def close(self) -> None:  # noqa: B027 - what keeps nothing has nothing to let go of
        """Let go of everything that was prepared."""


class LoopedSubject(Subject):
    """A subject whose runs go on at once in an event loop; those of others have a thread each."""

    @abstractmethod
    def open_async(self, run_id: str, size: int) -> AbstractAsyncContextManager[AsyncWork]:
        """As ``open``."""


def file_size(path: Path) -> int:
    """Bytes of a SQLite file without its free pages."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.execute("VACUUM")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    return path.stat().st_size


def database_size(url: str) -> int:
    """Bytes of a PostgreSQL database."""
    with psycopg.connect(url) as connection:
        row = connection.execute("SELECT pg_database_size(current_database())").fetchone()
    return row[0] if row else 0
