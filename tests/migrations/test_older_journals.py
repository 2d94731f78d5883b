"""A journal that an older version wrote opens in this one; one that a newer version wrote is refused.

``version_N.*.sql`` are journals that version N wrote, as the databases' own tools dump them. Each holds a completed run
(order-8) and one that was killed in its charge (order-7).
"""

import pytest
import sqlalchemy as sa

from gnl_middleware import (
    Done,
    Journal,
    JournalVersionError,
    SideEffectRetryBlockedError,
    journaled,
    keyed,
    never,
    safe,
)
from gnl_middleware.storage import migrate, postgres, sqlite
from gnl_middleware.storage.address import parse
from gnl_middleware.storage.schema import SCHEMA_VERSION
from tests.workers import programs

OLDER = range(1, SCHEMA_VERSION)
WITH_HEADS = 2
"""The version from which on runs have the head of a chain."""


def order(journal, run_id, **options):
    """The order that the older version worked on; gives what its calls gave, none of which may run."""

    def body():
        pytest.fail("ran again")

    with journal.run(run_id, **options) as run:
        number = run.random()
        calls = [("look_up", safe), ("charge", never), ("mail", keyed)]
        return [number, *(journaled(body, replay=label, name=name)() for name, label in calls)]


def version_of(journal):
    """The schema version that a journal has now."""
    return journal._database().read(
        lambda connection: migrate.found_version(connection, "", _schema(journal))
    )


def _schema(journal):
    return journal._database().address.schema


def shape_of(place):
    """The tables of a journal: columns with their types, and indexes."""
    with Journal(place) as journal:
        journal.runs()

        def described(connection):
            found, schema = sa.inspect(connection), _schema(journal)
            return {
                table: (
                    {
                        column["name"]: (str(column["type"]), column["nullable"])
                        for column in found.get_columns(table, schema=schema)
                    },
                    sorted(
                        (index["name"], *index["column_names"])
                        for index in found.get_indexes(table, schema=schema)
                    ),
                    found.get_pk_constraint(table, schema=schema)["constrained_columns"],
                )
                for table in found.get_table_names(schema=schema)
            }

        return journal._database().read(described)


@pytest.mark.parametrize("version", OLDER)
def test_finished_run_is_read_back(older, version):
    """What an older version finished is read back by this one: nothing runs, and the values are the same."""
    with Journal(older(version)) as journal:
        number, *rest = order(journal, "order-8")

        assert 0.0 <= number < 1.0
        assert rest == ["looked up", {"charged": "order-8", "raw": b"\x00\xff"}, "x" * 3000]
        assert journal.runs()[0].metadata == {"by": f"version {version}"}
        assert version_of(journal) == SCHEMA_VERSION


@pytest.mark.parametrize("version", OLDER)
def test_interrupted_run_goes_on(older, version):
    """What an older version was killed in blocks, is decided and goes on; it keeps the lock that it was created with."""
    with Journal(older(version)) as journal:
        assert [record.run_id for record in journal.runs(status="interrupted")] == ["order-7"]
        with pytest.raises(ValueError, match="lock=True"):
            order(journal, "order-7", lock=False)
        with pytest.raises(SideEffectRetryBlockedError):
            order(journal, "order-7")
        journal.resolve("order-7", "charge", Done("by hand"), by="ops")

        with journal.run("order-7") as run:
            run.random()
            journaled(lambda: "", replay=safe, name="look_up")()
            assert journaled(lambda: "", replay=never, name="charge")() == "by hand"
            assert journaled(lambda: "mailed", replay=keyed, name="mail")() == "mailed"


@pytest.mark.parametrize("version", OLDER)
def test_migrated_journal_has_the_shape_of_a_new_one(older, version, place, tmp_path):
    """Tables, columns, types and indexes are those of a journal that this version creates."""
    fresh = f"{place}&schema=fresh" if place.startswith("postgresql://") else str(tmp_path / "fresh.db")

    assert shape_of(older(version)) == shape_of(fresh)


@pytest.mark.parametrize("version", OLDER)
def test_workers_that_migrate_at_once(older, version, effects, crowd):
    """Workers that open an older journal at the same moment migrate it once, and all of them work."""
    place = older(version)
    racers = crowd(programs.race, *[(place, effects, 1, {"lock": False})] * 3)
    assert [racer.hear() for racer in racers] == ["ready"] * 3
    for racer in racers:
        racer.tell()

    said = [racer.hear() for racer in racers]
    assert [len(each) for each in said] == [5] * 3
    with Journal(place) as journal:
        assert version_of(journal) == SCHEMA_VERSION


def test_failed_migration_leaves_the_journal_as_it_was(older, monkeypatch):
    """A migration that fails half way changes nothing: the version that wrote the journal can go on with it."""
    place = older(1)

    monkeypatch.setattr(migrate, "MIGRATIONS", {**migrate.MIGRATIONS, 1: _fail_after_migrating})
    with Journal(place) as journal, pytest.raises(Exception, match="half way"):
        journal.runs()
    monkeypatch.undo()

    with Journal(place) as journal:
        assert len(journal.runs()) == 2


def _fail_after_migrating(connection, first=migrate.MIGRATIONS[1]):
    first(connection)
    raise RuntimeError("half way")


def test_older_version_refuses_a_migrated_journal(older, monkeypatch):
    """Once migrated, the version that wrote the journal refuses it, and says so, instead of writing rows without claims."""
    place = older(1)
    with Journal(place) as journal:
        journal.runs()
    for module in (migrate, _link_module(place)):
        monkeypatch.setattr(module, "SCHEMA_VERSION", 1, raising=False)

    with Journal(place) as journal, pytest.raises(JournalVersionError) as caught:
        journal.runs()

    assert (caught.value.found, caught.value.supported) == (SCHEMA_VERSION, 1)


def _link_module(place):
    return sqlite if parse(place).path else postgres


def test_migrations_are_one_ordered_list():
    """There is a way from each version to the next, up to this one."""
    assert sorted(migrate.MIGRATIONS) == list(OLDER)


@pytest.mark.parametrize("version", [each for each in OLDER if each < WITH_HEADS])
def test_older_runs_get_a_head(older, version):
    """A run from before there were heads has none until an attempt leaves it; from then on one covers all of its rows."""
    with Journal(older(version)) as journal:
        before = journal.verify_integrity("order-8")
        order(journal, "order-8")
        after = journal.verify_integrity("order-8")

    assert (before.head, before.problems, before.covered) == (None, (), 0)
    assert (after.problems, after.later, after.covered) == ((), (), len(before.later) + 1)


@pytest.mark.parametrize("version", [each for each in OLDER if each >= WITH_HEADS])
def test_older_heads_still_fit(older, version):
    """The head that an older version made of a run covers the same rows here, before and after an attempt leaves it."""
    with Journal(older(version)) as journal:
        before = journal.verify_integrity("order-8")
        order(journal, "order-8")
        after = journal.verify_integrity("order-8")

    assert (before.problems, before.later) == ((), ())
    assert (after.problems, after.later, after.covered) == ((), (), before.covered + 1)
