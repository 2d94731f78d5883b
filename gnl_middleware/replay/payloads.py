"""What a step was asked and gave, decoded; bytes that cannot be read are reported with the step that they belong to."""

from collections.abc import Callable
from typing import Any

from gnl_middleware import codec
from gnl_middleware.errors import JournalCorruptError
from gnl_middleware.model import Step, StoredStep


def where(step: StoredStep) -> str:
    """The step, as errors about the journal name it."""
    return f"run {step.run_id!r}, step {step.key!r}"


def decoded(step: StoredStep, payload: bytes) -> Any:
    """A payload of the step.

    Raises:
        JournalCorruptError: It cannot be read.
    """
    return _read(step, codec.decode, payload)


def outlined(step: StoredStep, payload: bytes) -> Any:
    """The same for people to look at: whoever looks need not have loaded the adapter that made a value.

    Raises:
        JournalCorruptError: It cannot be read.
    """
    return _read(step, codec.outline, payload)


def _read(step: StoredStep, read: Callable[[bytes], Any], payload: bytes) -> Any:
    try:
        return read(payload)
    except JournalCorruptError as error:
        raise error.at(where(step)) from error


def shown_step(row: StoredStep) -> Step:
    """A step as people see it.

    Raises:
        JournalCorruptError: It cannot be read.
    """
    if row.value is not None and codec.content_hash(row.value) != row.value_hash:
        raise JournalCorruptError(where=where(row), problem="its value does not match its hash")
    failure = row.failure
    return Step(
        run_id=row.run_id,
        key=row.key,
        number=row.number,
        scope=row.scope,
        kind=row.kind,
        name=row.name,
        policy=row.policy,
        status="started" if row.status in ("withdrawn", "paused") else row.status,
        blocked=row.blocked,
        attempts=row.tries,
        started_at=row.started_at,
        finished_at=row.finished_at,
        arguments=outlined(row, row.arguments),
        value=None if row.value is None else outlined(row, row.value),
        error=None if failure is None else f"{failure.type_name}: {failure.text}",
        drifted=row.drifted,
        resolution=row.resolution,
        attempt=row.attempt,
        tokens=row.tokens,
        origin=row.origin,
    )
