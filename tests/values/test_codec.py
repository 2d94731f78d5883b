"""The codec: what is written comes back the same, and digests follow the published table."""

import json
import math
import subprocess
import sys
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal, localcontext
from pathlib import Path
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gnl_middleware.codec import canonical, decode, digest, encode

# How long an example takes says more about the machine than about the codec.
patient = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

any_text = st.text(st.characters(exclude_categories=[]))
offsets = st.timedeltas(min_value=timedelta(hours=-23), max_value=timedelta(hours=23))
fixed_offsets = st.none() | st.builds(timezone, offsets) | st.builds(timezone, offsets, any_text)
hashable_scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(min_value=2**62, max_value=2**66)
    | st.floats()
    | any_text
    | st.just("$gnl")
    | st.binary()
    | st.decimals(allow_nan=False)
    | st.datetimes(timezones=fixed_offsets)
    | st.dates()
    | st.times(timezones=fixed_offsets)
    | st.timedeltas()
    | st.uuids()
)
hashables = st.recursive(
    hashable_scalars, lambda inner: st.tuples(inner, inner) | st.frozensets(inner, max_size=3), max_leaves=4
)
values = st.recursive(
    hashables | st.decimals() | st.binary().map(bytearray) | st.sets(hashables, max_size=4),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(any_text | st.just("$gnl"), inner, max_size=4)
        | st.dictionaries(hashables, inner, max_size=3)
    ),
    max_leaves=12,
)

confusable = st.recursive(
    st.sampled_from(
        [None, 0, 1, True, False, 0.0, -0.0, 1.0, math.nan, "1", "", b"", "nan", "$gnl", "float"]
    ),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.tuples(inner)
        | st.dictionaries(st.sampled_from(["a", "$gnl", "value", 1, 1.5]), inner, max_size=2)
        | st.frozensets(st.sampled_from([0, "a", b"a"]), max_size=2)
    ),
    max_leaves=3,
)


def same(left: object, right: object, *, ordered: bool = True) -> bool:
    """Equal in value, type and order, all the way down; ``nan`` is the same as ``nan``."""
    if type(left) is not type(right):
        return False
    if isinstance(left, list | tuple):
        pairs = zip(left, right, strict=False)
        return len(left) == len(right) and all(same(*pair, ordered=ordered) for pair in pairs)
    if isinstance(left, dict) and ordered:
        return same(list(left.items()), list(right.items()))
    if isinstance(left, dict | set | frozenset):
        members = [list(side.items() if isinstance(side, dict) else side) for side in (left, right)]
        return len(left) == len(right) and all(
            any(same(one, other, ordered=ordered) for other in members[1]) for one in members[0]
        )
    if isinstance(left, float | Decimal | datetime | time):
        return repr(left) == repr(right)
    return left == right


def refused(constant: str) -> None:
    raise AssertionError(f"{constant} is not strict JSON")


@settings(patient, max_examples=300)
@given(values)
def test_what_is_written_comes_back_with_its_types(value):
    """Every supported value is read back equal in value, type and order, from strict JSON."""
    data = encode(value)

    assert same(decode(data), value)
    json.loads(data, parse_constant=refused)
    assert encode(decode(data)) == data


@settings(patient, max_examples=300)
@given(confusable, confusable)
def test_canonical_bytes_are_equal_for_equal_values_only(one, other):
    """Two values have the same digest exactly if they differ in nothing but the order of keys."""
    alike = same(one, other, ordered=False)

    assert (canonical(one) == canonical(other)) == alike
    assert (digest(one) == digest(other)) == alike


@patient
@given(st.dictionaries(hashables, values, min_size=2, max_size=5), st.randoms(use_true_random=False))
def test_the_order_of_keys_does_not_change_a_digest(value, random):
    """Shuffling a dictionary changes its bytes' order but never its digest."""
    items = list(value.items())
    random.shuffle(items)

    assert digest([dict(items)]) == digest([value])


LOST_ELSEWHERE = {
    "a zero byte": "a\x00b",
    "a zero byte inside": {"s": "\x00"},
    "the escape of a zero byte as text": "\\u0000",
    "a dictionary that looks like a tag": {"$gnl": "tuple", "value": [1]},
    "the tag's key among others": {"$gnl": 1, "a": {"$gnl": {}}},
    "keys that are no strings": {1: "a", "1": "b", None: "c", (1, 2): "d"},
    "floats that JSON lacks": {"score": math.nan, "max": math.inf, "min": -math.inf, "z": -0.0},
    "floats at the edges": [1e16, 5e-324, 1.7976931348623157e308, 0.1 + 0.2],
    "types that become text": {
        "set": {1, 2},
        "b": b"\xff",
        "t": (1, 2),
        "d": Decimal("1.10"),
        "k": {1: "a", "1": "b"},
    },
    "a set in an artifact": {"s": {1}, "when": datetime(2024, 2, 29, 1, 2, 3, 4, tzinfo=UTC)},
    "lone surrogates": ["\ud800", "\ud83d\ude00", "\U0001f600", {"\udfff": 1}],
    "long integers": [2**63 - 1, 2**63, -(2**63), -(2**63) - 1, 2**64, 10**6000, -(10**6000)],
    "decimals": [Decimal(text) for text in ("sNaN7", "-NaN", "-0E+5", "1e-9999", "-Infinity", "1.0", "1.00")],
    "a local time that occurs twice": datetime.fromisoformat("2024-10-27T02:30:00").replace(fold=1),
    "a named offset": time(2, 30, fold=1, tzinfo=timezone(timedelta(hours=2), "CEST")),
    "an offset of less than a second": datetime(1, 1, 1, tzinfo=timezone(timedelta(microseconds=-1))),
    "extremes": [timedelta.min, timedelta.max, date.max, time.max, UUID(int=0), bytearray(b"\x00")],
    "what a loader takes for a secret": {"lc": 1, "type": "secret", "id": ["PATH"]},
    "what a loader takes for a call": {"lc": 1, "type": "constructor", "id": ["os", "system"], "kwargs": {}},
    "empty collections": [[], (), {}, set(), frozenset(), b"", ""],
}


