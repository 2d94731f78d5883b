"""Keep a writer thread busy, so that a test decides what its next batch holds; and see what it sends to the database."""

import contextlib
import threading
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass, field, replace
from typing import Any

import sqlalchemy as sa

from gnl_middleware import Journal
from gnl_middleware.model import StoredStep
from gnl_middleware.storage.protocol import Task, Write

_FULL = 2  # what `PRAGMA synchronous` answers where a commit waits for the disk


def before_statement(database: Any, beginning: str | tuple[str, ...], act: Callable[[], object]) -> None:
    """Do something once, right before the next statement of that beginning, or of one of these, goes to the database."""
    acts = [act]

    @sa.event.listens_for(database.engine, "before_cursor_execute")
    def interpose(_connection: Any, _cursor: Any, statement: str, *_rest: Any) -> None:
        if acts and statement.startswith(beginning):
            acts.pop()()


@contextlib.contextmanager
def held(database: Any) -> Generator[None]:
    """Keep the writer busy between two transactions; what is handed over meanwhile waits for its next batch."""
    began, go = threading.Event(), threading.Event()

    def wait() -> None:
        began.set()
        go.wait()

    before_statement(database, "BEGIN IMMEDIATE", wait)
    database.submit(Task(lambda _connection: None))
    began.wait()
    try:
        yield
    finally:
        go.set()


def wait_for_queue(database: Any, length: int) -> None:
    """Wait until so many writes wait for the writer's next batch."""
    patience = time.monotonic() + 20
    while len(database.writer._queue) < length:
        assert time.monotonic() < patience, f"{len(database.writer._queue)} writes instead of {length}"
        time.sleep(0.001)


def is_at_rest(database: Any) -> bool:
    """Whether all that was handed over is committed, and has reached the disk."""
    writer = database.writer
    return not writer._queue and writer._unsynced_since is None


@dataclass
class Commit:
    """A transaction as the database saw it.

    Attributes:
        synced: It waited for the disk.
        statements: What was sent between its begin and its end.
    """

    synced: bool
    statements: list[str] = field(default_factory=list)

    @property
    def awaited(self) -> bool:
        """Whether a caller asked for the sync: one that the writer does by itself writes nothing else."""
        by_itself = ("SAVEPOINT", "RELEASE", "UPDATE gnl_schema")
        return self.synced and not all(statement.startswith(by_itself) for statement in self.statements)


def watched_commits(journal: Journal) -> list[Commit]:
    """The commits of a journal's writer, from now on, in order."""
    commits: list[Commit] = []
    open_ones: dict[int, Commit] = {}

    @sa.event.listens_for(journal._database().engine, "before_cursor_execute")
    def note(_connection: Any, cursor: Any, statement: str, *_rest: Any) -> None:
        connection = id(cursor.connection)
        if statement.startswith("BEGIN"):
            ((level,),) = cursor.connection.execute("PRAGMA synchronous").fetchall()
            open_ones[connection] = Commit(synced=level >= _FULL)
        elif statement == "COMMIT":
            commits.append(open_ones.pop(connection))
        elif connection in open_ones:
            open_ones[connection].statements.append(statement)

    return commits


def sent_statements(database: Any) -> list[str]:
    """What a database is sent, from now on."""
    sent: list[str] = []

    @sa.event.listens_for(database.engine, "before_cursor_execute")
    def note(_connection: Any, _cursor: Any, statement: str, *_rest: Any) -> None:
        sent.append(statement)

    return sent


def tried(step: StoredStep, key: str, **changes: Any) -> StoredStep:
    """The first try of a step that is like another one."""
    fresh: dict[str, Any] = {"key": key, "token": f"token of {key}", "status": "started", "value": None}
    return replace(step, **fresh, value_hash=None, finished_at=None, ended=None, **changes)


def committed(database: Any, *writes: Write) -> list[Any]:
    """Commit writes in one batch; their results."""
    for write in writes:
        database.hand_over(write)
    return [write.result() for write in writes]
