"""Steps and their payloads: claimed, finished, blocked, decided and loaded."""

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import sqlalchemy as sa

from gnl_middleware.model import StoredStep
from gnl_middleware.storage.bounds import late_bound, note_bound, reason_bound
from gnl_middleware.storage.prepared import Prepared
from gnl_middleware.storage.protection import protection_of
from gnl_middleware.storage.protocol import Completed, Intent, Outcome, Payload, Verdict
from gnl_middleware.storage.reading import KEY, check_complete, setup_body, stored_step
from gnl_middleware.storage.rows import (
    KEPT_ON_RETRY,
    SET_BY_COMPLETED,
    SET_BY_INTENT,
    SET_BY_OUTCOME,
    SPLICED,
    blob_row,
    completed_row,
    encoded_failure,
    intent_row,
    outcome_row,
)
from gnl_middleware.storage.schema import blobs, resolutions, runs, steps
from gnl_middleware.storage.splicing import Splice, spliced

from .chains import check_chain, renew_chain
from .dialects import insert, time_of
from .loading import loaded_row, loaded_rows, with_source
from .shared import with_claims


def _parameter(column: str) -> sa.BindParameter[Any]:
    return sa.bindparam(column, type_=steps.c[column].type)


def _build_claim(dialect: str, columns: Sequence[str]) -> sa.Insert:
    held = (
        sa.exists()
        .where(runs.c.run_id == sa.bindparam("held_run", type_=sa.Text))
        .where(runs.c.fence == sa.bindparam("held_fence", type_=sa.BigInteger))
    )
    row = sa.select(*[_parameter(column) for column in columns]).where(held)
    statement = insert(dialect, steps).from_select(list(columns), row)
    again = {column: statement.excluded[column] for column in columns if column not in KEPT_ON_RETRY}
    cleared = dict.fromkeys(
        (
            *("finished_at", "ended", "value_hash", "failure", "blocked", "resolution", "reply_digest"),
            # What is tried anew in a fork has its payloads there.
            *("outcome_seal", "payloads"),
        ),
        sa.null(),
    )
    return statement.on_conflict_do_update(
        index_elements=["run_id", "key"],
        set_={**cleared, **again},
        where=(steps.c.token == sa.bindparam("expected", type_=sa.Text))
        & (steps.c.status != sa.literal_column("'done'")),
    )


_CLAIM = Prepared(lambda dialect: _build_claim(dialect, SET_BY_INTENT))
_COMPLETE = Prepared(lambda dialect: _build_claim(dialect, SET_BY_COMPLETED))
_COUNT = Prepared(
    lambda _: (
        runs.update()
        .where(runs.c.run_id == sa.bindparam("held_run"), runs.c.fence == sa.bindparam("held_fence"))
        .where(
            ~sa.exists().where(
                steps.c.run_id == sa.bindparam("held_run"), steps.c.key == sa.bindparam("begun_key")
            )
        )
        .values(side_effects=runs.c.side_effects + sa.literal_column("1"))
    )
)
_FINISH = Prepared(
    lambda _: (
        steps.update()
        .where(steps.c.run_id == sa.bindparam("at_run"), steps.c.key == sa.bindparam("at_key"))
        .where(steps.c.token == sa.bindparam("at_token"))
        .values(
            {column: _parameter(column) for column in (*SET_BY_OUTCOME, "token")} | {"blocked": sa.null()}
        )
    )
)
_PUT_BLOB = Prepared(
    lambda dialect: insert(dialect, blobs).on_conflict_do_nothing(), [column.name for column in blobs.c]
)


_WHOLE = Prepared(
    lambda _: (
        sa.select(blobs.c.hash)
        .where(blobs.c.run_id == sa.bindparam("at_run"), blobs.c.hash == sa.bindparam("at_hash"))
        .where(blobs.c.compressed != sa.literal_column(str(SPLICED)))
    )
)


def claim_steps(connection: sa.Connection, intents: Sequence[Intent]) -> int:
    """Write intents whose fence is current; how many were written."""
    protection = protection_of(connection)
    rows = [intent_row(intent, protection) | _claimed(connection, intent) for intent in intents]
    _count_effects(connection, [intent.step for intent in intents])
    return _CLAIM.run(connection, rows)


