"""This library through the surface for adapters: no framework in between."""

import contextlib
import sqlite3
import zlib
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import orjson

from gnl_middleware import Journal, never
from gnl_middleware.adapter import (
    Message,
    ModelCall,
    Reply,
    ReplyCall,
    ToolCall,
    digest,
    perform,
    perform_async,
    request_of,
    session_for,
)
from gnl_middleware.storage.splicing import joined

from .subject import AsyncWork, Database, LoopedSubject, Place, Work, database_size, file_size
from .text import payload

_ROWS = (
    "SELECT step.*, asked.body, asked.compressed, given.body, given.compressed, part.body, part.compressed"
    " FROM gnl_steps AS step"
    " LEFT JOIN gnl_blobs AS asked ON asked.run_id = step.run_id AND asked.hash = step.arguments_hash"
    " LEFT JOIN gnl_blobs AS given ON given.run_id = step.run_id AND given.hash = step.value_hash"
    " LEFT JOIN gnl_blobs AS part ON part.run_id = asked.run_id AND part.hash = asked.source"
    " WHERE step.run_id = ? ORDER BY step.number"
)
_SETUP = {"model": "answers at once", "tools": ["effect"]}


class _Conversation:
    """A conversation that grows by one reply and the answer to its call with each step, as an adapter would describe it."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._messages: list[dict[str, Any]] = []
        self._parts: list[Message] = []
        self._number = 0
        self._add({"role": "user", "content": "please begin"})

    def _add(self, message: dict[str, Any], **identity: Any) -> None:
        self._messages.append(message)
        self._parts.append(Message(message["role"], digest(message), **identity))

    def model_call(self) -> ModelCall:
        """What the model is asked next."""
        messages = tuple(self._messages)
        request = request_of(messages, tuple(self._parts), _SETUP)
        return ModelCall(
            name="model",
            request=request,
            messages=messages,
            setup=_SETUP,
            describe=self._described,
        )

    def reply(self) -> dict[str, Any]:
        """What the model says, at once."""
        arguments = {"number": self._number, "size": self._size}
        call = {"id": f"call_{self._number}", "name": "effect", "args": arguments}
        return {"role": "assistant", "content": "", "tool_calls": [call]}

    def _described(self, reply: dict[str, Any]) -> Reply:
        calls = [ReplyCall(call["id"], call["name"], digest(call["args"])) for call in reply["tool_calls"]]
        return Reply(digest=digest(reply), calls=tuple(calls))

    def tool_call(self, reply: dict[str, Any]) -> ToolCall:
        """The call that the model asked for."""
        carrier, call = digest(reply), reply["tool_calls"][0]
        self._add(reply, call_ids=(call["id"],), reply=carrier)
        return ToolCall(
            name=call["name"],
            policy=never,
            arguments=call["args"],
            call_id=call["id"],
            carrier=carrier,
            place=0,
        )

    def effect(self) -> str:
        """What the tool does."""
        return payload(self._number, self._size)

    def answer(self, result: str) -> None:
        """Go on with what the tool returned."""
        call_id = f"call_{self._number}"
        self._add({"role": "tool", "content": result, "id": call_id}, answers=call_id)
        self._number += 1


class _Core(LoopedSubject):
    resumes = True
    journal: Journal

    @contextmanager
    def open(self, run_id: str, size: int) -> Generator[Work]:
        """Open a run."""
        conversation = _Conversation(size)
        with self.journal.run(run_id):
            session = session_for(name="model")

            def work(steps: int) -> None:
                for _ in range(steps):
                    reply = perform(session, conversation.model_call(), conversation.reply)
                    conversation.answer(perform(session, conversation.tool_call(reply), conversation.effect))

            yield work

    @asynccontextmanager
    async def open_async(self, run_id: str, size: int) -> AsyncGenerator[AsyncWork]:
        """Open a run."""
        conversation = _Conversation(size)

        async def reply_async() -> dict[str, Any]:
            return conversation.reply()

        async def effect_async() -> str:
            return conversation.effect()

        async with self.journal.run(run_id):
            session = session_for(name="model")

            async def work(steps: int) -> None:
                for _ in range(steps):
                    reply = await perform_async(session, conversation.model_call(), reply_async)
                    conversation.answer(
                        await perform_async(session, conversation.tool_call(reply), effect_async)
                    )

            yield work

    def close(self) -> None:
        """Close the journal."""
        self.journal.close()


class CoreOnSqlite(_Core):
    """A journal in a SQLite file."""

    name = "gnl, SQLite"
    database: Database = "sqlite"

    def prepare(self, place: Place) -> None:
        """Name the file."""
        self.at(place.file())

    def at(self, path: Path) -> None:
        """Keep the journal there."""
        self.path = path
        self.journal = Journal(path)

    def stored(self) -> int:
        """Bytes of the file."""
        return file_size(self.path)


def decode_rows(path: Path, run_id: str) -> int:
    """Read the rows of a run of a journal by hand, with their payloads in the same query, and decode all of these; says how many."""
    rows = []
    with contextlib.closing(sqlite3.connect(path)) as connection:
        rows = connection.execute(_ROWS, (run_id,)).fetchall()
    for *_, asked, asked_small, given, given_small, part, part_small in rows:
        for body, is_compressed in ((asked, asked_small), (given, given_small)):
            if body is not None:
                plain = zlib.decompress(body) if is_compressed else body
                if part is not None and body is asked:
                    plain = joined(plain, zlib.decompress(part) if part_small else part)
                orjson.loads(plain)
    return len(rows)


class CoreOnPostgres(_Core):
    """A journal in a PostgreSQL database."""

    name = "gnl, PostgreSQL"
    database: Database = "postgres"

    def prepare(self, place: Place) -> None:
        """Make the database."""
        self._url = place.database()
        self.journal = Journal(self._url)

    def stored(self) -> int:
        """Bytes of the database."""
        return database_size(self._url)
