"""The world of a graph's processes: effects and bills on the disk, deaths, and checkpoints that outlive them."""

import contextlib
import sqlite3
import time
from collections.abc import AsyncGenerator, Generator
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from gnl_middleware import Done, InterruptedCall, NotDone, current_step
from tests import worlds
from tests.langchain.scripted import ScriptedModel, turns

THREAD = {"configurable": {"thread_id": "order-7"}}


class World(worlds.World):
    """The world of these processes."""

    def act(self, what: str) -> str:
        """A side effect, under the idempotency key of the step that is running."""
        self.effects.add(f"{what} {current_step().idempotency_key}")
        return f"did {what}"

    def recover(self, call: InterruptedCall) -> Done | NotDone:
        """The truth about an interrupted call."""
        found = [line.split()[0] for line in self.effects.lines() if line.endswith(call.idempotency_key)]
        return Done(f"did {found[0]}") if found else NotDone()

    def model(self, *said: Any, name: str = "scripted", dies_at: int | None = None) -> ScriptedModel:
        """A model that bills each request, and may be cut off right after one was answered."""
        script = turns(*said)

        def answer(messages: Any) -> AIMessage:
            if dies_at == len(messages):
                self.die_once("model")
            return script(messages)

        return ScriptedModel(script=answer, bill=self.bill, model_name=name)

    @property
    def done(self) -> list[str]:
        """The effects, by name."""
        return sorted(line.split()[0] for line in self.effects.lines())

    @property
    def journal(self) -> Path | str:
        """Where the runs are: in a file, or in the database that the test has named."""
        return self._database or self.folder / "runs.db"

    def use_database(self, url: str) -> None:
        """Keep runs and checkpoints in PostgreSQL; processes find the URL in the folder."""
        (self.folder / "database").write_text(url, encoding="utf-8")

    @property
    def _database(self) -> str | None:
        path = self.folder / "database"
        return path.read_text(encoding="utf-8") if path.exists() else None

    @contextlib.contextmanager
    def saver(self, kind: str, *, latency: float = 0.0) -> Generator[Any]:
        """A checkpointer that outlives the process, maybe with the latency of a remote database; or None."""
        if kind == "none":
            yield None
        elif kind == "postgres":
            with PostgresSaver.from_conn_string(str(self._database)) as saver:
                saver.setup()
                yield saver
        else:
            path = self.folder / "checkpoints.db"
            with contextlib.closing(sqlite3.connect(path, check_same_thread=False)) as connection:
                yield _SlowSaver(connection, latency)

    @contextlib.asynccontextmanager
    async def async_saver(self, kind: str) -> AsyncGenerator[Any]:
        """The same for asynchronous graphs."""
        if kind == "none":
            yield None
        elif kind == "postgres":
            async with AsyncPostgresSaver.from_conn_string(str(self._database)) as saver:
                await saver.setup()
                yield saver
        else:
            async with AsyncSqliteSaver.from_conn_string(str(self.folder / "checkpoints.db")) as saver:
                yield saver


class _SlowSaver(SqliteSaver):
    def __init__(self, connection: sqlite3.Connection, latency: float) -> None:
        super().__init__(connection)
        self._latency = latency

    def put(self, *args: Any, **options: Any) -> Any:
        time.sleep(self._latency)
        return super().put(*args, **options)

    def put_writes(self, *args: Any, **options: Any) -> None:
        time.sleep(self._latency)
        super().put_writes(*args, **options)
