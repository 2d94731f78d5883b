"""What stands in the tables of a journal, on any database."""

import sqlalchemy as sa

from gnl_middleware.storage.schema import blobs, resolutions


def payload_bytes(journal):
    """How many bytes the payloads of all runs take."""
    return _scalar(journal, sa.select(sa.func.coalesce(sa.func.sum(sa.func.length(blobs.c.body)), 0)))


def payloads_of(journal, run_id):
    """How many payloads are stored under a run."""
    return _scalar(journal, sa.select(sa.func.count()).where(blobs.c.run_id == run_id))


def decisions(journal, run_id):
    """What persons decided in a run: decision, who, and why."""
    told = sa.select(resolutions.c.decision, resolutions.c.decided_by, resolutions.c.note)
    its = told.where(resolutions.c.run_id == run_id)
    return journal._database().read(lambda connection: [tuple(row) for row in connection.execute(its)])


def write(journal, statement):
    """Change rows past the library."""
    journal._database().write(lambda connection: connection.execute(statement) and None)


def _scalar(journal, query):
    return journal._database().read(lambda connection: connection.scalar(query))
