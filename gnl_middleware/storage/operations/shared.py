"""Runs without a lock: several attempts go on at once, and each call is claimed by one of them (DESIGN 3.5)."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import sqlalchemy as sa

from gnl_middleware.lease import is_dead
from gnl_middleware.model import StoredStep
from gnl_middleware.storage.bounds import attempt_bound
from gnl_middleware.storage.protection import protection_of
from gnl_middleware.storage.protocol import Leaving, Opened, Opening, StoredRun
from gnl_middleware.storage.schema import attempts, runs, steps

from .dialects import time_of

_Running = Sequence[sa.RowMapping]


def take_shared(
    connection: sa.Connection, opening: Opening, row: Mapping[Any, Any], completed: int
) -> Opened:
    """Begin an attempt beside those of other workers; the caller has locked the run's row.

    Args:
        connection: In a transaction.
        opening: With the time by the clock that all workers share.
        row: The run's.
        completed: The last attempt that ended cleanly, or 0.
    """
    found = _running(connection, [opening.run_id])
    if mine := [each["attempt"] for each in found if each["holder"] == opening.holder]:
        # Begun already, and the acknowledgement was lost: each hold has a name of its own.
        others = _alive(found, opening.now, opening.is_dead) - set(mine)
        return Opened(row["fence"], mine[0], completed, locked=False, others=frozenset(others))
    others, attempt = _alive(found, opening.now, opening.is_dead), row["attempts"] + 1
    gone = [each["attempt"] for each in found if each["attempt"] not in others]
    its = attempts.c.run_id == opening.run_id
    ended = attempts.update().where(its, attempts.c.attempt.in_(gone))
    connection.execute(ended.values(status="interrupted", ended_at=opening.now))
    fence, digest = max(row["fence"], 1), row["input_digest"] or opening.input_digest
    change = {"status": "running", "attempts": attempt, "fence": fence, "updated_at": opening.now}
    connection.execute(
        runs.update().where(runs.c.run_id == opening.run_id).values(**change, input_digest=digest)
    )
    connection.execute(
        attempts.insert().values(
            run_id=opening.run_id,
            attempt=attempt,
            holder=opening.holder,
            started_at=opening.now,
            status="running",
            lease_ends_at=opening.now + opening.lease,
        )
    )
    return Opened(fence, attempt, completed, row["status"], locked=False, others=frozenset(others))


def leave_shared(connection: sa.Connection, leaving: Leaving) -> bool:
    """Note how one of the attempts ended; the last one that leaves says how the run did."""
    leaving = replace(leaving, now=time_of(connection, leaving.now))
    at = (attempts.c.run_id == leaving.run_id) & (attempts.c.attempt == leaving.attempt)
    started = connection.scalar(sa.select(attempts.c.started_at).where(at))
    ended = "interrupted" if leaving.status == "running" else leaving.status
    change: dict[str, Any] = {
        "status": ended,
        "ended_at": leaving.now,
        "error": protection_of(connection).hidden_text(
            leaving.error, *attempt_bound(leaving.run_id, leaving.attempt)
        ),
        "lease_ends_at": None,
        **leaving.spared,
    }
    connection.execute(attempts.update().where(at).values(change))
    others = _alive(_running(connection, [leaving.run_id]), leaving.now, is_dead)
    its = (runs.c.run_id == leaving.run_id) & (runs.c.fence == leaving.fence)
    said: dict[str, Any] = {"status": leaving.status, "updated_at": leaving.now}
    if leaving.status == "running" or (leaving.status == "failed" and others):
        return True  # the others go on; if nobody does, it shows as interrupted
    if leaving.status == "completed":
        said["completed_at"] = leaving.now
    else:
        # What another worker has completed meanwhile stays so: this one only came too late.
        done = (runs.c.status == "completed") & (runs.c.completed_at >= (started or 0.0))
        its &= ~sa.func.coalesce(done, sa.false())
    connection.execute(runs.update().where(its).values(said))
    return True


def renew_claims(
    connection: sa.Connection, at: tuple[str, int], tokens: Sequence[str], *, now: float, seconds: float
) -> bool:
    """Prolong an attempt (its run, its number) and the claims of its tries from now on; False if one of them is another's meanwhile."""
    (run_id, attempt), ends_at = at, time_of(connection, now) + seconds
    mine = (attempts.c.run_id == run_id) & (attempts.c.attempt == attempt) & (attempts.c.status == "running")
    connection.execute(attempts.update().where(mine).values(lease_ends_at=ends_at))
    if not tokens:
        return True
    # One that is given back while it is renewed stays given back.
    its = (steps.c.run_id == run_id) & steps.c.token.in_(tokens) & steps.c.claimed_until.is_not(None)
    return connection.execute(steps.update().where(its).values(claimed_until=ends_at)).rowcount == len(tokens)


