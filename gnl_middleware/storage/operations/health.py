"""What tells whether a database is fit to hold a journal; nothing here changes anything."""

from typing import Any

import sqlalchemy as sa

from gnl_middleware.storage.schema import blobs, runs, steps


def syncing(connection: sa.Connection) -> dict[str, str]:
    """The settings on which it depends whether an acknowledged write survives a crash, by name."""
    if connection.dialect.name == "postgresql":
        names = ("fsync", "synchronous_commit", "full_page_writes")
        return {name: str(connection.exec_driver_sql(f"SHOW {name}").scalar()) for name in names}
    return {"journal_mode": str(connection.exec_driver_sql("PRAGMA journal_mode").scalar())}


def counts(connection: sa.Connection) -> dict[str, int]:
    """How many runs, steps and payloads there are, and the bytes that the payloads take."""

    def number(table: sa.Table) -> int:
        return connection.scalar(sa.select(sa.func.count()).select_from(table)) or 0

    taken = connection.scalar(sa.select(sa.func.sum(sa.func.length(blobs.c.body)))) or 0
    return {"runs": number(runs), "steps": number(steps), "payloads": number(blobs), "bytes": int(taken)}


def newest(connection: sa.Connection) -> float:
    """The latest time that any run carries, in seconds since the epoch; 0 where there is none."""
    return connection.scalar(sa.select(sa.func.max(runs.c.updated_at))) or 0.0


def largest(connection: sa.Connection, limit: int) -> list[dict[str, Any]]:
    """The largest payloads as they are stored: run, step, what it is, and bytes."""
    size = sa.func.length(blobs.c.body).label("bytes")
    found: list[dict[str, Any]] = []
    for what in ("arguments", "value"):
        its = (
            sa.select(steps.c.run_id, steps.c.number, steps.c.name, size)
            .join(blobs, (blobs.c.run_id == steps.c.run_id) & (blobs.c.hash == steps.c[f"{what}_hash"]))
            .order_by(size.desc())
            .limit(limit)
        )
        found += [dict(row) | {"what": what} for row in connection.execute(its).mappings()]
    return sorted(found, key=lambda row: row["bytes"], reverse=True)[:limit]