@pytest.mark.parametrize("name", LOST_ELSEWHERE)
def test_values_that_others_lose(name):
    """Values that other journals strip, turn into text, or take for objects come back as they were."""
    value = LOST_ELSEWHERE[name]

    data = encode({"result": value})

    assert same(decode(data), {"result": value})
    assert b"\x00" not in data


def test_texts_with_a_zero_byte_are_told_apart():
    """A zero byte, its JSON escape as text, and its absence are three different texts."""
    texts = ["a\x00b", "a\\u0000b", "ab"]

    assert len({encode(text) for text in texts}) == len(texts)
    assert [decode(encode(text)) for text in texts] == texts


@pytest.mark.parametrize(
    ("one", "other", "verdict"),
    [
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, "same"),
        ({1: "a", "1": "b"}, {"1": "b", 1: "a"}, "same"),
        ({"a": {"y": 1, "x": 2}}, {"a": {"x": 2, "y": 1}}, "same"),
        ({"b", "a"}, {"a", "b"}, "same"),
        (math.nan, -math.nan, "same"),
        (1, 1.0, "different"),
        (True, 1, "different"),
        (False, 0, "different"),
        (0.0, -0.0, "different"),
        (2**53, 2**53 + 1, "different"),
        (2.0**53, 2**53, "different"),
        (2**64, 2.0**64, "different"),
        ([1, 2], [2, 1], "different"),
        ([1, 2], (1, 2), "different"),
        ({1, 2}, frozenset({1, 2}), "different"),
        ("\u00e9", "e\u0301", "different"),
        ("1", 1, "different"),
        (b"a", "a", "different"),
        (None, "null", "different"),
        (Decimal("1.0"), Decimal("1.00"), "different"),
        (math.nan, {"$gnl": "float", "value": "nan"}, "different"),
    ],
    ids=lambda value: ascii(sorted(value) if isinstance(value, set) else value),  # the same in every process
)
def test_the_published_table(one, other, verdict):
    """What counts as the same and what as different is as the documentation of ``canonical`` says."""
    assert (digest(one) == digest(other)) == (verdict == "same")
    assert (digest([one, {"k": one}]) == digest([other, {"k": other}])) == (verdict == "same")


def test_stored_values_keep_the_order_of_their_keys():
    """A dictionary comes back in its own order, since it may stand in a prompt, whatever its digest ignores."""
    value = {"b": 1, "a": {2: "x", 1: "y"}}

    assert list(decode(encode(value))) == ["b", "a"]
    assert list(decode(encode(value))["a"]) == [2, 1]


def test_the_format_is_pinned():
    """Bytes that were written once stay readable, and digests stay what they are, from version to version."""
    written = (
        b'{"n":{"$gnl":"float","value":"nan"},"f":1e16,"i":{"$gnl":"int","value":"0x8000000000000000"},'
        b'"m":{"$gnl":"map","value":[[1,"a"],["$gnl","b"]]},"s":{"$gnl":"frozenset","value":["a","b"]},'
        b'"t":{"$gnl":"datetime","value":["2024-10-27T02:30:00",1,["offset",[0,7200,0],"CEST"]]},'
        b'"d":{"$gnl":"timedelta","value":[-1,5,6]},"b":{"$gnl":"bytes","value":"/w=="}}'
    )
    value = {
        "n": math.nan,
        "f": 1e16,
        "i": 2**63,
        "m": {1: "a", "$gnl": "b"},
        "s": frozenset("ab"),
        "t": datetime(2024, 10, 27, 2, 30, fold=1, tzinfo=timezone(timedelta(hours=2), "CEST")),
        "d": timedelta(-1, 5, 6),
        "b": b"\xff",
    }

    assert same(decode(written), value)
    assert encode([-(2**63), 2**63 - 1]) == b"[-9223372036854775808,9223372036854775807]"
    assert canonical({"b": [1, 1.5, 1e16], "a": "\u00e9"}) == (
        b'{"a":"\xc3\xa9","b":[1,{"$gnl":"float","value":"1.5"},{"$gnl":"float","value":"1e+16"}]}'
    )
    assert digest(value) == "cb112a8911a898b461a6d0a91dc15847ecb580417601e1f2951b60fa167dd530"


def test_bytes_are_the_same_in_every_process():
    """Sets and dictionaries give the same bytes and digests whatever the process's hash seed is."""
    program = (
        "from gnl_middleware.codec import digest, encode\n"
        "words = [f'word-{n}' for n in range(50)]\n"
        "value = {'s': set(words), 'f': frozenset([frozenset(words), frozenset(words[:9])]), 7: {(w, 1) for w in words}}\n"
        "print(encode(value).hex(), digest(value))"
    )

    outputs = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": str(Path(__file__).parents[2])},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "2")
    }

    assert len(outputs) == 1


def test_a_decimal_is_written_the_same_in_every_context():
    """The settings of a thread's decimal context change neither bytes nor what is read."""
    value = Decimal("1.2345678901E+30")
    data = encode(value)

    with localcontext(prec=2, capitals=0, traps=[]):
        assert encode(value) == data
        assert same(decode(data), value)
