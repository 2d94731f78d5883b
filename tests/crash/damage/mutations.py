"""Ways in which the bytes or the rows of a journal can be wrong, each chosen by a seeded generator."""

import contextlib
import json
import random
import sqlite3
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gnl_middleware import Journal
from gnl_middleware.codec import content_hash

from .order import forge

_PAGE = 4096
_TABLES = (
    "gnl_steps",
    "gnl_steps",
    "gnl_steps",
    "gnl_blobs",
    "gnl_blobs",
    "gnl_runs",
    "gnl_attempts",
    "gnl_resolutions",
    "gnl_schema",
)
_DEEP = "[" * 100_000
HOSTILE_MODULE = "imported_by_a_journal"
"""A module that can be imported and that nobody must import."""

CELLS: tuple[Any, ...] = (
    *(
        None,
        "",
        "x",
        0,
        1,
        -1,
        2**62,
        1.5,
        1e308,
        float("inf"),
        b"",
        b"\x00\xff",
        "done",
        "started",
        "failed",
    ),
    *(
        "never",
        "safe",
        "model",
        "withdrawn",
        "paused",
        "[]",
        "{}",
        "[1]",
        '[["a","b"]]',
        "null",
        '"x"',
        _DEEP,
    ),
    *(
        "\x00",
        "a\x00b",
        "ü" * 500,
        "../../etc/passwd",
        HOSTILE_MODULE,
        f"{HOSTILE_MODULE}.Class",
        "ValueError",
    ),
)
"""What an edited cell may hold."""

CONTENTS: tuple[bytes, ...] = (
    *(b"", b"null", b"{", b"[1,", b"NaN", b'"\xff"', b"1e999", b"\x80\x04K\x01.", b"[" * 100_000, b"{}", b"[]", b"5", b'"x"'),
    *(json.dumps({"$gnl": tag, "value": value}).encode() for tag, value in (
        ("os.system", "touch marker"), (HOSTILE_MODULE, [1]), (f"{HOSTILE_MODULE}.Class", {}), ("tuple", 5),
        ("datetime", ["2026-01-01T00:00:00", 0, ["key", f"{HOSTILE_MODULE}/zone", [0, 0, 0]]]), ("decimal", "nine"),
        ("bytes", "?"), ("set", [[1]]), ("map", [[1]]), ("int", "0x1g"), ("uuid", "7"), ("str", "!"), (7, 7),
    )),
    *(json.dumps(value).encode() for value in (
        {"$gnl": "tuple"}, {"$gnl": "tuple", "value": [], "more": 1}, {"__reduce__": [HOSTILE_MODULE, "Class"]},
        {"lc": 1, "type": "constructor", "id": [HOSTILE_MODULE, "Class"], "kwargs": {}}, {"py/object": f"{HOSTILE_MODULE}.Class"},
    )),
    zlib.compress(bytes(20_000_000)),
)  # fmt: skip
"""Hand-made contents of a payload."""


def mutate(path: Path, generator: random.Random) -> str:
    """Damage the journal; gives what was done to it, in words that begin with ``bytes`` or ``rows``."""
    kind = generator.choice(tuple(MUTATIONS))
    return f"{kind}: {MUTATIONS[kind](path, generator)}"


# The bytes of the file.


def _on_bytes(change: Callable[[bytearray, random.Random], str]) -> Callable[[Path, random.Random], str]:
    def changed(path: Path, generator: random.Random) -> str:
        # The log of a journal that was not closed is part of it.
        file = generator.choice(
            [file for file in (path, path.with_name(f"{path.name}-wal")) if file.exists()]
        )
        content = bytearray(file.read_bytes())
        told = change(content, generator)
        file.write_bytes(content)
        return f"{told} of {file.suffix}"

    return changed


