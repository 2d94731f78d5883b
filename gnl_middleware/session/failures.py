"""Errors of bodies, to the journal and back: built-in types and those that a policy lists, as themselves."""

import builtins
import os
from collections.abc import Sequence
from typing import Any, cast

from gnl_middleware import codec
from gnl_middleware.errors import RecordedError, UnserializableValueError
from gnl_middleware.model import RecordedFailure, StoredStep, type_name
from gnl_middleware.storage.protection import Protection


def recorded(error: Exception) -> RecordedFailure:
    """The error as the journal keeps it; its arguments and attributes only where they are plain data."""
    if isinstance(error, RecordedError):
        return RecordedFailure(error.type_name, error.text)
    return RecordedFailure(
        type_name(type(error)), _text(error), _plain(_arguments(error)), _plain(dict(vars(error)))
    )


def redacted(failure: RecordedFailure, protection: Protection) -> RecordedFailure:
    """The error without what must not be written; what cannot be redacted is left out."""
    return RecordedFailure(
        failure.type_name,
        protection.redacted_text(failure.text),
        _redacted(failure.args, protection),
        _redacted(failure.state, protection),
    )


def _redacted(value: Any, protection: Protection) -> Any:
    try:
        return codec.decode(protection.redacted(codec.encode(value)))
    except UnserializableValueError:
        return None


def rebuilt(step: StoredStep, listed: Sequence[type[Exception]]) -> Exception:
    """The recorded error of a step, to be raised again.

    Only built-in types and the classes that the caller lists are made: a name in a journal never imports anything.
    """
    failure = step.failure or RecordedFailure("Exception", "")
    for kind in _kinds(failure.type_name, listed):
        for made in (_constructed(kind, failure), _put_together(kind, failure)):
            if made is not None and _text(made) == failure.text:
                return made
    return RecordedError(type_name=failure.type_name, text=failure.text)


def _kinds(name: str, listed: Sequence[type[Exception]]) -> list[type[Exception]]:
    # A class of a library that only shares its name with one of these is stored under its module, and is none of them.
    builtin = getattr(builtins, name, None)
    found = [kind for kind in listed if type_name(kind) == name]
    return [*found, builtin] if isinstance(builtin, type) and issubclass(builtin, Exception) else found


def _constructed(kind: type[Exception], failure: RecordedFailure) -> Exception | None:
    if failure.args is None:
        return None
    try:
        error = kind(*failure.args)
    except Exception:  # noqa: BLE001 - a class whose constructor wants other arguments than it keeps
        return None
    vars(error).update(failure.state or {})
    return error


def _put_together(kind: type[Exception], failure: RecordedFailure) -> Exception | None:
    try:
        error = kind.__new__(kind)
    except TypeError:
        return None
    error.args = (failure.text,) if failure.args is None else failure.args
    vars(error).update(failure.state or {})
    return error


def _arguments(error: Exception) -> tuple[Any, ...]:
    if not isinstance(error, OSError) or error.filename is None:
        return error.args
    # Python keeps the names of files apart from the arguments, which would lose them.
    first, second = _file(error.filename), _file(error.filename2)
    return (*error.args[:2], first) if second is None else (*error.args[:2], first, None, second)


def _file(name: Any) -> str | bytes | None:
    return str(cast("os.PathLike[str]", name)) if isinstance(name, os.PathLike) else name


def _text(error: Exception) -> str:
    try:
        return str(error)
    except Exception as broken:  # noqa: BLE001 - whatever a program's own error does, it is recorded
        return f"(its text cannot be made: {type(broken).__qualname__})"


def _plain(value: Any) -> Any:
    try:
        codec.encode(value)
    except Exception:  # noqa: BLE001 - as above: a registered type may fail in its own way
        return None
    return value
