"""A journal that was written before there were forks is forked like any other."""

import contextlib
import sqlite3
from pathlib import Path

import pytest

from gnl_middleware import Done, Journal, never
from tests.migrations.test_older_journals import order
from tests.timetravel.acting import World

WRITTEN = Path(__file__).parents[1] / "migrations" / "version_1.sqlite.sql"


@pytest.fixture
def old(tmp_path):
    """A file of version 1, in which order-8 was completed, and order-7 was killed in its charge."""
    path = tmp_path / "old.db"
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.executescript(WRITTEN.read_text(encoding="utf-8"))
    return path


def test_old_runs_are_forked(old):
    """What an older version recorded is read back by a fork of it, and an interrupted call keeps the key that it was given."""
    with Journal(old) as journal:
        assert [(run.forked_from, run.effects) for run in journal.runs()] == [(None, True)] * 2
        journal.fork("order-8", "b")
        assert order(journal, "b") == order(journal, "order-8")
        (charge,) = [step for step in journal.steps("order-7") if step.status == "started"]
        journal.fork("order-7", "c", edits={charge.key: Done("charged")})

        carried = [step for step in journal.steps("c") if step.key == charge.key]

    assert [(step.idempotency_key, step.value) for step in carried] == [(charge.idempotency_key, "charged")]


def test_a_fork_after_the_migration_is_no_old_run(old):
    """A fork of an old run performs no effect either."""
    with Journal(old) as journal:
        journal.fork("order-8", "b", before=1)

        with pytest.raises(Exception, match="has not run"), journal.run("b"):
            World().act("charge", never)
