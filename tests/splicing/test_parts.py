"""What two payloads have in common, as bytes: whatever is left out is put back exactly where it was."""

import json

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnl_middleware.storage.splicing import SHORTEST, joined, spliced

LONG = 'a long text with a "quoted" word, a \\ and an ü. ' * 10
TEXTS = st.text(max_size=20).map(lambda part: part * 30) | st.sampled_from([LONG, LONG[:300], LONG[7:]])
VALUES = st.recursive(
    TEXTS | st.none() | st.integers(-(2**53), 2**53),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=8,
)


@given(VALUES, VALUES, VALUES)
def test_nothing_is_lost(before, value, after):
    """Whatever a tool gives and wherever a request holds it: the request comes back byte for byte."""
    source = orjson.dumps(value)
    body = orjson.dumps([before, {"content": value}, {"told": [after, value]}])

    stored = spliced(body, source)

    if stored is not None:
        assert joined(stored, source) == body


def test_long_text_is_left_out():
    """A long text is left out, wherever it stands and whatever it has to be written with."""
    source, body = (json.dumps(value).encode() for value in (LONG, [{"role": "tool", "content": LONG}]))

    stored = spliced(body, source)

    assert stored is not None
    assert len(stored) < 60
    assert joined(stored, source) == body


def test_several_texts_are_left_out():
    """Of a result with several long texts each is left out, in the order in which the request has them."""
    texts = [str(number) * SHORTEST for number in range(3)]
    source, body = orjson.dumps(texts), orjson.dumps([*reversed(texts), "besides"])

    stored = spliced(body, source)

    assert stored is not None
    assert len(stored) < 100
    assert joined(stored, source) == body


@pytest.mark.parametrize("length", [SHORTEST - 1, SHORTEST])
def test_short_texts_stay(length):
    """What would save less than it costs is not left out."""
    source, body = orjson.dumps("x" * length), orjson.dumps(["x" * length])

    assert (spliced(body, source) is None) is (length < SHORTEST)


def test_nothing_in_common():
    """Payloads with nothing in common are stored as they are."""
    assert spliced(orjson.dumps(["y" * 1000]), orjson.dumps("x" * 1000)) is None


@pytest.mark.parametrize(
    "stored",
    [b"", b"\n", b"[[1,2,3]]", b"7\n", b"{}\nrest", b"[7]\n", b"[[1,2]]\n", b'[["1",2,3]]\n', b"[[1.0,2,3]]\n", b"[[true,1,2]]\n"],
)  # fmt: skip
def test_what_is_not_spliced_is_an_error(stored):
    """Bytes that are no splice are an error, never a payload that somebody made up."""
    with pytest.raises(ValueError):  # noqa: PT011 - each parser says it in its own words
        joined(stored, b'"source"')
