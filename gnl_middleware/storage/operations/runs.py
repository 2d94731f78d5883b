"""Runs and attempts: taken, renewed, left and listed."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import sqlalchemy as sa

from gnl_middleware.errors import JournalCorruptError, RunBusyError, RunErasedError, RunInputMismatchError
from gnl_middleware.lease import shown
from gnl_middleware.storage.bounds import attempt_bound, note_bound
from gnl_middleware.storage.protection import protection_of
from gnl_middleware.storage.protocol import Leaving, Opened, Opening, RunFilter, StoredRun
from gnl_middleware.storage.rows import attempt_number, stored_run
from gnl_middleware.storage.schema import (
    attempts,
    blobs,
    resolutions,
    run_metadata,
    runs,
    schema_table,
    steps,
    tags,
)

from . import lease_statements as statements
from .chains import renew_chain
from .dialects import insert, time_of
from .shared import leave_shared, take_shared, with_workers

_Row = Mapping[Any, Any]


def take_run(connection: sa.Connection, opening: Opening) -> Opened:
    """Take the run's lease and begin an attempt.

    Raises:
        RunBusyError: Another holder's lease has not ended, and the holder is not known to be dead.
        RunInputMismatchError: The run was started with another input.
        RunErasedError: The run was erased.

    Where the run was created with another ``locked`` than is asked for, nothing is taken.
    """
    opening = replace(opening, now=time_of(connection, opening.now))
    row = _locked(connection, opening.run_id) or _created(connection, opening)
    stored = stored_run(row, opening.now)  # raises where the row is damaged
    if stored.locked is not opening.locked and stored.status != "erased":
        return Opened(0, 0, 0, locked=stored.locked)
    if not opening.locked:
        taken = _begin_beside(connection, opening, row)
        return replace(taken, forked_from=row["forked_from"], effects=row["effects"] != 0)
    if row["fence"] == 0:
        fence, attempt, completed, before = 1, 1, 0, "running"
        _put_marks(connection, opening)
    elif row["holder"] == opening.holder:
        # Taken already, and the acknowledgement was lost: each hold has a name of its own.
        completed = last_completed(connection, opening.run_id)
        return _opened(row, row["fence"], row["attempts"], completed, "running")
    else:
        _check_free(connection, row, opening)
        fence, attempt, completed = (
            row["fence"] + 1,
            row["attempts"] + 1,
            last_completed(connection, opening.run_id),
        )
        before = row["status"]
        connection.execute(_end_attempts_left_open(opening))
    if before == "erased":
        _begin_anew(connection, opening)
    lease = {"holder": opening.holder, "lease_ends_at": opening.now + opening.lease}
    begun = {"status": "running", "attempt": attempt, "fence": fence, "now": opening.now}
    known = {"at_run": opening.run_id, "input_digest": _kept_input(row, opening)}
    statements.TAKE.run(connection, [{**lease, **begun, **known}])
    statements.BEGIN.run(connection, [{**lease, **begun, **known}])
    return _opened(row, fence, attempt, completed, before)


def _opened(row: _Row, fence: int, attempt: int, completed: int, before: str) -> Opened:
    return Opened(
        fence=fence,
        attempt=attempt,
        completed_before=completed,
        status_before=before,
        forked_from=row["forked_from"],
        effects=row["effects"] != 0,
    )


def look_at_run(connection: sa.Connection, opening: Opening) -> Opened:
    """The run as it stands, whoever holds it; an unknown one has no attempt.

    Raises:
        RunInputMismatchError: The run was started with another input.
        RunErasedError: The run was erased.
    """
    its = sa.select(runs).where(runs.c.run_id == opening.run_id)
    row = connection.execute(its).mappings().first()
    if row is None:
        return Opened(fence=0, attempt=0, completed_before=0)
    stored_run(row, opening.now)  # raises where the row is damaged
    _check_same(row, opening)
    completed = last_completed(connection, opening.run_id)
    return Opened(row["fence"], row["attempts"], completed, status_before=row["status"])


def _begin_beside(connection: sa.Connection, opening: Opening, row: _Row) -> Opened:
    """Begin an attempt of a run without a lock, whoever else is at it."""
    _check_free(connection, row, opening)
    if row["status"] == "erased":
        _begin_anew(connection, opening)
    elif row["fence"] == 0:
        _put_marks(connection, opening)
    return take_shared(connection, opening, row, last_completed(connection, opening.run_id))


def _locked(connection: sa.Connection, run_id: str) -> _Row | None:
    """The row of a run, which nobody else changes until the transaction ends."""
    found = statements.LOCKED.fetch(connection, {"at_run": run_id})
    return dict(zip(statements.COLUMNS, found[0], strict=True)) if found else None


def hold_runs(connection: sa.Connection, run_ids: Iterable[str]) -> None:
    """Let nobody take these runs over until the transaction ends: a fence that was checked must stay.

    Always in one order, so that two workers cannot wait for each other. SQLite's transactions are alone from the start.
    """
    if connection.dialect.name == "postgresql" and (held := sorted(filter(None, run_ids))):
        its = sa.select(runs.c.run_id).where(runs.c.run_id.in_(held)).order_by(runs.c.run_id)
        connection.execute(its.with_for_update(key_share=True)).all()


def last_completed(connection: sa.Connection, run_id: str) -> int:
    """The last attempt of a run that ended cleanly, or 0.

    Raises:
        JournalCorruptError: The run and its attempts disagree about it: which failures the agent went on from is unknown.
    """
    ended_cleanly = (attempts.c.run_id == runs.c.run_id) & (attempts.c.status == "completed")
    its = (
        sa.select(runs.c.status, runs.c.completed_at, attempts.c.attempt, attempts.c.ended_at)
        .select_from(runs.outerjoin(attempts, ended_cleanly))
        .where(runs.c.run_id == run_id)
    )
    found = connection.execute(its).all()
    numbers = [attempt_number(run_id, row.attempt) for row in found if row.attempt is not None]
    if found and found[0].status != "erased":
        completed_at = found[0].completed_at
        if completed_at not in ({row.ended_at for row in found} if numbers else {None}):
            problem = "it and its attempts do not tell the same of when it was completed"
            raise JournalCorruptError(where=f"run {run_id!r}", problem=problem)
    return max(numbers, default=0)


def _created(connection: sa.Connection, opening: Opening) -> _Row:
    """The row of a new run; where two workers create it at once, the second one meets the first one's."""
    if statements.ANY_STEP.fetch(connection, {"at_run": opening.run_id}):
        # Another worker may have created it and begun a step since we looked: then its row is there, too.
        if (row := _locked(connection, opening.run_id)) is not None:
            return row
        raise JournalCorruptError(
            where=f"run {opening.run_id!r}", problem="it has steps, but no row of its own"
        )
    known = {"run_id": opening.run_id, "status": "running", "metadata": opening.metadata}
    empty = {"attempts": 0, "fence": 0, "lease_ends_at": 0.0, "locked": int(opening.locked)}
    times = {"created_at": opening.now, "updated_at": opening.now}
    statements.CREATE.run(connection, [{**known, **empty, **times, "input_digest": opening.input_digest}])
    if (row := _locked(connection, opening.run_id)) is None:
        raise JournalCorruptError(
            where=f"run {opening.run_id!r}", problem="its row was written and is not found"
        )
    return row


