"""A person's decision about a call, as the outcome that is written."""

import secrets
from typing import Literal

from gnl_middleware import codec
from gnl_middleware.model import Decision, Done, Failed, NotDone, RecordedFailure, StoredStep
from gnl_middleware.policy import remembered
from gnl_middleware.replay.record import Record
from gnl_middleware.storage.protection import Protection
from gnl_middleware.storage.protocol import Outcome

WORDS: dict[type[Decision], str] = {Done: "happened", NotDone: "not_done", Failed: "failed"}
"""What the journal calls each decision."""


def decided(row: StoredStep, decision: Decision, now: float, protection: Protection) -> Outcome:
    """What a decision makes of a step.

    Raises:
        UnserializableValueError: The result cannot be journalled.
    """
    policy = remembered(row.name)
    with codec.declared(policy.types if policy is not None else ()):
        value = protection.redacted(codec.encode(decision.value)) if isinstance(decision, Done) else None
    status: dict[type[Decision], Literal["done", "started", "failed"]] = {
        Done: "done",
        NotDone: "started",
        Failed: "failed",
    }
    return Outcome(
        run_id=row.run_id,
        key=row.key,
        token=secrets.token_hex(8),
        status=status[type(decision)],
        finished_at=now,
        ended_tick=row.ended or row.begun,
        value=value,
        value_hash=None if value is None else codec.content_hash(value),
        failure=RecordedFailure("RecordedError", protection.redacted_text(decision.error))
        if isinstance(decision, Failed)
        else row.failure,
        raw=isinstance(decision, Done),
        resolution=WORDS[type(decision)],
    )


def undecided(run_id: str, rows: list[StoredStep], completed: int) -> list[StoredStep]:
    """Calls without an outcome that anybody went on from; a failure that was handled is history."""
    record = Record(run_id, rows, completed_before=completed)
    return [
        row
        for row in rows
        if (row.kind == "tool" or (row.kind == "model" and row.policy == "never"))
        and row.status in ("started", "failed")
        and row.resolution in (None, "not_performed")
        and not record.is_handled(row)
    ]
