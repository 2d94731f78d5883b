"""The rows of a journal's file, past the library: to look at them, and to damage them."""

import contextlib
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

Work = Callable[[sqlite3.Connection], Any]


def on_file(path: Path, work: Work) -> Any:
    """Do something on a connection of its own and commit it."""
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        return work(connection)


def rows(path: Path, query: str, *parameters: Any) -> list[Any]:
    """What a query finds."""
    return on_file(path, lambda connection: connection.execute(query, parameters).fetchall())


def value(path: Path, query: str, *parameters: Any) -> Any:
    """The one value that a query finds."""
    ((found,),) = rows(path, query, *parameters)
    return found


def change(path: Path, statement: str, *parameters: Any) -> None:
    """Change exactly one row."""
    changed = on_file(path, lambda connection: connection.execute(statement, parameters).rowcount)
    assert changed == 1, f"{changed} rows changed by {statement}"
