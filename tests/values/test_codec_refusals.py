"""The codec refuses what it could not give back: with the path of the value, before anything is written."""

import collections
import enum
import math
import threading
from datetime import datetime, tzinfo
from typing import NamedTuple

import pytest

from gnl_middleware.codec import MAX_DEPTH, canonical, decode, digest, encode
from gnl_middleware.errors import UnserializableValueError


class Colour(enum.IntEnum):
    RED = 1


class Mood(enum.StrEnum):
    GOOD = "good"


class Point(NamedTuple):
    x: int


class Name(str):
    __slots__ = ()


class Clock(datetime):
    pass


class Sized(int):
    pass


@pytest.mark.parametrize(
    "value",
    [
        Colour.RED,
        Mood.GOOD,
        Point(1),
        Name("a"),
        Sized(1),
        Clock(2024, 1, 1),
        collections.OrderedDict(a=1),
        collections.defaultdict(int),
        collections.Counter("a"),
        object(),
        1j,
        threading.RLock(),
        range(3),
        memoryview(b"a"),
        print,
        ValueError("x"),
        (item for item in ()),
    ],
    ids=lambda value: type(value).__name__,
)
@pytest.mark.parametrize("write", [encode, canonical], ids=["encode", "canonical"])
def test_other_types_are_refused_with_their_path(value, write):
    """A value that would come back as something else is refused, never turned into text or into its base type."""
    with pytest.raises(UnserializableValueError) as caught:
        write({"items": [1, (2, {"x y": value})]})

    assert caught.value.path == "$.items[1][1]['x y']"
    assert caught.value.type_name.endswith(type(value).__qualname__)
    with pytest.raises(UnserializableValueError) as caught:
        write(value)
    assert caught.value.path == "$"


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ({"artifact": threading.Lock()}, "$.artifact"),
        ({1: 1j}, "$[1]"),
        ({1: {"é": 1j}}, "$[1].é"),
        ({(1, 2): [0, 1j]}, '$[{"$gnl":"tuple","value":[1,2]}][1]'),
        ({"$gnl": 1j}, "$['$gnl']"),
        ({10**6000: 1j}, '$[{"$gnl":"int","value":"' + hex(10**6000)[:57] + "…]"),
        ({"a": {Colour.RED: 1}}, "$.a.keys()[*]"),
        ({"a": {Mood.GOOD: 1}}, "$.a.keys()[*]"),
        ({"a": {(1, Point(1)): 1}}, "$.a.keys()[*][1]"),
        ([{Point(1)}], "$[0][*]"),
        ([frozenset([(1, 1j)])], "$[0][*][1]"),
        ({"k" * 500: 1j}, "$." + "k" * 80 + "…"),
        ([datetime(2024, 1, 1, tzinfo=type("Zone", (tzinfo,), {})())], "$[0].tzinfo"),
    ],
    ids=range(13),
)
def test_the_path_leads_to_the_value(value, path):
    """The path names keys and positions as one would write them, and stays short."""
    with pytest.raises(UnserializableValueError) as caught:
        encode(value)

    assert caught.value.path == path
    assert str(caught.value).startswith(path)


WRAPPERS = {
    "list": (1, lambda value: [value]),
    "dict": (1, lambda value: {"a": value}),
    "tuple": (2, lambda value: (value,)),
    "frozenset": (2, lambda value: frozenset([value])),
    "map": (3, lambda value: {1: value}),
}


@pytest.mark.parametrize("innermost", [1.5, math.inf, 2**70, "\ud800"], ids=ascii)
@pytest.mark.parametrize("name", WRAPPERS)
def test_depth_is_limited_as_stated(name, innermost):
    """Values nest up to the stated limit, which can be read back; one level more is refused, not a crash."""
    levels, wrap = WRAPPERS[name]
    value = innermost
    for _ in range(MAX_DEPTH // levels):
        value = wrap(value)

    assert decode(encode(value)) == value
    assert len(digest(value)) == 64
    with pytest.raises(UnserializableValueError, match=f"more than {MAX_DEPTH} levels"):
        encode(wrap(value))


@pytest.mark.parametrize("kind", ["list", "dict", "map"])
def test_a_value_within_itself_is_refused(kind):
    """A cycle is refused by name instead of exhausting the stack."""
    cycle: object = [] if kind == "list" else {}
    if kind == "list":
        cycle.append((cycle,))
    else:
        cycle["self" if kind == "dict" else 1] = cycle

    with pytest.raises(UnserializableValueError, match="within itself"):
        encode(cycle)
