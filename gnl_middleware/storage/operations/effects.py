"""Effects that may happen once: who performs one, and who takes the place of a try that has not."""

import secrets

import sqlalchemy as sa

from gnl_middleware.storage.protocol import Intent, Outcome, Owner, Payload, Predecessor, Verdict
from gnl_middleware.storage.schema import effects, runs, steps

from .dialects import insert
from .steps import claim_steps, explain_claim, finish_steps, put_payloads


def claim_exclusively(connection: sa.Connection, intent: Intent) -> Verdict | Owner:
    """Write the intent of an effect that may happen once; its owner, if that is another step."""
    owner = _claim_effect(connection, intent)
    mine = Owner(intent.step.run_id, intent.step.key)
    if owner != mine:
        return owner
    return Verdict.WON if claim_steps(connection, [intent]) == 1 else explain_claim(connection, intent)


def _claim_effect(connection: sa.Connection, intent: Intent) -> Owner:
    effect, step, before = intent.effect, intent.step, intent.instead_of
    if effect is None:
        return Owner(step.run_id, step.key)
    at = (
        (effects.c.window_run == effect.window_run)
        & (effects.c.tool == effect.tool)
        & (effects.c.digest == effect.digest)
    )
    claimed = {"owner_run": step.run_id, "owner_key": step.key, "claimed_at": step.started_at}
    if before is not None:
        connection.execute(effects.update().where(at, _still_owned_by(before)).values(claimed))
    row = {"window_run": effect.window_run, "tool": effect.tool, "digest": effect.digest, **claimed}
    connection.execute(insert(connection.dialect.name, effects).on_conflict_do_nothing(), row)
    found = connection.execute(sa.select(effects.c.owner_run, effects.c.owner_key).where(at)).one()
    owner = Owner(found.owner_run, found.owner_key)
    if before is not None and owner == Owner(step.run_id, step.key):
        _fence_off(connection, before)
    return owner


def _still_owned_by(before: Predecessor) -> sa.ColumnElement[bool]:
    """Whether the effect is still owned by exactly the try that was looked at."""
    owner = before.owner
    its = (effects.c.owner_run == owner.run_id) & (effects.c.owner_key == owner.key)
    row = sa.exists().where(steps.c.run_id == owner.run_id, steps.c.key == owner.key)
    return its & (row.where(steps.c.token == before.token) if before.token else ~row)


def _fence_off(connection: sa.Connection, before: Predecessor) -> None:
    """Take the lease from the run of a try that was cut off: a worker that only fell silent must not perform it, too.

    Of a run without a lock only the try is taken, since other workers may be at the run.
    """
    if before.fence is None:
        return
    run = runs.c.run_id == before.owner.run_id
    its = run & (runs.c.fence == before.fence) & (runs.c.locked == 1)
    connection.execute(runs.update().where(its).values(fence=before.fence + 1))
    claimed = (steps.c.run_id == before.owner.run_id) & (steps.c.key == before.owner.key)
    shared = sa.exists().where(run, runs.c.locked == 0)
    taken = steps.update().where(claimed, steps.c.token == before.token, shared)
    connection.execute(taken.values(token=secrets.token_hex(8), claimed_until=None))


def record_shared(connection: sa.Connection, intent: Intent, outcome: Outcome) -> Verdict:
    """Record a call that got the outcome of another one: intent and outcome at once, so that no try is ever open."""
    put_payloads(connection, [Payload(intent.step.run_id, intent.step.arguments_hash, intent.step.arguments)])
    if claim_steps(connection, [intent]) != 1:
        return explain_claim(connection, intent)
    if outcome.value is not None and outcome.value_hash is not None:
        put_payloads(connection, [Payload(outcome.run_id, outcome.value_hash, outcome.value)])
    finish_steps(connection, [outcome])
    return Verdict.WON