def complete_steps(connection: sa.Connection, completed: Sequence[Completed]) -> int:
    """Write intents whose fence is current together with their outcomes; how many were written."""
    protection = protection_of(connection)
    _count_effects(connection, [write.step for write in completed])
    return _COMPLETE.run(connection, [completed_row(write, protection) for write in completed])


def _count_effects(connection: sa.Connection, begun: Iterable[StoredStep]) -> None:
    """Count the side effects whose rows the next statement inserts, and no others."""
    new = [
        {"held_run": step.run_id, "held_fence": step.fence, "begun_key": step.key}
        for step in begun
        if step.side_effect
    ]
    if new:
        _COUNT.run(connection, new)


def _claimed(connection: sa.Connection, intent: Intent) -> dict[str, Any]:
    if intent.claim is None:
        return {}
    return {"claimed_until": time_of(connection, intent.step.started_at) + intent.claim}


def finish_steps(connection: sa.Connection, outcomes: Sequence[Outcome]) -> int:
    """Write outcomes whose try is still the step's; how many were written."""
    protection = protection_of(connection)
    return _FINISH.run(connection, [outcome_row(outcome, protection) for outcome in outcomes])


def put_payloads(connection: sa.Connection, payloads: Sequence[Payload]) -> None:
    """Store payloads once each; one with sources as what it has besides one of them, where that stands whole in its run."""
    if payloads:
        protection = protection_of(connection)
        rows = [blob_row(each, _splice(connection, each), protection) for each in payloads]
        _PUT_BLOB.run(connection, rows)


def _splice(connection: sa.Connection, payload: Payload) -> Splice | None:
    """What to store instead of a payload that has a long part in common with another one."""
    for splice in splices(payload):
        at = {"at_run": payload.run_id, "at_hash": splice.source}
        # What is stored is never changed, and what is needed never deleted: one that stands there whole now always will.
        if _WHOLE.fetch(connection, at):
            return splice
    return None


def splices(payload: Payload) -> Iterator[Splice]:
    """What may be stored instead of a payload, where the source stands whole in its run; the largest source first."""
    for source in sorted(payload.sources, key=lambda each: -len(each.body)):
        body = spliced(payload.body, source.body) if source.hash != payload.hash else None
        if body is not None:
            yield Splice(body, source.hash)


def explain_claim(connection: sa.Connection, intent: Intent) -> Verdict:
    """Why an intent was not written; our own commit whose acknowledgement was lost counts as won."""
    step = intent.step
    if _stored_token(connection, step.run_id, step.key) == step.token:
        return Verdict.WON
    fence = connection.scalar(sa.select(runs.c.fence).where(runs.c.run_id == step.run_id))
    if fence == step.fence:
        return Verdict.TAKEN
    _keep_erased(connection, step.run_id, step.arguments_hash)
    return Verdict.STALE


def keep_late_outcome(connection: sa.Connection, outcome: Outcome) -> Verdict:
    """Keep the outcome of a try that is no longer the step's as news, never in place of the record.

    Our own commit whose acknowledgement was lost counts as won.
    """
    if outcome.new_token and _stored_token(connection, outcome.run_id, outcome.key) == outcome.new_token:
        return Verdict.WON
    if outcome.status not in ("done", "failed"):
        return Verdict.LATE
    at = (steps.c.run_id == outcome.run_id) & (steps.c.key == outcome.key)
    late = outcome.value if outcome.value is not None else encoded_failure(outcome.failure)
    if late is not None:
        late = protection_of(connection).hidden(late, *late_bound(outcome.run_id, outcome.key))
    connection.execute(steps.update().where(at).values(late=late))
    if outcome.value_hash is not None:
        _keep_erased(connection, outcome.run_id, outcome.value_hash)
    return Verdict.LATE


def _keep_erased(connection: sa.Connection, run_id: str, content_hash: str) -> None:
    """Take back the payload that a worker which only fell silent has stored for a run that was erased meanwhile."""
    erased = sa.exists().where(runs.c.run_id == run_id, runs.c.status == "erased")
    # Its own steps, or those of its forks.
    used = sa.exists().where(
        (steps.c.run_id == run_id) | (steps.c.payloads == run_id),
        (steps.c.arguments_hash == content_hash) | (steps.c.value_hash == content_hash),
    )
    source = blobs.alias("spliced")
    used |= sa.exists().where(source.c.run_id == run_id, source.c.source == content_hash)
    its = (blobs.c.run_id == run_id) & (blobs.c.hash == content_hash)
    connection.execute(blobs.delete().where(its, erased, ~used))


