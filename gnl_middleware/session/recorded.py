"""The recorded value of a step, checked."""

from typing import Any

from gnl_middleware import codec
from gnl_middleware.errors import JournalCorruptError, UnserializableValueError
from gnl_middleware.model import StoredStep
from gnl_middleware.replay.payloads import decoded, where


def recorded_value(step: StoredStep, types: tuple[type, ...] = ()) -> Any:
    """What a finished step gave, decoded.

    Raises:
        UnserializableValueError: It could not be journalled.
        JournalCorruptError: It is not what was written.
    """
    if step.value is None or step.value_hash is None:
        failure = step.failure
        path, type_name = (failure.text, failure.type_name) if failure is not None else ("$", "value")
        raise UnserializableValueError(path=path, type_name=type_name, step_key=step.key)
    if codec.content_hash(step.value) != step.value_hash:
        raise JournalCorruptError(where=where(step), problem="its value does not match its hash")
    with codec.declared(types):
        return decoded(step, step.value)
