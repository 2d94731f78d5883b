"""Journals as older versions of the library left them."""

import contextlib
import sqlite3
from pathlib import Path

import psycopg
import pytest

from tests.processes.children import Child

_HERE = Path(__file__).parent


@pytest.fixture
def older(place):
    """Put a journal that a version wrote where a test's journal is; gives the place."""

    def put(version):
        if place.startswith("postgresql://"):
            text = (_HERE / f"version_{version}.postgres.sql").read_text(encoding="utf-8")
            with psycopg.connect(place) as connection:
                connection.execute(text.encode())
        else:
            text = (_HERE / f"version_{version}.sqlite.sql").read_text(encoding="utf-8")
            with contextlib.closing(sqlite3.connect(place)) as connection:
                connection.executescript(text)
        return place

    return put


@pytest.fixture
def effects(tmp_path):
    """The file in which effects happen."""
    return str(tmp_path / "effects")


@pytest.fixture
def crowd():
    """Start a process for each tuple of arguments; all of them are gone after the test."""
    with contextlib.ExitStack() as stack:

        def start(program, *arguments):
            return [stack.enter_context(Child(program, *each)) for each in arguments]

        yield start
