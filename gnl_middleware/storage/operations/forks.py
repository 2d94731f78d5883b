"""Runs that begin as a copy of another one, and payloads that several runs share."""

from collections.abc import Collection
from typing import Any

import sqlalchemy as sa

from gnl_middleware.errors import ForkRefusedError, RunBusyError, RunErasedError, RunNotFoundError
from gnl_middleware.lease import shown
from gnl_middleware.model import StoredStep
from gnl_middleware.storage.bounds import note_bound
from gnl_middleware.storage.protection import protection_of
from gnl_middleware.storage.protocol import Edit, Effect, Forking, Owner, Payload
from gnl_middleware.storage.rows import whole_row
from gnl_middleware.storage.schema import blobs, effects, resolutions, run_metadata, runs, steps, tags

from .dialects import time_of
from .runs import hold_runs, last_completed, read_run
from .steps import load_steps, put_payloads


def fork_run(connection: sa.Connection, forking: Forking) -> None:
    """Begin a run as a copy of another one, as it stands now; nobody holds it until somebody opens it.

    Raises:
        RunNotFoundError: There is no run to copy.
        RunErasedError: The run, or one of the name that the fork is to get, was erased.
        RunBusyError: A worker holds the run, so that it changes.
        ForkRefusedError: There is a run of that name, or the plan cannot be carried out.
    """
    hold_runs(connection, [forking.run_id, forking.new_run_id])
    row = _source(connection, forking)
    if _is_made(connection, forking):
        return
    completed = last_completed(connection, forking.run_id)
    steps_now = load_steps(connection, forking.run_id, forking.now)
    rows, edits = forking.plan(steps_now, completed)
    # Whoever is erased while this is committed must find that its payloads are shared.
    hold_runs(connection, {step.payloads or "" for step in rows} - {forking.run_id})
    connection.execute(runs.insert().values(_run_row(connection, row, forking, rows)))
    if rows:
        protection = protection_of(connection)
        connection.execute(steps.insert(), [whole_row(step, protection) for step in rows])
    put_payloads(
        connection, [payload for step in rows if step.payloads is None for payload in _payloads(step)]
    )
    _carry_effects(connection, forking, {step.key for step in rows})
    for table in (tags, run_metadata):
        its = sa.select(table).where(table.c.run_id == forking.run_id)
        marks = [dict(mark) for mark in connection.execute(its).mappings()]
        if marks:
            connection.execute(table.insert(), [mark | {"run_id": forking.new_run_id} for mark in marks])
    if edits:
        connection.execute(resolutions.insert(), [_audit(connection, edit, forking) for edit in edits])


def _source(connection: sa.Connection, forking: Forking) -> sa.RowMapping:
    row = connection.execute(sa.select(runs).where(runs.c.run_id == forking.run_id)).mappings().first()
    if row is None:
        raise RunNotFoundError(run_id=forking.run_id, journal=forking.journal)
    if row["status"] == "erased":
        raise RunErasedError(run_id=forking.run_id)
    run = read_run(connection, forking.run_id, forking.now)
    if run is not None and run.holder and run.leased and not forking.is_dead(run.holder):
        raise RunBusyError(run_id=forking.run_id, holder=shown(run.holder), lease_ends_at=run.lease_ends_at)
    return row


def _is_made(connection: sa.Connection, forking: Forking) -> bool:
    """Whether the fork is there already, made by this very call, whose acknowledgement was lost."""
    found = connection.execute(sa.select(runs).where(runs.c.run_id == forking.new_run_id)).mappings().first()
    if found is None:
        return False
    if found["status"] == "erased":
        raise RunErasedError(run_id=forking.new_run_id)
    if (found["forked_from"], found["created_at"]) == (forking.run_id, forking.now):
        return True
    raise ForkRefusedError(
        run_id=forking.run_id,
        new_run_id=forking.new_run_id,
        reason="there is a run of that name already",
        journal=forking.journal,
    )


def _run_row(
    connection: sa.Connection, source: sa.RowMapping, forking: Forking, rows: Collection[StoredStep]
) -> dict[str, Any]:
    # The fence is none that a new run has: whoever opens it is asked for the same input.
    return dict(source) | {
        "run_id": forking.new_run_id,
        "status": "running",
        "attempts": 0,
        "created_at": forking.now,
        "updated_at": time_of(connection, forking.now),
        "completed_at": None,
        "fence": 1,
        "holder": None,
        "lease_ends_at": 0.0,
        "side_effects": sum(step.side_effect for step in rows),
        "chain_head": None,
        "chain_rows": None,
        "forked_from": forking.run_id,
        "effects": int(forking.effects),
    }


def _payloads(step: StoredStep) -> list[Payload]:
    found = [Payload(step.run_id, step.arguments_hash, step.arguments)]
    if step.value_hash is not None and step.value is not None:
        found.append(Payload(step.run_id, step.value_hash, step.value))
    return found