def _begin_anew(connection: sa.Connection, opening: Opening) -> None:
    """What a new run gets, for one whose record was removed."""
    new = {"created_at": opening.now, "metadata": opening.metadata, "completed_at": None}
    new["locked"] = int(opening.locked)
    connection.execute(runs.update().where(runs.c.run_id == opening.run_id).values(new))
    _put_marks(connection, opening)


def _put_marks(connection: sa.Connection, opening: Opening) -> None:
    """By what the run is found."""
    words = [{"run_id": opening.run_id, "tag": tag} for tag in opening.tags]
    digests = [{"run_id": opening.run_id, "digest": digest} for digest in opening.metadata_digests]
    for table, found in ((tags, words), (run_metadata, digests)):
        if found:
            connection.execute(insert(connection.dialect.name, table).on_conflict_do_nothing(), found)


def _check_free(connection: sa.Connection, row: _Row, opening: Opening) -> None:
    if row["holder"] and row["lease_ends_at"] > opening.now and not opening.is_dead(row["holder"]):
        raise RunBusyError(
            run_id=opening.run_id,
            holder=shown(row["holder"]),
            held_since=_began(connection, row),
            lease_ends_at=row["lease_ends_at"],
        )
    _check_same(row, opening)


def _check_same(row: _Row, opening: Opening) -> None:
    if row["status"] == "erased" and not opening.restart:
        raise RunErasedError(run_id=opening.run_id)
    recorded, asked = row["input_digest"], opening.input_digest
    if recorded and asked and recorded != asked:
        raise RunInputMismatchError(run_id=opening.run_id, recorded=recorded, asked=asked)


