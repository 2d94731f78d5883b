"""Faults around a journal: commits that fail, a clock that jumps, a process that is gone.

The database connections are SQLite's own; their commits fail when they are told to.
"""

import contextlib
import json
import shutil
import sqlite3
import threading
import time
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from gnl_middleware import Journal


class Clock:
    """A clock that only the test turns; it begins at the machine's time.

    The thread that renews leases sees the moment at which the attempt began: a renewal would undo a jump by chance.

    Attributes:
        wall: Seconds since the epoch.
        steady: Seconds that never go back.
    """

    def __init__(self, wall: float | None = None) -> None:
        self.wall, self.steady = time.time() if wall is None else wall, 0.0
        self.begin()

    def begin(self) -> None:
        """An attempt begins now."""
        self._began = self.wall, self.steady

    def time(self) -> float:
        """Seconds since the epoch."""
        return self._began[0] if _is_renewer() else self.wall

    def monotonic(self) -> float:
        """Seconds that never go back."""
        return self._began[1] if _is_renewer() else self.steady


def _is_renewer() -> bool:
    return threading.current_thread().name == "gnl-renewer"


class Disk:
    """How the next commits that matter end.

    Attributes:
        plan: ``before`` or ``after`` for each commit that is to fail: before it is done, or with only its
            acknowledgement lost.
        failed: How many have failed.
    """

    def __init__(self) -> None:
        self.plan: list[str] = []
        self.failed = 0

    def attach(self, journal: Journal) -> None:
        """Let the journal's connections, from now on, fail as planned."""
        disk = self

        class Cursor(sqlite3.Cursor):
            def execute(self, statement: str, *parameters: Any) -> Any:
                connection: Any = self.connection
                if statement == "BEGIN IMMEDIATE":
                    connection.matters = False
                elif statement.startswith(("INSERT", "UPDATE")) and "gnl_schema" not in statement:
                    connection.matters = True
                if statement != "COMMIT" or not connection.matters or not disk.plan:
                    return super().execute(statement, *parameters)
                disk.failed += 1
                if disk.plan.pop(0) == "after":
                    super().execute(statement, *parameters)
                raise sqlite3.OperationalError("disk I/O error")

            def executemany(self, statement: str, *parameters: Any) -> Any:
                connection: Any = self.connection
                connection.matters = True
                return super().executemany(statement, *parameters)

        class Connection(sqlite3.Connection):
            matters = False

            def cursor(self, *_arguments: Any) -> Any:
                return super().cursor(Cursor)

        @sa.event.listens_for(journal._database().engine, "do_connect")
        def connect(_dialect: Any, _record: Any, _arguments: Any, options: dict[str, Any]) -> None:
            options["factory"] = Connection


@contextlib.contextmanager
def locked(path: Path) -> Generator[None]:
    """Let nobody write to the file meanwhile."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield
        connection.execute("ROLLBACK")


def as_left_by_the_dead(path: Path, copy: Path) -> None:
    """Copy the journal as it stands on the disk, held by a process that is gone. Nobody may write meanwhile."""
    for suffix in ("", "-wal"):
        if (source := Path(f"{path}{suffix}")).exists():
            shutil.copyfile(source, f"{copy}{suffix}")
    with contextlib.closing(sqlite3.connect(copy)) as connection, connection:
        held = connection.execute("SELECT run_id, holder FROM gnl_runs WHERE holder IS NOT NULL").fetchall()
        for run_id, holder in held:
            dead = json.dumps(json.loads(holder) | {"started": "0"})
            connection.execute("UPDATE gnl_runs SET holder = ? WHERE run_id = ?", (dead, run_id))


def flush(journal: Journal) -> None:
    """Wait until everything that was handed over is committed."""
    journal._database().write(lambda _connection: None)


def numbered(folder: Path) -> Iterator[Path]:
    """Names for the journals of one process after another."""
    number = 0
    while True:
        number += 1
        yield folder / f"runs-{number}.db"
