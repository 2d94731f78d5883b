"""Runs whose record is removed: what goes, what stays in its place, and the proof of it.

A tombstone stays: the run's row, without what its caller said, so that a late redelivery cannot repeat the effects, and
with a newer fence, so that no worker that only fell silent can write an intent any more.
"""

import hashlib
from dataclasses import replace
from typing import Any

import sqlalchemy as sa

from gnl_middleware import codec
from gnl_middleware.errors import RunBusyError
from gnl_middleware.lease import shown
from gnl_middleware.storage.protocol import Removing, RunFilter, StoredRun
from gnl_middleware.storage.rows import stored_run
from gnl_middleware.storage.schema import (
    attempts,
    blobs,
    effects,
    removals,
    resolutions,
    run_metadata,
    runs,
    steps,
    tags,
)

from .dialects import time_of
from .forks import delete_payloads, shared_with_forks, sources_of
from .runs import condition
from .shared import with_workers, worker_of

_Removal = dict[str, Any]


def fitting_runs(connection: sa.Connection, wanted: RunFilter, now: float, age: float) -> list[StoredRun]:
    """The runs that may be meant, those first that changed longest ago.

    Args:
        connection: A connection.
        wanted: Which runs are meant.
        now: Time in seconds since the epoch; a server goes by its own clock.
        age: Seconds since which they must not have changed.
    """
    now = time_of(connection, now)
    wanted = replace(wanted, changed_before=now - age) if age else wanted
    its = sa.select(runs).where(condition(wanted)).order_by(runs.c.updated_at, runs.c.run_id)
    found = [stored_run(row, now) for row in connection.execute(its).mappings().all()]
    return with_workers(connection, found, now)


def measure_run(connection: sa.Connection, run_id: str) -> tuple[int, int, int]:
    """Steps, payloads, and bytes that the payloads of a run take."""
    size = sa.func.coalesce(sa.func.sum(sa.func.length(blobs.c.body)), 0)
    number, taken = connection.execute(sa.select(sa.func.count(), size).where(blobs.c.run_id == run_id)).one()
    counted = connection.scalar(sa.select(sa.func.count()).select_from(steps).where(steps.c.run_id == run_id))
    return counted or 0, number, int(taken)


def remove_run(connection: sa.Connection, run_id: str, removing: Removing) -> _Removal | None:
    """Remove the record of a run that nobody holds, and say what is gone; None for a run that there is not.

    Raises:
        RunBusyError: A worker holds it.
    """
    row = (
        connection.execute(sa.select(runs).where(runs.c.run_id == run_id).with_for_update())
        .mappings()
        .first()
    )
    if row is None:
        return None
    _scrub(connection, removing)
    done = connection.execute(_proof(run_id, removing)).mappings().first()
    if done is not None:
        return dict(done)  # by this very call, whose acknowledgement was lost
    removing = replace(removing, now=time_of(connection, removing.now))
    _check_nobody_holds(connection, row, removing)
    return _removed(connection, row, removing)


def prune_runs(
    connection: sa.Connection, unchanged: dict[str, float], statuses: tuple[str, ...], removing: Removing
) -> list[_Removal]:
    """Remove those runs that are still as they were found, and that nobody holds or is about to take.

    Args:
        connection: The writer's connection.
        unchanged: When each run was changed last, as it was found.
        statuses: Stored statuses that it may have.
        removing: The request.
    """
    its = sa.select(runs).where(runs.c.run_id.in_(unchanged)).order_by(runs.c.run_id)
    # A run that somebody has locked is being worked on.
    found = connection.execute(its.with_for_update(skip_locked=True)).mappings().all()
    _scrub(connection, removing)
    removing = replace(removing, now=time_of(connection, removing.now))
    removed: list[_Removal] = []
    for row in found:
        if (done := connection.execute(_proof(row["run_id"], removing)).mappings().first()) is not None:
            removed.append(dict(done))
        elif (
            row["updated_at"] == unchanged[row["run_id"]]
            and row["status"] in statuses
            and _held(connection, row, removing) is None
        ):
            removed.append(_removed(connection, row, removing))
    return removed


def forget_tombstones(connection: sa.Connection, unchanged: dict[str, float]) -> list[str]:
    """Remove tombstones with their proofs, if they are still as they were found; their run ids are new from then on.

    One that keeps the outcome of a once-per key stays.
    """
    keeps = sa.exists().where(steps.c.run_id == runs.c.run_id)
    its = sa.select(runs).where(runs.c.run_id.in_(unchanged), runs.c.status == "erased", ~keeps)
    its = its.order_by(runs.c.run_id)
    found = connection.execute(its.with_for_update(skip_locked=True)).mappings().all()
    gone = [row["run_id"] for row in found if row["updated_at"] == unchanged[row["run_id"]]]
    for table in (runs, removals):
        connection.execute(table.delete().where(table.c.run_id.in_(gone)))
    return gone


