"""How values of the user's own classes become plain data and come back: dataclasses, pydantic models, enums, named tuples.

The class comes from the code; what the journal holds is checked against it. A record that the class no longer takes as it
was is an error, never a value that is nearly the same. What a class got since, with a default, may be missing in a record.
"""

import dataclasses
import enum
import hashlib
from collections.abc import Mapping
from typing import Any, cast

import orjson

from gnl_middleware.errors import UnserializableValueError

from .tree import Conversion, type_name, write

_REASON_LENGTH = 200


def conversions(kind: type) -> tuple[Conversion, Conversion] | None:
    """How values of a class are written and read; None for a class that is none of these kinds.

    Example:
        >>> import fractions
        >>> conversions(fractions.Fraction) is None
        True
    """
    pair = _pair(kind)
    return None if pair is None else _checked(kind, *pair)


def built(kind: Any, value: Any) -> Any:
    """Plain data that a person gave as a value of a class, where the class is of these kinds; else as it is.

    Raises:
        Exception: The class does not take it.
    """
    if _pair(kind) is None or isinstance(value, kind):
        return value
    if issubclass(kind, enum.Enum):
        return kind(value)
    if not isinstance(value, dict):
        return value
    return kind.model_validate(value) if _is_model(kind) else kind(**value)


def is_shaped(kind: Any) -> bool:
    """Whether a class is of these kinds."""
    return isinstance(kind, type) and _pair(kind) is not None


def _pair(kind: Any) -> tuple[Conversion, Conversion] | None:
    if issubclass(kind, enum.Enum):
        return _from_enum, lambda plain: _to_enum(kind, plain)
    if _is_model(kind):
        return _from_model, lambda plain: _to_model(kind, plain)
    if dataclasses.is_dataclass(kind):
        return _from_dataclass, lambda plain: _to_dataclass(kind, plain)
    if hasattr(kind, "_fields") and issubclass(kind, tuple):
        return _from_named_tuple, lambda plain: _to_named_tuple(kind, plain)
    return None


def _checked(kind: type, to_plain: Conversion, from_plain: Conversion) -> tuple[Conversion, Conversion]:
    def read(plain: Any) -> Any:
        made = from_plain(plain)
        if write(_without_new(to_plain(made), plain), 1, False) != write(plain, 1, False):
            raise ValueError(f"{kind.__qualname__} no longer keeps what was recorded")
        return made

    def written(value: Any) -> Any:
        plain = to_plain(value)
        try:
            reason = (
                "" if _private(read(plain)) == _private(value) else "its private attributes would be lost"
            )
        except UnserializableValueError:
            return plain  # something inside, which is reported with its path when it is written
        except Exception as error:  # noqa: BLE001 - the class is the user's
            reason = f"{type(error).__name__}: {error}"
        if reason:
            reason = " ".join(reason.split())[:_REASON_LENGTH]
            found = f"{type_name(value)} that would not come back the same ({reason})"
            raise UnserializableValueError(path="$", type_name=found)
        return plain

    return written, read


def _without_new(now: object, then: object) -> object:
    """What a class gives now, without the fields that it got since the record."""
    as_it_is: object = now
    if not isinstance(now, Mapping) or not isinstance(then, Mapping):
        return as_it_is
    found, known = cast("Mapping[str, Any]", now), cast("Mapping[str, Any]", then)
    return {name: found[name] for name in known if name in found}


def _private(value: Any) -> Any:
    return getattr(value, "__pydantic_private__", None)


def _fields(kind: type, plain: Any, known: Any) -> dict[str, Any]:
    if type(plain) is not dict:
        raise TypeError(f"the record holds no fields of {kind.__qualname__}")
    fields = cast("dict[str, Any]", plain)
    if unknown := sorted(name for name in fields if name not in known):
        raise ValueError(f"{kind.__qualname__} has no field {', '.join(unknown)} any more")
    return fields


def _from_enum(value: enum.Enum) -> dict[str, int]:
    # A member is its name. The number tells whether it still means the same; it is no text, so nobody redacts it.
    if isinstance(value, enum.Flag):
        return {"flag": value.value}
    written = orjson.dumps(write(value.value, 1, True), option=orjson.OPT_SORT_KEYS)
    return {value.name: int(hashlib.sha256(written).hexdigest()[:_MEANING], 16)}


_MEANING = 12


def _to_enum(kind: type[enum.Enum], plain: dict[str, int]) -> enum.Enum:
    ((name, number),) = plain.items()
    return kind(number) if issubclass(kind, enum.Flag) else kind[name]


def _from_dataclass(value: Any) -> dict[str, Any]:
    fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if more := sorted(set(getattr(value, "__dict__", ())) - set(fields)):
        found = f"{type_name(value)} with the attribute {', '.join(more)}, which is no field of it"
        raise UnserializableValueError(path="$", type_name=found)
    return fields


def _to_dataclass(kind: Any, plain: Any) -> Any:
    known = {field.name: field for field in dataclasses.fields(kind)}
    fields = _fields(kind, plain, known)
    made = kind(**{name: value for name, value in fields.items() if known[name].init})
    for name, value in fields.items():
        if not known[name].init:
            object.__setattr__(made, name, value)
    return made


def _from_named_tuple(value: Any) -> dict[str, Any]:
    return value._asdict()


def _to_named_tuple(kind: Any, plain: Any) -> Any:
    return kind(**_fields(kind, plain, kind._fields))


def _is_model(kind: Any) -> bool:
    """Known by what it can do: the core imports no pydantic."""
    return hasattr(kind, "model_validate") and hasattr(kind, "model_fields")


def _from_model(value: Any) -> dict[str, Any]:
    fields: dict[str, Any] = {name: getattr(value, name) for name in cast("Any", type(value)).model_fields}
    fields |= cast("Mapping[str, Any]", value.model_extra or {})
    unset = sorted(set(fields) - set(value.model_fields_set))
    return {"fields": fields, "unset": unset} if unset else {"fields": fields}


def _to_model(kind: Any, plain: Any) -> Any:
    unset = plain.get("unset", [])
    open_to_more = kind.model_config.get("extra") == "allow"
    fields = _fields(kind, plain["fields"], plain["fields"] if open_to_more else kind.model_fields)
    if getattr(kind, "__pydantic_root_model__", False):
        return kind.model_validate(fields["root"])
    made = kind.model_validate(fields, by_alias=False, by_name=True)
    made.model_fields_set.difference_update(unset)
    return made
