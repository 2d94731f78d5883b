"""Runs to keep and to remove, and what the tables hold of them."""

import contextlib

import sqlalchemy as sa

from gnl_middleware import journaled, never, safe
from gnl_middleware.storage import schema


class Interrupted(BaseException):
    """The worker is stopped in the middle of a body."""


def job(journal, run_id, said="secret of ann", *, ends="completed", **options):
    """A run of two steps that ends as it is told."""

    @journaled(replay=safe)
    def look_up(text):
        return {"found": text}

    @journaled(replay=never)
    def send(text):
        if ends == "interrupted":
            raise Interrupted
        if ends == "failed":
            raise ValueError(text)
        return f"sent {text}"

    with contextlib.suppress(Interrupted, ValueError), journal.run(run_id, **options):
        look_up(said)
        send(said)


def age(journal, seconds, *run_ids):
    """Make runs as old as that."""
    runs = schema.runs
    its = runs.update().where(runs.c.run_id.in_(run_ids))
    journal._database().write(
        lambda connection: connection.execute(its.values(updated_at=runs.c.updated_at - seconds))
    )


def rows(journal, run_id):
    """How many rows each table holds of a run, where it holds any."""
    tables = [table for table in schema.metadata.tables.values() if "run_id" in table.c]

    def count(connection, table):
        return connection.scalar(
            sa.select(sa.func.count()).select_from(table).where(table.c.run_id == run_id)
        )

    counted = journal._database().read(lambda connection: {t.name: count(connection, t) for t in tables})
    return {name: number for name, number in counted.items() if number}


def statuses(journal, **conditions):
    """The status of each run that fits."""
    return {record.run_id: record.status for record in journal.runs(**conditions)}