def _flip_bits(content: bytearray, generator: random.Random) -> str:
    places = [generator.randrange(8 * len(content)) for _ in range(generator.choice((1, 1, 1, 2, 8)))]
    for place in places:
        content[place // 8] ^= 1 << place % 8
    return f"bits {places}"


def _overwrite(content: bytearray, generator: random.Random) -> str:
    start, length = generator.randrange(len(content)), generator.choice((1, 4, 32, 512))
    written = generator.choice((bytes(length), b"\xff" * length, generator.randbytes(length)))
    content[start : start + length] = written[: len(content) - start]
    return f"{length} bytes at {start}"


def _truncate(content: bytearray, generator: random.Random) -> str:
    # An empty file is no damage: it is a journal that nothing was written to yet.
    pages = len(content) // _PAGE
    length = generator.choice(
        (generator.randrange(1, len(content)), _PAGE * generator.randrange(1, pages + 1))
    )
    del content[length:]
    return f"all behind {length}"


def _extend(content: bytearray, generator: random.Random) -> str:
    added = generator.choice((generator.randbytes(generator.randrange(1, 2 * _PAGE)), bytes(content[:_PAGE])))
    content.extend(added)
    return f"{len(added)} bytes more"


def _shuffle_pages(content: bytearray, generator: random.Random) -> str:
    pages = len(content) // _PAGE
    here, there = (generator.randrange(pages) * _PAGE for _ in range(2))
    one, other = content[here : here + _PAGE], content[there : there + _PAGE]
    content[here : here + _PAGE] = other
    if generator.random() < 0.5:
        content[there : there + _PAGE] = one
    return f"pages at {here} and {there}"


def _damage_header(content: bytearray, generator: random.Random) -> str:
    place = generator.randrange(100)
    content[place] = generator.randrange(256)
    return f"byte {place}"


# The rows, through SQLite.


def _on_rows(
    change: Callable[[sqlite3.Connection, random.Random], str],
) -> Callable[[Path, random.Random], str]:
    def changed(path: Path, generator: random.Random) -> str:
        with contextlib.closing(sqlite3.connect(path)) as connection, connection:
            return change(connection, generator)

    return changed


def _columns(connection: sqlite3.Connection, table: str) -> list[str]:
    return [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]


def _any_row(connection: sqlite3.Connection, table: str, generator: random.Random) -> int:
    return generator.choice([row[0] for row in connection.execute(f"SELECT rowid FROM {table}")])


def _set(connection: sqlite3.Connection, table: str, column: str, row: int, value: Any) -> str:
    with contextlib.suppress(sqlite3.IntegrityError, OverflowError):  # the table itself refuses it
        connection.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (value, row))
    return f"{table}.{column} of row {row} is {str(value)[:60]!r}"


def _edit_cell(connection: sqlite3.Connection, generator: random.Random) -> str:
    table = generator.choice(_TABLES)
    column, row = generator.choice(_columns(connection, table)), _any_row(connection, table, generator)
    return _set(connection, table, column, row, generator.choice(CELLS))