def _carry_effects(connection: sa.Connection, forking: Forking, kept: Collection[str]) -> None:
    """What may happen once in the run may happen once in its fork; what may in the whole journal stays the other's."""
    own = (effects.c.window_run == forking.run_id) & (effects.c.owner_run == forking.run_id)
    found = connection.execute(sa.select(effects).where(own)).mappings().all()
    names = {"window_run": forking.new_run_id, "owner_run": forking.new_run_id}
    if carried := [dict(row) | names for row in found if row["owner_key"] in kept]:
        connection.execute(effects.insert(), carried)


def _audit(connection: sa.Connection, edit: Edit, forking: Forking) -> dict[str, Any]:
    return {
        "id": edit.id,
        "run_id": forking.new_run_id,
        "key": edit.key,
        "token": edit.token,
        "decision": "edited",
        "value_hash": edit.value_hash,
        "decided_by": forking.by,
        "note": protection_of(connection).hidden_text(forking.note, *note_bound(edit.id)),
        "decided_at": forking.now,
    }


def effect_owner(connection: sa.Connection, effect: Effect) -> Owner | None:
    """Who performs a piece of business that may happen once, or has performed it; None where nobody has begun to."""
    at = (effects.c.window_run == effect.window_run) & (effects.c.tool == effect.tool)
    its = sa.select(effects.c.owner_run, effects.c.owner_key).where(at, effects.c.digest == effect.digest)
    found = connection.execute(its).first()
    return None if found is None else Owner(found.owner_run, found.owner_key)


def shared_with_forks(run_id: str) -> sa.ColumnElement[bool]:
    """The condition under which a payload of ``gnl_blobs`` is one of this run that a step of another run uses."""
    return (blobs.c.run_id == run_id) & blobs.c.hash.in_(_needed(run_id, steps.c.payloads == run_id))


def delete_payloads(connection: sa.Connection, run_id: str, keep: Collection[str] = ()) -> int:
    """Delete the payloads of a run whose steps are about to be deleted; how many are gone.

    Those that the steps of its forks share are spared. And what only this run still used of a run that was erased before
    goes with it: nothing of an erased run outlives the last fork that needs it.

    Args:
        connection: The writer's connection; the run's steps still stand.
        run_id: The run.
        keep: Hashes of its own payloads to spare as well.
    """
    of_run = steps.alias("of_run")
    owners = sa.select(of_run.c.payloads).where(of_run.c.run_id == run_id, of_run.c.payloads.is_not(None))
    found = set(connection.scalars(owners.distinct()))
    hold_runs(connection, {run_id, *found})
    kept = [*keep, *connection.scalars(sources_of(run_id, keep))]
    own = (blobs.c.run_id == run_id) & blobs.c.hash.not_in(kept) & ~shared_with_forks(run_id)
    gone = connection.execute(blobs.delete().where(own)).rowcount
    for owner in found:
        by_this = (steps.c.run_id == run_id) & (steps.c.payloads == owner)
        of_owner = (steps.c.payloads == owner) | ((steps.c.run_id == owner) & steps.c.payloads.is_(None))
        by_another = (steps.c.run_id != run_id) & of_owner
        its = blobs.c.hash.in_(_needed(owner, by_this)) & blobs.c.hash.not_in(_needed(owner, by_another))
        its &= blobs.c.run_id == owner
        gone += connection.execute(blobs.delete().where(its)).rowcount
    return gone


def sources_of(run_id: str, hashes: Any) -> sa.Select[tuple[Any]]:
    """The hashes of what these payloads of a run are spliced from; it is stored whole, so there is no more behind it."""
    spliced = blobs.alias("spliced")
    its = (spliced.c.run_id == run_id) & spliced.c.hash.in_(hashes) & spliced.c.source.is_not(None)
    return sa.select(spliced.c.source).where(its)


def _needed(run_id: str, of: sa.ColumnElement[bool]) -> sa.CompoundSelect[tuple[Any]]:
    """The hashes of the payloads of a run that these steps cannot be read without."""
    return sa.union(*_asked_and_given(of), sources_of(run_id, _hashes(of)))


def _hashes(of: sa.ColumnElement[bool]) -> sa.CompoundSelect[tuple[Any]]:
    """The hashes of the arguments and values of these steps; asked once, not for each payload."""
    return sa.union(*_asked_and_given(of))


def _asked_and_given(of: sa.ColumnElement[bool]) -> tuple[sa.Select[tuple[Any]], sa.Select[tuple[Any]]]:
    values = sa.select(steps.c.value_hash).where(of, steps.c.value_hash.is_not(None))
    return sa.select(steps.c.arguments_hash).where(of), values
