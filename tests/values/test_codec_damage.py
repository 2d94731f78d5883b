"""The codec reads data that somebody else may have written: a value or ``JournalCorruptError``, and nothing runs."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from gnl_middleware.codec import MAX_DEPTH, decode, encode
from gnl_middleware.errors import JournalCorruptError

# How long an example takes says more about the machine than about the codec.
patient = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

TAGS = ["str", "int", "float", "map", "tuple", "set", "frozenset", "bytes", "bytearray", "decimal", "uuid"]
TAGS += ["timedelta", "date", "time", "datetime"]
MOMENT = "2024-01-01T00:00:00"


def tagged(tag: object, payload: object) -> bytes:
    return json.dumps({"$gnl": tag, "value": payload}).encode()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"NaN",
        b"[Infinity]",
        b"'a'",
        b"\xff",
        b"\xef\xbb\xbf1",
        b'"\\ud800"',
        b"[1,]",
        b"1 2",
        b"1e400",
        b"\x80\x04\x95\x05\x00\x00\x00\x00\x00\x00\x00\x8c\x01a\x94.",
        b"(lp0\n.",
        b"\x81\xa1a\x01",
    ],
    ids=ascii,
)
def test_what_is_not_strict_json_is_damage(data):
    """Bytes of another format, lenient JSON included, are refused as damage."""
    with pytest.raises(JournalCorruptError, match="no strict JSON"):
        decode(data)


@pytest.mark.parametrize(
    ("tag", "payload"),
    [
        ("int", "1_0"),
        ("int", " 0x1"),
        ("int", "16"),
        ("int", 5),
        ("int", None),
        ("float", "NaN"),
        ("float", "infinity"),
        ("float", "1e5"),
        ("float", [1]),
        ("str", "YQ"),
        ("str", "YR=="),
        ("str", "Y*Q=="),
        ("bytes", "/x=="),
        ("bytes", "é"),
        ("bytearray", 3),
        ("decimal", "1_0"),
        ("decimal", " 1"),
        ("decimal", "\u0661"),
        ("decimal", "x"),
        ("uuid", "{00000000-0000-0000-0000-000000000000}"),
        ("uuid", "0" * 32),
        ("date", "20240101"),
        ("date", "2024-13-01"),
        ("timedelta", [1]),
        ("timedelta", [0, 86400, 0]),
        ("timedelta", [10**10, 0, 0]),
        ("timedelta", [0, 0, 0, 1]),
        ("time", ["T12", 0, None]),
        ("datetime", ["2024-01-01", 0, None]),
        ("datetime", [f"{MOMENT}Z", 0, None]),
        ("datetime", [MOMENT, 2, None]),
        ("datetime", [MOMENT, 0]),
        ("datetime", [MOMENT, 0, ["offset", [9, 0, 0], None]]),
        ("datetime", [MOMENT, 0, ["offset", [0, 0, 0], 7]]),
        ("datetime", [MOMENT, 0, ["offset", [0, 0, 0], "UTC"]]),
        ("datetime", [MOMENT, 0, ["key", "../../../etc/passwd", [0, 0, 0]]]),
        ("datetime", [MOMENT, 0, ["key", ["Europe"], [0, 0, 0]]]),
        ("datetime", [MOMENT, 0, ["else", "Europe", [0, 0, 0]]]),
        ("datetime", {"0": MOMENT}),
        ("tuple", "ab"),
        ("tuple", {"a": 1}),
        ("set", [1, 1]),
        ("set", [1, True]),
        ("set", [[1]]),
        ("frozenset", [{}]),
        ("map", [["a", 1], ["a", 2]]),
        ("map", [["a"]]),
        ("map", [[["a"], 1]]),
        ("map", {"ab": 1}),
        ("map", ["ab"]),
    ],
    ids=ascii,
)
def test_a_payload_that_the_codec_does_not_write_is_damage(tag, payload):
    """A payload must be exactly what the codec writes: what lenient parsers would let pass is damage."""
    with pytest.raises(JournalCorruptError, match=f"tag '{tag}' has a value that cannot be read"):
        decode(tagged(tag, payload))


@pytest.mark.parametrize(
    "data",
    [
        b'{"$gnl":"tuple"}',
        b'{"$gnl":"tuple","value":[],"more":1}',
        b'{"$gnl":"tuple","values":[]}',
        b'{"$gnl":["tuple"],"value":[]}',
        b'{"$gnl":null,"value":[]}',
        b'{"$gnl":{"$gnl":"str","value":"YQ=="},"value":[]}',
        b'{"$gnl":"no such tag","value":[]}',
        b'{"\\u0024gnl":"no such tag","value":[]}',
        b'[{"a":{"$gnl":"","value":1}}]',
    ],
    ids=ascii,
)
def test_an_unknown_tag_is_damage(data):
    """A tagged object that this process cannot read is refused; it never comes back as a dictionary or as None."""
    with pytest.raises(JournalCorruptError, match=r"tag"):
        decode(data)


def test_a_type_that_is_gone_is_named():
    """When the type behind a tag is not registered any more, the error names the tag and says what to do."""
    with pytest.raises(JournalCorruptError, match=r"'support\.Ticket' is not registered.*import the module"):
        decode(tagged("support.Ticket", {"id": 7}))


@pytest.mark.parametrize("opening", [b"[", b'{"a":', b'{"$gnl":"tuple","value":['])
@pytest.mark.parametrize("levels", [MAX_DEPTH + 2, 1_000, 100_000])
def test_deep_data_is_damage(opening, levels):
    """Data nested deeper than the codec writes is refused without exhausting the stack."""
    closing = opening.translate(bytes.maketrans(b"[{", b"]}"), b'"$a:gnltupevs,')[::-1]

    with pytest.raises(JournalCorruptError):
        decode(opening * levels + b"1" + closing * levels)


json_trees = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-9, 9)
    | st.text()
    | st.sampled_from([*TAGS, MOMENT, "0x1", "YQ==", "nan", "offset", "key", "UTC"]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.fixed_dictionaries({"$gnl": st.sampled_from(TAGS) | inner, "value": inner})
        | st.dictionaries(st.sampled_from(["$gnl", "value", "a"]), inner)
    ),
    max_leaves=12,
)


@settings(patient, max_examples=500)
@given(st.binary() | json_trees.map(lambda tree: json.dumps(tree).encode()))
@example(tagged("set", [{"$gnl": "decimal", "value": "sNaN"}]))
@example(tagged("timedelta", [1e308, 1e308, 1e308]))
def test_any_bytes_give_a_value_or_damage(data):
    """Whatever stands in a row, reading it gives a value that can be written again, or ``JournalCorruptError``."""
    try:
        value = decode(data)
    except JournalCorruptError:
        return

    assert isinstance(encode(value), bytes)


WRITTEN = encode(
    {
        "text": "é\ud800\n",
        "t": (1, 2**70, -0.0, {1: b"\xff"}),
        "s": {frozenset("ab")},
        "nested": [[{"a": [None, True, float("inf")]}]],
    }
)


@settings(patient, max_examples=500)
@given(st.lists(st.tuples(st.integers(0, len(WRITTEN) - 1), st.integers(0, 255)), min_size=1, max_size=3))
def test_changed_bytes_give_a_value_or_damage(changes):
    """Flipped bytes in a row that was written give a value or ``JournalCorruptError``, never another error."""
    data = bytearray(WRITTEN)
    for place, byte in changes:
        data[place] = byte

    try:
        value = decode(bytes(data))
    except JournalCorruptError:
        return

    assert isinstance(value, dict)


@patient
@given(st.integers(0, len(WRITTEN) - 1))
def test_cut_bytes_are_damage(length):
    """A row that was cut off is damage wherever the cut is."""
    with pytest.raises(JournalCorruptError):
        decode(WRITTEN[:length])


HOSTILE = (
    tagged("os.system", "touch marker"),
    tagged(["os", "system"], ["touch marker"]),
    tagged("hostile", 1),
    tagged("hostile.build", 1),
    tagged("hostile:build", 1),
    tagged("datetime", [MOMENT, 0, ["key", "hostile/zone", [0, 0, 0]]]),
    tagged("time", ["12:00:00", 0, ["key", "hostile/zone", None]]),
    b"cos\nsystem\n(S'touch marker'\ntR.",
    b"!!python/object/apply:os.system ['touch marker']",
)
HARMLESS = (
    {"lc": 1, "type": "secret", "id": ["SECRET_OF_THE_PROCESS"]},
    {"lc": 1, "type": "constructor", "id": ["hostile", "build"], "kwargs": {}},
    {"__class__": "hostile.build", "py/object": "hostile.build", "__reduce__": ["hostile", "build"]},
)
READER = """
import json, sys
from gnl_middleware.codec import decode, encode
from gnl_middleware.errors import JournalCorruptError
for line in sys.stdin:
    try:
        print(json.dumps(decode(bytes.fromhex(line))))
    except JournalCorruptError:
        print('"damage"')
"""


def test_nothing_that_data_names_is_run_or_imported(tmp_path):
    """Hostile rows import no module, run no command, make no object and read no environment variable."""
    marker = tmp_path / "marker"
    for package in ("hostile", "tzdata", "tzdata/zoneinfo", "tzdata/zoneinfo/hostile"):
        (tmp_path / package).mkdir()
        leaves_mark = package.endswith("hostile")
        source = f"open({str(marker)!r}, 'w').close()" if leaves_mark else ""
        (tmp_path / package / "__init__.py").write_text(source, encoding="utf-8")
    rows = [*HOSTILE, *map(encode, HARMLESS)]

    done = subprocess.run(
        [sys.executable, "-c", READER],
        input="\n".join(row.hex() for row in rows),
        env={
            "PYTHONPATH": os.pathsep.join([str(tmp_path), str(Path(__file__).parents[2])]),
            "PATH": os.environ["PATH"],
            "SECRET_OF_THE_PROCESS": "hunter2",
        },
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )

    assert [json.loads(line) for line in done.stdout.splitlines()] == ["damage"] * len(HOSTILE) + list(
        HARMLESS
    )
    assert not marker.exists()
    assert "hunter2" not in done.stdout
