"""A journal that an older version wrote is brought up to date, with all that it holds."""

import contextlib
import sqlite3
from pathlib import Path

import pytest

from gnl_middleware import Journal, JournalVersionError, codec
from gnl_middleware.storage import schema

VERSION_1 = Path(__file__).parents[1] / "migrations" / "version_1.sqlite.sql"


def test_from_version_1(tmp_path):
    """Runs of version 1 can be found by their metadata, and be erased; what they did not spend is not made up."""
    path = tmp_path / "old.db"
    with contextlib.closing(sqlite3.connect(path)) as database, database:
        database.executescript(VERSION_1.read_text(encoding="utf-8"))
        marked = (codec.encode({"customer": "ann"}),)
        database.execute("UPDATE gnl_runs SET metadata = ? WHERE run_id = 'order-8'", marked)

    with Journal(path) as journal:
        assert [record.run_id for record in journal.runs(metadata={"customer": "ann"})] == ["order-8"]
        assert journal.attempts("order-8")[0].steps_ran is None
        assert [run.run_id for run in journal.erase("order-8").runs] == ["order-8"]
        assert [record.run_id for record in journal.runs()] == ["order-7"]


def test_a_newer_journal_is_refused(url):
    """What a newer version wrote is not read with half an understanding."""
    with Journal(url) as journal:
        journal.runs()
        newer = schema.schema_table.update().values(version=schema.SCHEMA_VERSION + 1)
        journal._database().write(lambda connection: connection.execute(newer))

    with Journal(url) as journal, pytest.raises(JournalVersionError):
        journal.runs()
