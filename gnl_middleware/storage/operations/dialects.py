"""What the databases say differently: inserts that may meet a row, and whose time it is."""

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

_Insert = sqlite.Insert | postgresql.Insert


def insert(dialect: str, table: sa.Table) -> _Insert:
    """An insert that can say what to do where the row is there already."""
    return postgresql.insert(table) if dialect == "postgresql" else sqlite.insert(table)


def time_of(connection: sa.Connection, now: float) -> float:
    """Seconds since the epoch by the clock that all workers share: the server's, or this machine's for a file."""
    if connection.dialect.name != "postgresql":
        return now
    # Not the time at which the transaction began: it may have waited for a lock since.
    return float(connection.scalar(sa.select(sa.extract("epoch", sa.func.clock_timestamp()))) or now)