def release_claim(connection: sa.Connection, step: StoredStep) -> None:
    """End the claim of a try that was cut off, if it is still the same."""
    its = (steps.c.run_id == step.run_id) & (steps.c.key == step.key) & (steps.c.token == step.token)
    connection.execute(steps.update().where(its).values(claimed_until=None))


def with_claims(connection: sa.Connection, loaded: Iterable[StoredStep], now: float) -> list[StoredStep]:
    """The steps, those marked whose try another worker may be at right now."""
    found = list(loaded)
    if not any(_is_claimed(step) for step in found):
        return found
    now = time_of(connection, now)
    return [
        replace(step, claimed=(step.claimed_until or 0.0) > now and not is_dead(step.holder))
        if _is_claimed(step)
        else step
        for step in found
    ]


def _is_claimed(step: StoredStep) -> bool:
    return step.status == "started" and step.claimed_until is not None


def worker_of(
    connection: sa.Connection, run_id: str, now: float, dead: Callable[[str | None], bool]
) -> sa.RowMapping | None:
    """The attempt of a worker that is at a run without a lock at this time, if any is."""
    return next((row for row in _running(connection, [run_id]) if _is_alive(row, now, dead)), None)


def with_workers(connection: sa.Connection, found: Sequence[StoredRun], now: float) -> list[StoredRun]:
    """The runs, those without a lock with one of the workers that are at them, if any is."""
    open_ones = [run.run_id for run in found if not run.locked and run.status == "running"]
    if not open_ones:
        return list(found)
    latest: dict[str, sa.RowMapping] = {}
    for row in _running(connection, open_ones if len(open_ones) == 1 else None):
        if _is_alive(row, now, is_dead):
            before = latest.get(row["run_id"])
            if before is None or before["lease_ends_at"] < row["lease_ends_at"]:
                latest[row["run_id"]] = row
    return [_worked_on(run, latest.get(run.run_id)) for run in found]


def _worked_on(run: StoredRun, worker: sa.RowMapping | None) -> StoredRun:
    if worker is None:
        return run
    return replace(run, holder=worker["holder"], lease_ends_at=worker["lease_ends_at"], leased=True)


def _running(connection: sa.Connection, run_ids: Sequence[str] | None) -> _Running:
    """The attempts that have not ended, of these runs or of all without a lock."""
    its = sa.select(attempts).where(attempts.c.status == "running")
    if run_ids is not None:
        its = its.where(attempts.c.run_id.in_(run_ids))
    else:
        open_ones = (runs.c.run_id == attempts.c.run_id) & (runs.c.status == "running")
        its = its.join(runs, open_ones).where(runs.c.locked == 0)
    return connection.execute(its).mappings().all()


def _alive(found: _Running, now: float, dead: Callable[[str | None], bool]) -> set[int]:
    return {row["attempt"] for row in found if _is_alive(row, now, dead)}


def _is_alive(row: sa.RowMapping, now: float, dead: Callable[[str | None], bool]) -> bool:
    return (row["lease_ends_at"] or 0.0) > now and not dead(row["holder"])
