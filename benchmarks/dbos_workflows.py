"""The same steps as a workflow of DBOS: each a step of its own, recorded when it has ended."""

import logging
import sqlite3
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from dbos import DBOS, SetWorkflowID
from sqlalchemy import make_url

from .subject import Database, Place, Subject, Work, database_size, file_size
from .text import payload

_begun: dict[str | None, float] = {}
"""When each workflow began that has not come to a step that is not read back."""
_read_back: dict[str | None, float] = {}
"""Seconds from the beginning of each workflow to there."""


def _note_first_live() -> None:
    began = _begun.pop(DBOS.workflow_id, None)
    if began is not None:
        _read_back[DBOS.workflow_id] = time.perf_counter() - began


@DBOS.step()
def _ask(number: int, size: int) -> dict[str, Any]:
    _note_first_live()
    call = {"id": f"call_{number}", "name": "effect", "args": {"number": number, "size": size}}
    return {"role": "assistant", "content": "", "tool_calls": [call]}


@DBOS.step()
def _effect(number: int, size: int) -> str:
    _note_first_live()
    return payload(number, size)


@DBOS.workflow()
def _work(steps: int, size: int) -> int:
    _begun[DBOS.workflow_id] = time.perf_counter()
    for number in range(steps):
        arguments = _ask(number, size)["tool_calls"][0]["args"]
        _effect(arguments["number"], arguments["size"])
    return steps


class DbosWorkflows(Subject):
    """Workflows of DBOS, which has one instance per process: it is launched while it is measured.

    Args:
        database: Where it keeps what it did.
        wal: Switch its SQLite file to write-ahead logging, which DBOS does not.
    """

    def __init__(self, database: Database, *, wal: bool = False) -> None:
        self.database, self._wal = database, wal
        self.name = f"DBOS, {'PostgreSQL' if database == 'postgres' else 'SQLite WAL' if wal else 'SQLite'}"

    def prepare(self, place: Place) -> None:
        """Make the database, and its tables by launching once."""
        self._path = place.file() if self.database == "sqlite" else None
        self._url = f"sqlite:///{self._path}" if self._path else place.database()
        if self._path and self._wal:
            with sqlite3.connect(self._path) as connection:
                connection.execute("PRAGMA journal_mode=WAL")
        with self.activated():
            pass

    @contextmanager
    def activated(self) -> Generator[None]:
        """Launch, and end it afterwards."""
        url = (
            self._url
            if self._path
            else make_url(self._url).set(drivername="postgresql").render_as_string(False)
        )
        logging.getLogger("dbos").setLevel(logging.ERROR)
        DBOS(
            config={
                "name": "benchmark",
                "system_database_url": url,
                "log_level": "ERROR",
                "enable_otlp": False,
            }
        )
        DBOS.launch()
        try:
            yield
        finally:
            DBOS.destroy()

    @contextmanager
    def open(self, run_id: str, size: int) -> Generator[Work]:
        """Nothing is open before the workflow runs."""

        def work(steps: int) -> None:
            with SetWorkflowID(run_id):
                _work(steps, size)

        yield work

    def resumed(self, run_id: str, steps: int) -> float:
        """Seconds that a copy of a finished workflow takes to read back all its steps but the last, which runs again."""
        copy = DBOS.fork_workflow(run_id, 2 * steps)
        copy.get_result(polling_interval_sec=0.02)
        return _read_back.pop(copy.workflow_id)

    def stored(self) -> int:
        """Bytes of its database."""
        return file_size(self._path) if self._path else database_size(self._url)
