"""What leads from one version of the schema to the next; a migration, once released, is never changed.

Each names what it adds by itself: the tables of ``schema`` are those of today, and go on changing. That is all that is needed
here, so there is no migration framework, whose environment and version table every user would have to place beside those of
their own program.
"""

from collections.abc import Callable
from typing import Any, cast

import sqlalchemy as sa

from .protocol import metadata_digests
from .rows import metadata_of

_SECONDS = sa.Double
_of_2 = sa.MetaData()
_TAGS = sa.Table(
    "gnl_tags",
    _of_2,
    sa.Column("run_id", sa.Text, primary_key=True),
    sa.Column("tag", sa.Text, primary_key=True),
    sa.Index("gnl_tags_by_tag", "tag"),
    sqlite_with_rowid=False,
)
_METADATA = sa.Table(
    "gnl_metadata",
    _of_2,
    sa.Column("run_id", sa.Text, primary_key=True),
    sa.Column("digest", sa.Text, primary_key=True),
    sa.Index("gnl_metadata_by_digest", "digest"),
    sqlite_with_rowid=False,
)
_REMOVALS = sa.Table(
    "gnl_removals",
    _of_2,
    *[sa.Column(name, sa.Text, primary_key=True) for name in ("removal", "run_id")],
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("removed_at", _SECONDS, nullable=False),
    *[sa.Column(name, sa.Text, nullable=False) for name in ("removed_by", "note")],
    *[
        sa.Column(name, sa.BigInteger, nullable=False)
        for name in ("steps", "steps_kept", "payloads", "bytes")
    ],
    sa.Column("digest", sa.Text, nullable=False),
    sa.Index("gnl_removals_by_run", "run_id"),
    sqlite_with_rowid=False,
)
_RUNS = sa.Table("gnl_runs", _of_2, sa.Column("run_id", sa.Text), sa.Column("metadata", sa.LargeBinary))


def _to_2(connection: sa.Connection) -> None:
    _add_claims(connection)
    _add_retention(connection)
    _add_forks(connection)
    _add_heads(connection)


def _add_claims(connection: sa.Connection) -> None:
    """Runs without a lock: each call is claimed, and several attempts go on at once."""
    _add(connection, "gnl_runs", sa.Column("locked", sa.BigInteger, nullable=False, server_default="1"))
    _add(connection, "gnl_attempts", sa.Column("lease_ends_at", _SECONDS))
    _add(connection, "gnl_steps", sa.Column("holder", sa.Text))
    _add(connection, "gnl_steps", sa.Column("claimed_until", _SECONDS))
    _index(connection, "gnl_runs_by_time", "gnl_runs", "updated_at")


def _add_retention(connection: sa.Connection) -> None:
    """Tags, metadata that can be searched, proof of what was removed, and what attempts did not spend again."""
    for table in (_TAGS, _METADATA, _REMOVALS):
        table.create(connection)
    for column in ("steps_ran", "steps_read_back", "tokens_not_spent"):
        _add(connection, "gnl_attempts", sa.Column(column, sa.BigInteger))
    _add(connection, "gnl_attempts", sa.Column("seconds_not_spent", _SECONDS))
    for row in connection.execute(sa.select(_RUNS)).all():
        digests = metadata_digests(metadata_of(row.metadata))
        found = [{"run_id": row.run_id, "digest": digest} for digest in digests]
        if found:
            connection.execute(_METADATA.insert(), found)


def _add_forks(connection: sa.Connection) -> None:
    """Runs that begin as a copy of another one, whose payloads they share."""
    _add(connection, "gnl_runs", sa.Column("forked_from", sa.Text))
    _add(connection, "gnl_runs", sa.Column("effects", sa.BigInteger, nullable=False, server_default="1"))
    _add(connection, "gnl_steps", sa.Column("origin", sa.Text))
    _add(connection, "gnl_steps", sa.Column("payloads", sa.Text))
    _index(connection, "gnl_steps_by_payloads", "gnl_steps", "payloads")


def _add_heads(connection: sa.Connection) -> None:
    """The head of the chain over a run's rows; runs from before have none until an attempt leaves them."""
    _add(connection, "gnl_runs", sa.Column("chain_head", sa.Text))
    _add(connection, "gnl_runs", sa.Column("chain_rows", sa.BigInteger))
    _add(connection, "gnl_attempts", sa.Column("links", sa.LargeBinary))


def _to_3(connection: sa.Connection) -> None:
    """Payloads that are stored as what they have besides another one; those from before are all stored whole."""
    _add(connection, "gnl_blobs", sa.Column("source", sa.Text))


MIGRATIONS: dict[int, Callable[[sa.Connection], None]] = {1: _to_2, 2: _to_3}
"""What leads from version N to N+1, by N. A new one adds to the end; one that was released never changes."""


def _add(connection: sa.Connection, table: str, column: sa.Column[Any]) -> None:
    described = sa.schema.CreateColumn(column).compile(dialect=connection.dialect)
    connection.exec_driver_sql(f"ALTER TABLE {_name(connection, table)} ADD COLUMN {described}")


def _index(connection: sa.Connection, index: str, table: str, columns: str) -> None:
    connection.exec_driver_sql(f"CREATE INDEX {index} ON {_name(connection, table)} ({columns})")


def _name(connection: sa.Connection, table: str) -> str:
    """The table within the journal's schema: what is written out is not translated."""
    schemas = cast("dict[None, str]", connection.get_execution_options().get("schema_translate_map") or {})
    schema = schemas.get(None)
    return f"{connection.dialect.identifier_preparer.quote(schema)}.{table}" if schema else table
