"""Bring a journal's schema up to date; ordered, once, and never backwards."""

import sqlalchemy as sa

from gnl_middleware.errors import JournalUnavailableError, JournalVersionError

from .migrations import MIGRATIONS
from .schema import SCHEMA_VERSION, metadata, schema_table


def found_version(connection: sa.Connection, url: str, schema: str | None = None) -> int | None:
    """The schema version of a journal; None for a database (or its schema) that holds nothing yet. Changes nothing.

    Raises:
        JournalVersionError: A newer version of the library wrote this journal, or none that we know of.
        JournalUnavailableError: It is the database of another program.
    """
    tables = sa.inspect(connection).get_table_names(schema=schema)
    if not tables:
        return None
    if schema_table.name not in tables:
        raise JournalUnavailableError(
            url=url,
            cause_text="it is the database of another program",
            remedy="It is no journal, and none is made of it: give another path.",
        )
    found = connection.scalar(sa.select(schema_table.c.version))
    if not isinstance(found, int) or not 1 <= found <= SCHEMA_VERSION:
        raise JournalVersionError(
            url=url, found=found if isinstance(found, int) else 0, supported=SCHEMA_VERSION
        )
    return found


def migrate(connection: sa.Connection, url: str, schema: str | None = None) -> None:
    """Create the tables or bring them up to date, inside the caller's exclusive transaction.

    Raises:
        JournalVersionError: A newer version of the library wrote this journal, or none that we know of.
        JournalUnavailableError: It is the database of another program.
    """
    found = found_version(connection, url, schema)
    if found is None:
        metadata.create_all(connection)
        connection.execute(schema_table.insert().values(version=SCHEMA_VERSION, synced_at=0.0))
        return
    for version in range(found, SCHEMA_VERSION):
        MIGRATIONS[version](connection)
        connection.execute(schema_table.update().values(version=version + 1))
