"""The values of the standard library that are written as one text or a few numbers."""

import base64
import functools
import uuid
import zoneinfo
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any, TypeVar

from gnl_middleware.errors import UnserializableValueError

from .tree import Conversion, type_name

_Moment = TypeVar("_Moment", datetime, time)


def _bytes_to_base64(value: bytes | bytearray) -> str:
    return base64.b64encode(value).decode()


def _bytearray_from_base64(payload: str) -> bytearray:
    return bytearray(base64.b64decode(payload))


def _decimal_to_text(value: Decimal) -> str:
    return str(value).replace("e", "E")  # the letter's case is a setting of each thread's decimal context


def _timedelta_to_parts(value: timedelta) -> list[int]:
    return [value.days, value.seconds, value.microseconds]


def _timedelta_from_parts(payload: list[int]) -> timedelta:
    return timedelta(*payload)


def _moment_to_parts(value: datetime | time) -> list[Any]:
    # The offset stands apart: Python reads one of less than a second back as UTC.
    zone = _zone_to_parts(value)
    return [value.replace(tzinfo=None).isoformat(), value.fold, zone]


def _zone_to_parts(value: datetime | time) -> list[Any] | None:
    zone = value.tzinfo
    if zone is None:
        return None
    if type(zone) is timezone:
        offset, name = zone.utcoffset(None), zone.tzname(None)
        return [
            "offset",
            _timedelta_to_parts(offset),
            None if name == timezone(offset).tzname(None) else name,
        ]
    # A zone that was read from a file of one's own may bear the key of another.
    if type(zone) is zoneinfo.ZoneInfo and zone.key in _zone_keys():
        offset = value.utcoffset()
        if value.replace(tzinfo=zoneinfo.ZoneInfo(zone.key)).utcoffset() == offset:
            return ["key", zone.key, None if offset is None else _timedelta_to_parts(offset)]
    raise UnserializableValueError(path="$.tzinfo", type_name=type_name(zone))


@functools.cache
def _zone_keys() -> frozenset[str]:
    # An allow-list: for a key that it does not know, the standard library imports packages named after the key.
    return frozenset(zoneinfo.available_timezones())


def _datetime_from_parts(payload: list[Any]) -> datetime:
    return _with_zone(datetime.fromisoformat(payload[0]), payload)


def _time_from_parts(payload: list[Any]) -> time:
    return _with_zone(time.fromisoformat(payload[0]), payload)


def _with_zone(value: _Moment, payload: list[Any]) -> _Moment:
    _, fold, zone = payload
    value = value.replace(fold=fold)
    if zone is None:
        return value
    how, *facts = zone
    if how == "offset":
        offset, name = timedelta(*facts[0]), facts[1]
        return value.replace(tzinfo=timezone(offset) if name is None else timezone(offset, name))
    key = facts[0]
    if key not in _zone_keys():
        raise ValueError(f"this machine knows no time zone {key!r}")
    value = value.replace(tzinfo=zoneinfo.ZoneInfo(key))
    if _zone_to_parts(value) != zone:
        raise ValueError(f"time zone {key!r} has another offset on this machine")
    return value


SCALARS: tuple[tuple[type, Conversion, Conversion], ...] = (
    (bytes, _bytes_to_base64, base64.b64decode),
    (bytearray, _bytes_to_base64, _bytearray_from_base64),
    (Decimal, _decimal_to_text, Decimal),
    (uuid.UUID, str, uuid.UUID),
    (timedelta, _timedelta_to_parts, _timedelta_from_parts),
    (date, date.isoformat, date.fromisoformat),
    (time, _moment_to_parts, _time_from_parts),
    (datetime, _moment_to_parts, _datetime_from_parts),
)
"""Each type with the function that gives its payload and the one that takes it back."""