def _began(connection: sa.Connection, row: _Row) -> float | None:
    at = (attempts.c.run_id == row["run_id"]) & (attempts.c.attempt == row["attempts"])
    return connection.scalar(sa.select(attempts.c.started_at).where(at))


def _kept_input(row: _Row | None, opening: Opening) -> str | None:
    return (row["input_digest"] if row is not None else None) or opening.input_digest


def _end_attempts_left_open(opening: Opening) -> sa.Update:
    still_open = (attempts.c.run_id == opening.run_id) & (attempts.c.status == "running")
    return attempts.update().where(still_open).values(status="interrupted", ended_at=opening.now)


def renew_lease(connection: sa.Connection, run_id: str, fence: int, now: float, seconds: float) -> bool:
    """Prolong the lease from now on if it is still ours."""
    ends_at = time_of(connection, now) + seconds
    mine = (runs.c.run_id == run_id) & (runs.c.fence == fence) & runs.c.holder.is_not(None)
    return connection.execute(runs.update().where(mine).values(lease_ends_at=ends_at)).rowcount == 1


def leave_run(connection: sa.Connection, leaving: Leaving) -> bool:
    """Give the lease back and note how the attempt ended; False if the lease is no longer ours."""
    if not leaving.locked:
        return leave_shared(connection, leaving)
    leaving = replace(leaving, now=time_of(connection, leaving.now))
    at = {"at_run": leaving.run_id, "at_attempt": leaving.attempt, "at_fence": leaving.fence}
    leave = statements.LEAVE_COMPLETED if leaving.status == "completed" else statements.LEAVE
    ours = leave.run(connection, [{**at, "status": leaving.status, "now": leaving.now}]) == 1
    # An attempt that lost its lease has not ended the run, whatever its own code thinks.
    ended = leaving.status if ours and leaving.status != "running" else "interrupted"
    error = protection_of(connection).hidden_text(
        leaving.error, *attempt_bound(leaving.run_id, leaving.attempt)
    )
    spared = {**dict.fromkeys(statements.SPARED), **leaving.spared}
    statements.END.run(connection, [{**at, **spared, "status": ended, "now": leaving.now, "error": error}])
    if ours and leaving.readable:
        renew_chain(connection, leaving.run_id)
    return ours


def read_run(connection: sa.Connection, run_id: str, now: float) -> StoredRun | None:
    """One run, held or not at this time."""
    row = connection.execute(sa.select(runs).where(runs.c.run_id == run_id)).mappings().first()
    if row is None:
        return None
    now = time_of(connection, now)
    return with_workers(connection, [stored_run(row, now)], now)[0]


