"""A journal behind a transaction pooler, where a connection keeps nothing from one transaction to the next."""

import contextlib
from urllib.parse import parse_qs, urlsplit

import psycopg
import pytest

from gnl_middleware import Journal, JournalUnavailableError, journaled, keyed
from tests.lacking import lack
from tests.postgres import programs
from tests.postgres.pooler import NoPoolerError, Pooler
from tests.processes.children import Child
from tests.workers import programs as workers


@pytest.fixture
def behind(url):
    """The URL of an empty database behind a pooler. In CI there must be one."""
    place = urlsplit(url)
    (server,) = parse_qs(place.query)["host"]
    try:
        pooler = Pooler(server)
    except NoPoolerError as missing:
        lack(f"no pooler to test behind: {missing}")
    database = place.path.strip("/")
    try:
        pooler.wait(database)
        yield pooler.url(database)
    finally:
        pooler.remove()


def test_many_workers_share_two_connections(behind, tmp_path):
    """With ``pooled=true`` four workers that share two connections of the server do all their runs, each effect once."""
    effects, runs = tmp_path / "effects", 4
    with contextlib.ExitStack() as stack:
        crowd = [
            stack.enter_context(Child(programs.work, f"{behind}&pooled=true", str(effects), worker, runs))
            for worker in range(4)
        ]
        assert [[child.hear() for _ in range(runs)] for child in crowd] == [[None] * runs] * 4

    happened = programs.happened(effects)
    assert len(happened) == len(set(happened)) == 2 * 4 * runs
    with Journal(behind, pooled=True) as journal:
        assert len(journal.runs(status="completed")) == 4 * runs


def test_claims_and_leases_behind_a_pooler(behind, tmp_path):
    """Two workers at one run without a lock, and one that waits for another's lease, work behind a pooler."""
    for schema, options in (("one", {"lock": False}), ("two", {"on_busy": "wait"})):
        effects, place = str(tmp_path / schema), f"{behind}&pooled=true&schema={schema}"
        arguments = (workers.race, place, effects, 1, options)
        with Child(*arguments) as first, Child(*arguments) as second:
            assert [first.hear(), second.hear()] == ["ready"] * 2
            first.tell()
            second.tell()
            assert first.hear() == second.hear()
        assert set(workers.happened(effects).values()) == {1}


def test_pooler_that_nobody_mentioned_is_named(behind):
    """Without the flag a prepared statement is missed sooner or later; the error says which flag to set."""
    call = journaled(lambda number: number, replay=keyed, name="call")
    with Journal(behind) as journal, psycopg.connect(behind, prepare_threshold=None) as other:
        with pytest.raises(JournalUnavailableError) as caught, journal.run("order-1"):
            for number in range(40):
                if number == 20:
                    other.execute(
                        "SELECT 1"
                    )  # has the connection, on which statements were prepared, from now on
                call(number)
        other.rollback()

    assert "pooled=True" in str(caught.value)