def _stored_token(connection: sa.Connection, run_id: str, key: str) -> str | None:
    return connection.scalar(sa.select(steps.c.token).where(steps.c.run_id == run_id, steps.c.key == key))


def block_step(connection: sa.Connection, step: StoredStep, reason: str) -> None:
    """Note that a step waits for a person, if its try is still the same."""
    bound = reason_bound(step.run_id, step.key)
    hidden = protection_of(connection).hidden_text(reason, *bound)
    connection.execute(steps.update().where(_same_try(step)).values(blocked=hidden))


def mark_drifted(connection: sa.Connection, step: StoredStep) -> None:
    """Note that a replay asked something slightly different and got this record."""
    change = {"drifted": 1, "setups": json.dumps(step.setups)}
    connection.execute(steps.update().where(_same_try(step)).values(change))


def _same_try(step: StoredStep) -> sa.ColumnElement[bool]:
    return (steps.c.run_id == step.run_id) & (steps.c.key == step.key) & (steps.c.token == step.token)


def resolve_step(
    connection: sa.Connection,
    step: StoredStep,
    *,
    decision: str,
    outcome: Outcome,
    by: str,
    note: str,
    audit_id: str,
) -> bool:
    """Take a person's decision about exactly the try that was looked at; False if it changed or was decided meanwhile."""
    if _stored_token(connection, step.run_id, step.key) == outcome.token:
        return True  # decided already by this very call, whose acknowledgement was lost
    open_still = steps.c.resolution.is_(None) | (steps.c.resolution == "not_performed")
    undecided = _same_try(step) & (steps.c.status != "done") & open_still
    protection = protection_of(connection)
    row = outcome_row(outcome, protection)
    values = {column: value for column, value in row.items() if column in SET_BY_OUTCOME}
    # The new token keeps a zombie of the decided try from overwriting the decision.
    change = {**values, "token": outcome.token, "blocked": None}
    if connection.execute(steps.update().where(undecided).values(change)).rowcount != 1:
        return False
    if outcome.value is not None and outcome.value_hash is not None:
        put_payloads(connection, [Payload(step.run_id, outcome.value_hash, outcome.value)])
    connection.execute(
        resolutions.insert().values(
            id=audit_id,
            run_id=step.run_id,
            key=step.key,
            token=step.token,
            decision=decision,
            value_hash=outcome.value_hash,
            decided_by=by,
            note=protection.hidden_text(note, *note_bound(audit_id)),
            decided_at=outcome.finished_at,
        )
    )
    renew_chain(connection, step.run_id)
    return True


def load_step(connection: sa.Connection, run_id: str, key: str, now: float) -> StoredStep | None:
    """One step with its payloads, claimed or not at this time.

    Raises:
        JournalCorruptError: The row is not readable.
    """
    found = loaded_row(connection, run_id, key)
    if found is None:
        return None
    return with_claims(connection, [stored_step(found, protection_of(connection))], now)[0]


def load_steps(connection: sa.Connection, run_id: str, now: float) -> list[StoredStep]:
    """All steps of a run with their payloads, in one query, in the order in which they first began.

    Those of a run without a lock are claimed or not at this time.

    Raises:
        JournalCorruptError: A row is not readable, or that of a side effect is gone.
    """
    protection, found = protection_of(connection), loaded_rows(connection, run_id)
    loaded = [stored_step(row, protection) for row in found if row[KEY] is not None]
    if found:
        check_complete(run_id, loaded, found[0])
        if protection.integrity_key is not None:
            check_chain(connection, run_id)
    return with_claims(connection, loaded, now)


def load_setup(connection: sa.Connection, run_id: str, digest: str) -> bytes | None:
    """What a model of the run was asked with besides its messages; None where it is not kept.

    Raises:
        JournalCorruptError: It is not readable.
    """
    # A fork keeps what it was asked with before the cut where the run that it was made of keeps it.
    shared = sa.select(steps.c.payloads).where(steps.c.run_id == run_id, steps.c.payloads.is_not(None))
    its = (blobs.c.run_id == run_id) | blobs.c.run_id.in_(shared)
    kept = with_source(sa.select(blobs), blobs, "source").where(its, blobs.c.hash == digest)
    row = connection.execute(kept).mappings().first()
    return setup_body(run_id, row, protection_of(connection))