def _flip_cell(connection: sqlite3.Connection, generator: random.Random) -> str:
    table = generator.choice(_TABLES)
    column, row = generator.choice(_columns(connection, table)), _any_row(connection, table, generator)
    (value,) = connection.execute(f"SELECT {column} FROM {table} WHERE rowid = ?", (row,)).fetchone()
    if not isinstance(value, str | bytes) or not value:
        return "nothing"
    content = bytearray(value.encode() if isinstance(value, str) else value)
    place = generator.randrange(8 * len(content))
    content[place // 8] ^= 1 << place % 8
    told = _set(connection, table, column, row, bytes(content))
    if isinstance(value, str):
        connection.execute(f"UPDATE {table} SET {column} = CAST({column} AS TEXT) WHERE rowid = ?", (row,))
    return told


def _swap_cells(connection: sqlite3.Connection, generator: random.Random) -> str:
    table = generator.choice(("gnl_steps", "gnl_blobs"))
    column = generator.choice(_columns(connection, table))
    one, other = (_any_row(connection, table, generator) for _ in range(2))
    values = [
        connection.execute(f"SELECT {column} FROM {table} WHERE rowid = ?", (row,)).fetchone()[0]
        for row in (one, other)
    ]
    if values[0] == values[1]:
        return "nothing"
    with contextlib.suppress(sqlite3.IntegrityError):
        connection.execute(
            f"UPDATE {table} SET {column} = CASE rowid WHEN ? THEN ? ELSE ? END WHERE rowid IN (?, ?)",
            (one, values[1], values[0], one, other),
        )
    return f"{table}.{column} of rows {one} and {other} are swapped"


def _put_content(connection: sqlite3.Connection, generator: random.Random) -> str:
    row, body = _any_row(connection, "gnl_blobs", generator), generator.choice(CONTENTS)
    connection.execute(
        "UPDATE gnl_blobs SET body = ?, compressed = ? WHERE rowid = ?", (body, generator.randrange(2), row)
    )
    return f"payload {row} is {body[:60]!r}"


def _forge(connection: sqlite3.Connection, generator: random.Random) -> str:
    """Hand-made content with the hash that belongs to it: only what it says can be wrong."""
    row, body = _any_row(connection, "gnl_steps", generator), generator.choice(CONTENTS)
    column = generator.choice(("value_hash", "value_hash", "arguments_hash"))
    (run_id,) = connection.execute("SELECT run_id FROM gnl_steps WHERE rowid = ?", (row,)).fetchone()
    put = "INSERT OR IGNORE INTO gnl_blobs (run_id, hash, compressed, body) VALUES (?, ?, 0, ?)"
    connection.execute(put, (run_id, content_hash(body), body))
    return _set(connection, "gnl_steps", column, row, content_hash(body)) + f" of {body[:60]!r}"


def _write_by_hand(path: Path, generator: random.Random) -> str:
    content = generator.choice(CONTENTS)
    with Journal(path) as journal:
        forge(journal, content)
    return f"{content[:60]!r}"


def _remove(connection: sqlite3.Connection, generator: random.Random) -> str:
    row = _any_row(connection, "gnl_blobs", generator)
    connection.execute("DELETE FROM gnl_blobs WHERE rowid = ?", (row,))
    return f"payload {row} is gone"


def _foreign(connection: sqlite3.Connection, generator: random.Random) -> str:
    """A row of another run, or of nobody, among those of a run."""
    row = _any_row(connection, "gnl_steps", generator)
    columns = _columns(connection, "gnl_steps")
    found = dict(
        zip(
            columns,
            connection.execute("SELECT * FROM gnl_steps WHERE rowid = ?", (row,)).fetchone(),
            strict=True,
        )
    )
    found["run_id"] = generator.choice(("order-1", "order-2", "order-3", "order-9"))
    found["key"] += generator.choice(("", "x", "/0/x"))
    found["number"] = generator.choice((found["number"], 99))
    marks = ", ".join("?" * len(columns))
    with contextlib.suppress(sqlite3.IntegrityError):
        connection.execute(
            f"INSERT INTO gnl_steps ({', '.join(columns)}) VALUES ({marks})", tuple(found.values())
        )
    return f"a copy of row {row} in {found['run_id']} under {found['key']}"


def _change_tables(connection: sqlite3.Connection, generator: random.Random) -> str:
    statement = generator.choice(
        (
            "DROP TABLE gnl_blobs", "DROP TABLE gnl_steps", "DROP TABLE gnl_schema", "DELETE FROM gnl_schema",
            "UPDATE gnl_schema SET version = 99", "UPDATE gnl_schema SET version = 0", "DROP TABLE gnl_attempts",
            "ALTER TABLE gnl_steps RENAME COLUMN token TO tokan", "ALTER TABLE gnl_runs DROP COLUMN metadata",
            "CREATE TABLE more (x)", "INSERT INTO gnl_schema (version) VALUES (7)", "ALTER TABLE gnl_steps ADD COLUMN x",
        )
    )  # fmt: skip
    connection.execute(statement)
    return statement


MUTATIONS: dict[str, Callable[[Path, random.Random], str]] = {
    "bytes flipped": _on_bytes(_flip_bits),
    "bytes overwritten": _on_bytes(_overwrite),
    "bytes truncated": _on_bytes(_truncate),
    "bytes added": _on_bytes(_extend),
    "bytes of pages shuffled": _on_bytes(_shuffle_pages),
    "bytes of the header": _on_bytes(_damage_header),
    "rows edited": _on_rows(_edit_cell),
    "rows with a bit flipped": _on_rows(_flip_cell),
    "rows swapped": _on_rows(_swap_cells),
    "rows with hand-made payloads": _on_rows(_put_content),
    "rows forged": _on_rows(_forge),
    "rows forged with all that belongs to them": _write_by_hand,
    "rows removed": _on_rows(_remove),
    "rows of another run": _on_rows(_foreign),
    "rows of another shape": _on_rows(_change_tables),
}
