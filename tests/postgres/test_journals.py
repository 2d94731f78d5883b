"""A journal in PostgreSQL keeps the promises of one in a file."""

import asyncio
import math

import psycopg
import pytest
from psycopg import sql

from gnl_middleware import (
    Done,
    Journal,
    JournalCorruptError,
    JournalUnavailableError,
    JournalVersionError,
    NotDone,
    RecordedError,
    RunBusyError,
    SideEffectRetryBlockedError,
    journaled,
    keyed,
    never,
    safe,
)
from gnl_middleware.storage.operations import runs
from gnl_middleware.testing import ManualClock
from tests.postgres.server import administer

RUN = "order-7"


class Killed(BaseException):
    """The worker ends here."""


def order(journal, ran, *, die_at=None, **options):
    """Look up, charge and mail; gives what each gave."""

    def acting(name, policy):
        def body():
            ran.append(name)
            if name == die_at:
                raise Killed
            return {"done": name, "raw": b"\x00\xff", "text": "a\x00b", "number": math.nan}

        return journaled(body, replay=policy, name=name)

    with journal.run(RUN, **options):
        return [
            acting(name, policy)() for name, policy in (("look_up", safe), ("charge", never), ("mail", keyed))
        ]


def test_finished_run_is_read_back(journal, url):
    """What finished is read back with its types and its bytes, by another journal of the same URL, and nothing runs."""
    ran = []
    given = order(journal, ran)

    with Journal(url) as again:
        assert repr(order(again, ran)) == repr(given)

    assert ran == ["look_up", "charge", "mail"]
    assert [step.status for step in journal.steps(RUN)] == ["done"] * 3


def test_interrupted_side_effect_blocks_and_a_person_decides(journal):
    """A side effect that was cut off is not repeated; a decision settles it, and the run ends."""
    ran = []
    with pytest.raises(Killed):
        order(journal, ran, die_at="charge")
    with pytest.raises(SideEffectRetryBlockedError):
        order(journal, ran)
    (record,) = journal.runs(status="blocked")

    journal.resolve(RUN, "charge", Done("by hand"), by="ops")
    given = order(journal, ran)

    assert (record.run_id, given[1]) == (RUN, "by hand")
    assert ran == ["look_up", "charge", "mail"]


def test_cleared_side_effect_runs(journal):
    """One that has not happened, as a person says, runs once more."""
    ran = []
    with pytest.raises(Killed):
        order(journal, ran, die_at="charge")
    journal.resolve(RUN, "charge", NotDone(), by="ops")

    order(journal, ran)

    assert ran.count("charge") == 2


def test_second_worker_is_refused(journal, url):
    """While one worker holds a run, another gets RunBusyError, which says until when."""
    with journal.run(RUN), Journal(url, clock=ManualClock()) as other, pytest.raises(RunBusyError) as busy:
        other.run(RUN).__enter__()

    assert busy.value.lease_ends_at > 0


def test_run_that_another_worker_begins_meanwhile_is_not_taken_for_damage(journal, monkeypatch):
    """Between a worker's look for the run and its own row, another creates it and does its steps: that is no damage."""
    look, ran = runs._locked, []

    def look_too_early(connection, run_id):
        monkeypatch.setattr(runs, "_locked", look)
        return look(connection, "not there yet")

    order(journal, ran)
    monkeypatch.setattr(runs, "_locked", look_too_early)
    order(journal, ran)

    assert runs._locked is look
    assert ran == ["look_up", "charge", "mail"]


def test_clock_of_a_worker_changes_nothing(url):
    """Whose lease has ended is told by the server's clock: a worker whose own is an hour ahead takes nothing over."""
    ahead, behind = ManualClock(), ManualClock()
    ahead.advance(3600)
    with Journal(url, clock=behind) as here, Journal(url, clock=ahead) as there, here.run(RUN):
        (record,) = there.runs()

    assert (record.status, record.holder is None) == ("running", False)


def test_text_that_no_column_takes_survives(journal):
    """NUL and lone surrogates, in names, errors and reasons, are kept or shown escaped, and stop nothing."""

    def body():
        raise ValueError("bad \x00 \ud800")

    failing = journaled(body, replay=safe, name="bad \x00 \ud800 name")
    caught = []
    with journal.run(RUN):
        with pytest.raises(ValueError, match="bad") as error:
            failing()
        caught.append(error.value)
        journaled(lambda: None, replay=safe, name="next")()
    with journal.run(RUN):
        with pytest.raises((ValueError, RecordedError)) as error:
            failing()
        caught.append(error.value)

    assert [str(error) for error in caught] == ["bad \x00 \ud800"] * 2


def test_many_runs_at_once(journal):
    """Thirty-two runs at once in one process: each ends, with all its steps."""
    charge = journaled(lambda number: number, replay=never, name="charge")

    async def work(number):
        async with journal.run(f"order-{number}"):
            return [charge(turn) for turn in range(4)]

    async def work_all():
        return await asyncio.gather(*(work(number) for number in range(32)))

    assert asyncio.run(work_all()) == [[0, 1, 2, 3]] * 32
    assert len(journal.runs(status="completed")) == 32
    assert {len(journal.steps(f"order-{number}")) for number in range(32)} == {4}


def test_schemas_are_journals_of_their_own(url):
    """Two schemas of one database hold two journals; a schema of another program is not touched."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA other; CREATE TABLE other.things (id int)")
    with Journal(url, schema="one") as one, Journal(url, schema="two") as two:
        order(one, [])
        assert (len(one.runs()), len(two.runs())) == (1, 0)
    with (
        Journal(url, schema="other") as other,
        pytest.raises(JournalUnavailableError, match="another program"),
    ):
        other.runs()


def test_newer_journal_is_refused(journal, url):
    """A journal that a newer version wrote is not touched."""
    journal.runs()
    administer(url, sql.SQL("UPDATE gnl.gnl_schema SET version = 99"))

    with Journal(url, schema="gnl", pooled=True) as again, pytest.raises(JournalVersionError):
        again.runs()


def test_damaged_row_is_named(journal, url):
    """A row that was changed by hand is an error that names it."""
    order(journal, [])
    administer(url, sql.SQL("UPDATE gnl.gnl_steps SET policy = 'safe' WHERE name = 'charge'"))

    with pytest.raises(JournalCorruptError, match="charge"):
        journal.steps(RUN)


@pytest.mark.parametrize(
    ("url", "remedy"),
    [
        ("postgresql://postgres@127.0.0.1:1/runs", "Start the server"),
        ("postgresql://postgres@/nothing?host={folder}", "createdb"),
    ],
)
def test_no_server_says_what_to_do(server_url, url, remedy):
    """A server that is not there, or lacks the database, is reported soon, with what to do and without the password."""
    folder = server_url.partition("host=")[2]
    with (
        Journal(url.format(folder=folder).replace("postgres@", "postgres:secret@")) as journal,
        pytest.raises(JournalUnavailableError, match=remedy) as caught,
    ):
        journal.runs()

    assert "secret" not in str(caught.value)


def test_a_file_has_no_schema(tmp_path):
    """Options of a server are refused for a file, where they would mean nothing."""
    with pytest.raises(ValueError, match="schema"):
        Journal(tmp_path / "runs.db", schema="gnl")