def list_runs(connection: sa.Connection, wanted: RunFilter, now: float) -> list[StoredRun]:
    """The runs that are meant, the latest first, held or not at this time."""
    now = time_of(connection, now)
    fitting = condition(wanted)
    order = (runs.c.updated_at.desc(), runs.c.run_id)
    its = sa.select(runs).where(fitting).order_by(*order).limit(wanted.limit)
    # Fetched whole first, as in ``load_steps``.
    found = [stored_run(row, now) for row in connection.execute(its).mappings().all()]
    # Of these runs only: whoever asks for twenty must not wait for the tags of all.
    listed = sa.select(runs.c.run_id).where(fitting).order_by(*order).limit(wanted.limit)
    words = connection.execute(sa.select(tags).where(tags.c.run_id.in_(listed)).order_by(tags.c.tag)).all()
    tagged: dict[str, list[str]] = {}
    for word in words:
        tagged.setdefault(word.run_id, []).append(word.tag)
    found = [replace(run, tags=tuple(tagged.get(run.run_id, ()))) for run in found]
    return with_workers(connection, found, now)


def condition(wanted: RunFilter) -> sa.ColumnElement[bool]:
    """What a filter says, with every value a bound parameter."""
    size = sa.select(sa.func.sum(sa.func.length(blobs.c.body))).where(blobs.c.run_id == runs.c.run_id)
    given: list[sa.ColumnElement[bool]] = [sa.true()]
    if wanted.run_id is not None:
        given.append(runs.c.run_id == wanted.run_id)
    if wanted.like is not None:
        given.append(runs.c.run_id.like(wanted.like, escape="\\"))
    if wanted.statuses is not None:
        given.append(runs.c.status.in_(wanted.statuses))
    elif wanted.run_id is None:
        given.append(runs.c.status != "erased")
    if wanted.changed_since is not None:
        given.append(runs.c.updated_at >= wanted.changed_since)
    if wanted.changed_before is not None:
        given.append(runs.c.updated_at <= wanted.changed_before)
    if wanted.larger_than is not None:
        given.append(size.scalar_subquery() > wanted.larger_than)
    marks = [(tags, tags.c.tag == tag) for tag in wanted.tags]
    marks += [(run_metadata, run_metadata.c.digest == digest) for digest in wanted.metadata_digests]
    given += [sa.exists().where(table.c.run_id == runs.c.run_id, fits) for table, fits in marks]
    return sa.and_(*given)


def list_attempts(connection: sa.Connection, run_id: str) -> list[dict[str, Any]]:
    """The attempts of a run, in order, by column."""
    its = sa.select(*(column for column in attempts.c if column is not attempts.c.links))
    its = its.where(attempts.c.run_id == run_id).order_by(attempts.c.attempt)
    protection, found = protection_of(connection), [dict(row) for row in connection.execute(its).mappings()]
    for row in found:
        where = f"run {run_id!r}, attempt {row['attempt']}"
        bound = attempt_bound(run_id, row["attempt"])
        row["error"] = protection.shown_text(row["error"], *bound, where=where)
    return found


def list_resolutions(connection: sa.Connection, run_id: str) -> list[dict[str, Any]]:
    """What persons decided in a run, the earliest first, by column."""
    its = sa.select(resolutions).where(resolutions.c.run_id == run_id).order_by(resolutions.c.decided_at)
    protection, found = protection_of(connection), [dict(row) for row in connection.execute(its).mappings()]
    for row in found:
        where = f"run {run_id!r}, a decision about step {row['key']}"
        row["note"] = protection.shown_text(row["note"], *note_bound(row["id"]), where=where)
    return found


def touch(connection: sa.Connection, now: float) -> None:
    """Write something small, so that a full commit syncs all that was committed before it."""
    connection.execute(schema_table.update().values(synced_at=now))


def pulse(connection: sa.Connection, run_id: str) -> tuple[Any, ...]:
    """Values that change whenever something changes that is shown of a run."""
    row = sa.select(runs.c.status, runs.c.attempts, runs.c.updated_at, runs.c.holder).where(
        runs.c.run_id == run_id
    )
    counted = sa.select(
        sa.func.count(),
        sa.func.sum(steps.c.tries),
        sa.func.max(steps.c.started_at),
        sa.func.max(steps.c.finished_at),
        *(sa.func.count(column) for column in (steps.c.finished_at, steps.c.blocked, steps.c.resolution)),
        sa.func.sum(steps.c.drifted),
    ).where(steps.c.run_id == run_id)
    return (*(connection.execute(row).first() or ()), *connection.execute(counted).one())
