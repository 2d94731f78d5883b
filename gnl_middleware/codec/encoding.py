"""Trees to bytes and back, and what is hashed."""

import hashlib
from typing import Any

import orjson

from gnl_middleware.errors import JournalCorruptError

from .scalars import SCALARS
from .tree import SCALAR_TAGS, exactly, read, register, write

for _kind, _to_plain, _from_plain in SCALARS:
    register(
        _kind,
        tag=_kind.__name__.lower(),
        to_plain=_to_plain,
        from_plain=exactly(_to_plain, _from_plain),
    )
    SCALAR_TAGS.add(_kind.__name__.lower())


def encode(value: Any) -> bytes:
    """Strict JSON that ``decode`` turns into an equal value of the same types.

    Dictionaries keep their order, sets are sorted: the same value gives the same bytes in every process.

    Raises:
        UnserializableValueError: The value holds something of an unsupported type, nests deeper than ``MAX_DEPTH`` levels,
            or contains itself. The error names the path.

    Example:
        >>> encode({"customer": "c-1", "open": (1, 2)})
        b'{"customer":"c-1","open":{"$gnl":"tuple","value":[1,2]}}'
    """
    return orjson.dumps(write(value, 1, False))


def decode(data: bytes) -> Any:
    """The value that ``encode`` was given.

    Raises:
        JournalCorruptError: The bytes are no strict JSON, hold a tag that is not registered in this process, or a tag with
            a payload that ``encode`` does not write.

    Example:
        >>> decode(b'{"$gnl":"tuple","value":[1,2]}')
        (1, 2)
    """
    return read(_parsed(data), 1)


def outline(data: bytes) -> Any:
    """As ``decode``, for people to look at: a tag that is not registered here stays as ``{"$gnl": TAG, "value": ...}``.

    Raises:
        JournalCorruptError: As for ``decode``, but for tags that are not registered.

    Example:
        >>> outline(b'{"$gnl":"invoice","value":{"number":"T-7"}}')
        {'$gnl': 'invoice', 'value': {'number': 'T-7'}}
    """
    return read(_parsed(data), 1, outline=True)


def _parsed(data: bytes) -> Any:
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise JournalCorruptError(problem=f"the bytes are no strict JSON ({error})") from error


def canonical(value: Any) -> bytes:
    """Bytes to hash: equal for values that count as the same, different for all others. They cannot be read back.

    As ``encode``, but without the order of dictionaries, and with the canonical form of registered types, which leaves out
    what frameworks make up anew each time. Floats are spelled by Python, so that digests outlive JSON libraries.

    | pair | counts as |
    |---|---|
    | the order of a dictionary's keys, or of a set | same |
    | ``nan`` and ``nan`` | same |
    | ``1`` and ``1.0``; ``1`` and ``True``; ``0.0`` and ``-0.0`` | different |
    | ``2**53`` and ``2**53 + 1`` | different |
    | the order of a list; a list and a tuple | different |
    | an accent composed and decomposed | different |

    Raises:
        UnserializableValueError: As for ``encode``.

    Example:
        >>> canonical({"b": 1, "a": 2}) == canonical({"a": 2, "b": 1})
        True
    """
    return orjson.dumps(write(value, 1, True), option=orjson.OPT_SORT_KEYS)


def digest(value: Any) -> str:
    """SHA-256 of the value's canonical bytes, in hexadecimal.

    Raises:
        UnserializableValueError: As for ``encode``.

    Example:
        >>> digest(1) == digest(1.0)
        False
    """
    return content_hash(canonical(value))


def content_hash(data: bytes) -> str:
    """SHA-256 of bytes, in hexadecimal.

    Example:
        >>> content_hash(b"")[:8]
        'e3b0c442'
    """
    return hashlib.sha256(data).hexdigest()
