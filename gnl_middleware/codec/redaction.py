"""Take texts out of encoded values: data that must not be kept never reaches the journal.

Texts are redacted wherever a value holds one, also inside of tuples, sets and registered types. Keys of dictionaries,
tags, numbers, bytes, dates and the like stay as they are.
"""

from collections.abc import Callable
from typing import Any, cast

import orjson

from gnl_middleware.errors import UnserializableValueError

from .tree import PAYLOAD, SCALAR_TAGS, TAG, read, write

_Redact = Callable[[str], str]


def redacted(data: bytes, redact: Callable[[str], str]) -> bytes:
    """What ``encode`` gave, with each text replaced by what the function gives for it.

    Raises:
        UnserializableValueError: The function raised, or gave no text.

    Example:
        >>> redacted(b'{"key":["key",7]}', str.upper)
        b'{"key":["KEY",7]}'
    """
    return orjson.dumps(_redacted(orjson.loads(data), redact))


def _redacted(tree: Any, redact: _Redact) -> Any:
    if type(tree) is str:
        return write(_applied(tree, redact), 1, False)
    if type(tree) is list:
        return [_redacted(item, redact) for item in cast("list[Any]", tree)]
    if type(tree) is not dict:
        return tree
    tree = cast("dict[str, Any]", tree)
    if TAG in tree:
        return _redacted_tagged(tree, redact)
    return {name: _redacted(item, redact) for name, item in tree.items()}


def _redacted_tagged(tree: dict[str, Any], redact: _Redact) -> Any:
    tag, payload = tree[TAG], tree[PAYLOAD]
    if tag == "str":  # a text that JSON cannot hold
        return write(_applied(read(dict(tree), 1), redact), 1, False)
    if tag in SCALAR_TAGS:
        return tree
    if tag == "map":
        return {TAG: tag, PAYLOAD: [[key, _redacted(item, redact)] for key, item in payload]}
    told = _redacted(payload, redact)
    if tag in ("set", "frozenset"):
        # Members that differed only in what was taken out are one now.
        ordered = {orjson.dumps(item, option=orjson.OPT_SORT_KEYS): item for item in told}
        told = [ordered[order] for order in sorted(ordered)]
    return {TAG: tag, PAYLOAD: told}


def _applied(text: str, redact: _Redact) -> str:
    try:
        told: object = redact(text)
    except Exception as error:
        raise _failed(type(error).__name__) from error
    if type(told) is not str:
        raise _failed(f"it gave {type(told).__name__}")
    return told


def _failed(reason: str) -> UnserializableValueError:
    return UnserializableValueError(path="$", type_name=f"text that redact= did not take ({reason})")
