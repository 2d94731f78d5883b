"""A payload that holds a long part of another one is stored as the rest of it, and where that part goes.

What a tool gave is told to the model next: the same text would stand in the journal as the tool's value and once more among
the new messages of the request. Long texts are found as JSON writes them, whatever stands around them on either side.
"""

import re
from typing import Any, NamedTuple, cast

import orjson

SHORTEST = 256
"""Bytes from which a common part is worth its place."""

_MOST_PARTS = 8
_TEXT = re.compile(rb'"([^"\\]*(?:\\.[^"\\]*)*)"', re.DOTALL)
_END = b"\n"


class Splice(NamedTuple):
    """What is stored of a payload, and the hash of the one that holds what is left out."""

    body: bytes
    source: str


def spliced(body: bytes, source: bytes) -> bytes | None:
    r"""The body without what it has in common with the source, and where that goes; None where that is too little.

    Example:
        >>> spliced(b'["said ' + b"x" * 300 + b'"]', b'"' + b"x" * 300 + b'"')
        b'[[7,1,300]]\n["said "]'
    """
    parts: list[tuple[int, int, int]] = []
    for start, length in _long_texts(source):
        place = body.find(source[start : start + length])
        if place >= 0 and not any(_meet((place, length), (at, long)) for at, _, long in parts):
            parts.append((place, start, length))
    if not parts:
        return None
    parts.sort()
    ends = [0, *(place + length for place, _, length in parts)]
    begins = [*(place for place, _, _ in parts), len(body)]
    rest = b"".join(body[end:begin] for end, begin in zip(ends, begins, strict=True))
    return orjson.dumps(parts) + _END + rest


def joined(stored: bytes, source: bytes) -> bytes:
    r"""The body again; whether it is the one that was stored, its hash tells.

    Raises:
        ValueError: It is nothing that ``spliced`` gives.

    Example:
        >>> joined(b'[[2,1,3]]\n[""]', b'"abc"')
        b'["abc"]'
    """
    head, end, rest = stored.partition(_END)
    found: Any = orjson.loads(head)
    if not end or not isinstance(found, list):
        raise ValueError("it is not spliced")
    pieces: list[bytes] = []
    taken = written = 0
    for part in cast("list[Any]", found):
        place, start, length = _part(part)
        between = place - written
        pieces += [rest[taken : taken + between], source[start : start + length]]
        taken, written = taken + between, place + length
    return b"".join([*pieces, rest[taken:]])


def _part(part: Any) -> tuple[int, int, int]:
    if not isinstance(part, list) or [type(item) for item in cast("list[Any]", part)] != [int] * 3:
        raise ValueError("it is not spliced")
    place, start, length = cast("list[int]", part)
    return place, start, length


def _long_texts(source: bytes) -> list[tuple[int, int]]:
    """Where the long texts of some JSON begin and how long they are, the longest first."""
    found = [(each.start(1), len(each[1])) for each in _TEXT.finditer(source) if len(each[1]) >= SHORTEST]
    return sorted(found, key=lambda text: -text[1])[:_MOST_PARTS]


def _meet(one: tuple[int, int], other: tuple[int, int]) -> bool:
    return one[0] < other[0] + other[1] and other[0] < one[0] + one[1]