def list_removals(connection: sa.Connection, run_id: str) -> list[_Removal]:
    """The proofs of what was removed of a run, the earliest first."""
    its = sa.select(removals).where(removals.c.run_id == run_id).order_by(removals.c.removed_at)
    return [dict(row) for row in connection.execute(its).mappings()]


def _scrub(connection: sa.Connection, removing: Removing) -> None:
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql(f"PRAGMA secure_delete={'ON' if removing.scrub else 'OFF'}")


def _proof(run_id: str, removing: Removing) -> sa.Select[Any]:
    return sa.select(removals).where(removals.c.removal == removing.removal, removals.c.run_id == run_id)


def _held(connection: sa.Connection, row: sa.RowMapping, removing: Removing) -> sa.RowMapping | None:
    """The row that tells who is at the run: its own, or that of an attempt where several workers may be."""
    if not row["locked"]:
        return worker_of(connection, row["run_id"], removing.now, removing.is_dead)
    held = row["holder"] and row["lease_ends_at"] > removing.now and not removing.is_dead(row["holder"])
    return row if held else None


def _check_nobody_holds(connection: sa.Connection, row: sa.RowMapping, removing: Removing) -> None:
    if (held := _held(connection, row, removing)) is not None:
        ends = held["lease_ends_at"]
        raise RunBusyError(run_id=row["run_id"], holder=shown(held["holder"]), lease_ends_at=ends)


def _removed(connection: sa.Connection, row: sa.RowMapping, removing: Removing) -> _Removal:
    run_id = row["run_id"]
    kept = _owners_of_effects(connection, run_id) if removing.kind == "pruned" else []
    # Once per business key means for ever: what the owner of such a key gave is still asked for by other runs.
    keys = [step["key"] for step in kept]
    hashes = [digest for step in kept for digest in (step["arguments_hash"], step["value_hash"]) if digest]
    hashes += connection.scalars(sources_of(run_id, hashes)).all()
    gone_steps = (steps.c.run_id == run_id) & steps.c.key.not_in(keys)
    gone_blobs = (blobs.c.run_id == run_id) & blobs.c.hash.not_in(hashes) & ~shared_with_forks(run_id)
    proof = _prove(connection, removing, gone_steps, gone_blobs) | {"run_id": run_id, "steps_kept": len(kept)}
    connection.execute(removals.insert().values(proof))
    delete_payloads(connection, run_id, keep=hashes)
    for table, gone in ((steps, gone_steps), (effects, effects.c.window_run == run_id)):
        connection.execute(table.delete().where(gone))
    for table in (attempts, resolutions, tags, run_metadata):
        connection.execute(table.delete().where(table.c.run_id == run_id))
    tombstone = {
        "status": "erased",
        "attempts": 0,
        "fence": row["fence"] + 1,
        "holder": None,
        "lease_ends_at": 0.0,
        "input_digest": None,
        "metadata": codec.encode({}),
        "side_effects": sum(step["side_effect"] for step in kept),
        "forked_from": None,
        "effects": 1,
        "chain_head": None,
        "chain_rows": None,
        "updated_at": removing.now,
    }
    connection.execute(runs.update().where(runs.c.run_id == run_id).values(tombstone))
    return proof


def _owners_of_effects(connection: sa.Connection, run_id: str) -> list[dict[str, Any]]:
    owned = sa.exists().where(
        effects.c.window_run == "", effects.c.owner_run == steps.c.run_id, effects.c.owner_key == steps.c.key
    )
    its = sa.select(steps.c.key, steps.c.arguments_hash, steps.c.value_hash, steps.c.side_effect)
    found = connection.execute(its.where(steps.c.run_id == run_id, owned)).mappings()
    return [dict(row) for row in found]


def _prove(
    connection: sa.Connection,
    removing: Removing,
    gone_steps: sa.ColumnElement[bool],
    gone_blobs: sa.ColumnElement[bool],
) -> _Removal:
    keys = connection.scalars(sa.select(steps.c.key).where(gone_steps)).all()
    payloads = connection.execute(
        sa.select(blobs.c.hash, sa.func.length(blobs.c.body)).where(gone_blobs)
    ).all()
    hasher = hashlib.sha256()
    for name in (*sorted(keys), *sorted(digest for digest, _ in payloads)):
        hasher.update(f"{name}\n".encode())
    return {
        "removal": removing.removal,
        "kind": removing.kind,
        "removed_at": removing.now,
        "removed_by": removing.by,
        "note": removing.note,
        "steps": len(keys),
        "payloads": len(payloads),
        "bytes": sum(size for _, size in payloads),
        "digest": hasher.hexdigest(),
    }
