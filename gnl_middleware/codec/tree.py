"""Between values and trees of what JSON holds exactly, by one table for each direction."""

import base64
import math
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, cast

import orjson

from gnl_middleware.errors import JournalCorruptError, UnreadableTypeError, UnserializableValueError

MAX_DEPTH = 200
"""How deep the JSON may nest: a list or dict is one level, a tuple or set two, a dict with other keys three.

It lies below the limits of the JSON library and of Python's stack, so that what can be written can be read.
"""

TAG = "$gnl"
"""The key of a tag in a tree."""

PAYLOAD = "value"
"""The key of what is tagged."""

SCALAR_TAGS = {"str", "int", "float"}
"""Tags of single values, whose payloads are no texts of the user's."""

_INT64 = 2**63
_LABEL_LENGTH = 80

Writer = Callable[[Any, int, bool], Any]
"""Takes the value, its level in the JSON from 1, and whether the canonical form is wanted."""

Conversion = Callable[[Any], Any]

_writers: dict[type, Writer] = {}
_readers: dict[str, Conversion] = {}
_registered: dict[type, tuple[str, Conversion, Conversion, Conversion | None]] = {}
derived: "dict[type, tuple[str | None, Conversion | None]]" = {}
"""Registered types whose functions follow from their kind, with the tag that was asked for."""

own_tags: set[str] = set()
"""The tags of those."""


@dataclass(frozen=True, slots=True)
class Declared:
    """Types that only the calls of one function know."""

    writers: dict[type, Writer] = field(default_factory=dict[type, Writer])
    readers: dict[str, Conversion] = field(default_factory=dict[str, Conversion])


declared_now: "ContextVar[Declared | None]" = ContextVar("gnl_declared", default=None)


def register(
    kind: type,
    *,
    tag: str,
    to_plain: Conversion,
    from_plain: Conversion,
    canonical: Conversion | None = None,
) -> None:
    """Give a type its tag and its functions; see ``codec.register``, which users call.

    Raises:
        ValueError: The type or the tag has another meaning already, or the tag is not printable ASCII.
    """
    conversions = (tag, to_plain, from_plain, canonical)
    if _registered.get(kind) == conversions:
        return
    if not (tag and tag.isascii() and tag.isprintable()):
        raise ValueError(
            f"The tag {tag!r} cannot name a type in a journal. Choose a short name in printable ASCII."
        )
    if kind in _writers or tag in _readers:
        taken = f"type {kind.__qualname__}" if kind in _writers else f"tag {tag!r}"
        raise ValueError(
            f"The {taken} is supported already, or registered with other functions. With two meanings journals could not be "
            f"read back. Register each type once, beside its definition, with functions of that module and a tag of its own."
        )
    _writers[kind] = tagging_writer(tag, to_plain, canonical or to_plain)
    _readers[tag] = from_plain
    _registered[kind] = conversions


def write(value: object, depth: int, hashing: bool) -> Any:
    """The tree of a value; ``hashing`` asks for the canonical form.

    Raises:
        UnserializableValueError: Something in it is unsupported or too deep.

    Example:
        >>> write([1, (2,)], 1, False)
        [1, {'$gnl': 'tuple', 'value': [2]}]
    """
    return _writers.get(type(value), _refuse)(value, depth, hashing)


def read(plain: Any, depth: int, *, outline: bool = False) -> Any:
    """The value of a tree, which is changed in place.

    Args:
        plain: The tree.
        depth: The level that it stands on.
        outline: Leave a tag that is not registered as it is stored, for people to look at.

    Raises:
        JournalCorruptError: A tag or its payload is none that ``write`` gives, or the tree is too deep.

    Example:
        >>> read([1, {"$gnl": "tuple", "value": [2]}], 1)
        [1, (2,)]
    """
    kind: type = type(cast("object", plain))
    if kind is not list and kind is not dict:
        return plain
    if depth > MAX_DEPTH + 1:  # on the last level a number or text may have a tag
        raise JournalCorruptError(problem=f"the value nests more than {MAX_DEPTH} levels deep")
    for place, item in enumerate(plain) if kind is list else plain.items():
        if type(item) is dict or type(item) is list:
            plain[place] = read(item, depth + 1, outline=outline)
    return _read_tagged(plain, outline=outline) if kind is dict and TAG in plain else plain


def exactly(to_plain: Conversion, from_plain: Conversion) -> Conversion:
    """A ``from_plain`` that takes only what ``to_plain`` gives.

    The parsers of the standard library also take underscores, spaces or other digits; in a journal that is damage.

    Example:
        >>> exactly(hex, lambda text: int(text, 16))("0xff")
        255
    """

    def read_exactly(payload: Any) -> Any:
        value = from_plain(payload)
        if to_plain(value) != payload:
            raise ValueError("not in the form in which it is written")
        return value

    return read_exactly


def type_name(value: object) -> str:
    """The full name of a value's type.

    Example:
        >>> type_name(1j)
        'complex'
    """
    kind = type(value)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def _refuse(value: Any, depth: int, hashing: bool) -> Any:
    declared = declared_now.get()
    if declared is not None and (writer := declared.writers.get(type(cast("object", value)))) is not None:
        return writer(value, depth, hashing)
    raise UnserializableValueError(path="$", type_name=type_name(value))


def _refuse_below(value: Any, depth: int) -> None:
    if depth > MAX_DEPTH:
        found = f"{type_name(value)} nested more than {MAX_DEPTH} levels deep, or within itself"
        raise UnserializableValueError(path="$", type_name=found)


def _within(label: str, error: UnserializableValueError) -> UnserializableValueError:
    return UnserializableValueError(path=f"${label}{error.path[1:]}", type_name=error.type_name)


def _shortened(text: str) -> str:
    return text if len(text) <= _LABEL_LENGTH else f"{text[:_LABEL_LENGTH]}…"


def _label(plain_key: Any) -> str:
    # Other keys than strings are shown as they are written: their repr may be huge, raise, or show what it should not.
    if type(plain_key) is not str:
        return f"[{_shortened(orjson.dumps(plain_key).decode())}]"
    return f".{_shortened(plain_key)}" if plain_key.isidentifier() else f"[{_shortened(repr(plain_key))}]"


def tagging_writer(tag: str, to_plain: Conversion, to_canonical: Conversion) -> Writer:
    """Writes values of a type under a tag."""

    def write_tagged(value: Any, depth: int, hashing: bool) -> Any:
        _refuse_below(value, depth)
        try:
            plain: object = to_canonical(value) if hashing else to_plain(value)
        except UnserializableValueError:
            raise
        except Exception as error:
            found = f"{type_name(value)} that its registered function does not take ({type(error).__name__})"
            raise UnserializableValueError(path="$", type_name=found) from error
        return {TAG: tag, PAYLOAD: _writers.get(type(plain), _refuse)(plain, depth + 1, hashing)}

    return write_tagged


def _write_unchanged(value: Any, _depth: int, _hashing: bool) -> Any:
    return value


def _write_str(value: str, _depth: int, _hashing: bool) -> Any:
    return value if _is_unicode(value) else {TAG: "str", PAYLOAD: _str_to_base64(value)}


def _is_unicode(text: str) -> bool:
    try:
        return text.isascii() or bool(text.encode())
    except UnicodeEncodeError:  # a lone surrogate
        return False


def _str_to_base64(value: str) -> str:
    # Not as JSON escapes: two lone surrogates in a row would come back as one character.
    return base64.b64encode(value.encode("utf-8", "surrogatepass")).decode()


def _str_from_base64(payload: str) -> str:
    return base64.b64decode(payload).decode("utf-8", "surrogatepass")


def _write_int(value: int, _depth: int, _hashing: bool) -> Any:
    # In hexadecimal, which Python's limit on the length of decimal numbers does not touch.
    return value if -_INT64 <= value < _INT64 else {TAG: "int", PAYLOAD: hex(value)}


def _int_from_hex(payload: str) -> int:
    return int(payload, 16)


def _write_float(value: float, _depth: int, hashing: bool) -> Any:
    return {TAG: "float", PAYLOAD: repr(value)} if hashing or not math.isfinite(value) else value


def _write_items(value: list[object] | tuple[object, ...], depth: int, hashing: bool) -> list[Any]:
    _refuse_below(value, depth)
    plain = list(value)
    index = 0
    try:
        for index, item in enumerate(plain):
            if type(item) is str and item.isascii():
                continue
            plain[index] = _writers.get(type(item), _refuse)(item, depth + 1, hashing)
    except UnserializableValueError as error:
        raise _within(f"[{index}]", error) from error.__cause__
    return plain


def _write_tuple(value: tuple[object, ...], depth: int, hashing: bool) -> Any:
    return {TAG: "tuple", PAYLOAD: _write_items(value, depth + 1, hashing)}


def _write_set(value: set[object] | frozenset[object], depth: int, hashing: bool) -> Any:
    _refuse_below(value, depth + 1)
    try:
        members = [write(member, depth + 2, hashing) for member in value.copy()]
    except UnserializableValueError as error:
        raise _within("[*]", error) from error.__cause__
    return {TAG: type(value).__name__, PAYLOAD: sorted(members, key=_order)}


def _order(plain: Any) -> bytes:
    return orjson.dumps(plain, option=orjson.OPT_SORT_KEYS)


def _write_dict(value: dict[Any, object], depth: int, hashing: bool) -> Any:
    plain = value.copy()  # another thread may go on adding to the original
    for name in plain:
        if type(name) is not str or name == TAG or not (name.isascii() or _is_unicode(name)):
            return _write_map(plain, depth, hashing)
    _refuse_below(value, depth)
    name = ""
    try:
        for name, item in plain.items():
            if type(item) is str and item.isascii():
                continue  # most are, and stay as they are
            plain[name] = _writers.get(type(item), _refuse)(item, depth + 1, hashing)
    except UnserializableValueError as error:
        raise _within(_label(name), error) from error.__cause__
    return plain


def _write_map(value: dict[Any, object], depth: int, hashing: bool) -> Any:
    _refuse_below(value, depth + 2)
    pairs: list[tuple[Any, Any]] = []
    plain_key, key_written = None, False
    try:
        for key, item in value.items():
            key_written = False
            plain_key = write(key, depth + 3, hashing)
            key_written = True
            pairs.append((plain_key, write(item, depth + 3, hashing)))
    except UnserializableValueError as error:
        raise _within(_label(plain_key) if key_written else ".keys()[*]", error) from error.__cause__
    if hashing:
        pairs.sort(key=lambda pair: _order(pair[0]))
    return {TAG: "map", PAYLOAD: pairs}


def _read_tagged(plain: dict[Any, Any], *, outline: bool) -> Any:
    tag = plain[TAG]
    if plain.keys() != {TAG, PAYLOAD} or type(tag) is not str:
        raise JournalCorruptError(problem="a tagged object has other parts than its tag and its value")
    from_plain = _readers.get(tag) or _declared_reader(tag)
    if from_plain is None and outline:
        return plain
    if from_plain is None:
        raise UnreadableTypeError(
            type_name=_shortened(tag),
            problem=f"tag {_shortened(repr(tag))} is not registered in this process (if it is a type of yours or of an "
            f"adapter, import the module that registers it first), and the step does not declare it",
        )
    try:
        return from_plain(plain[PAYLOAD])
    except UnreadableTypeError:
        raise
    except Exception as error:
        if tag in own_tags or _declared_reader(tag) is from_plain:
            problem = _shortened(" ".join(f"{type(error).__name__}: {error}".split()))
            raise UnreadableTypeError(type_name=_shortened(tag), problem=problem) from error
        reason = _shortened(f"{type(error).__name__}: {error}")
        raise JournalCorruptError(
            problem=f"tag {tag!r} has a value that cannot be read ({reason})"
        ) from error


def _declared_reader(tag: str) -> Conversion | None:
    declared = declared_now.get()
    return None if declared is None else declared.readers.get(tag)


def _items(payload: Any) -> list[Any]:
    if type(payload) is not list:
        raise TypeError("not a list")
    return cast("list[Any]", payload)


def _read_tuple(payload: Any) -> tuple[Any, ...]:
    return tuple(_items(payload))


def _read_set(payload: Any) -> set[Any]:
    members = set(_items(payload))
    if len(members) != len(payload):
        raise ValueError("a member occurs twice")
    return members


def _read_frozenset(payload: Any) -> frozenset[Any]:
    return frozenset(_read_set(payload))


def _read_map(payload: Any) -> dict[Any, Any]:
    pairs = [_items(pair) for pair in _items(payload)]
    mapping: dict[Any, Any] = dict(pairs)
    if len(mapping) != len(pairs):
        raise ValueError("a key occurs twice")
    return mapping


_writers |= {
    type(None): _write_unchanged,
    bool: _write_unchanged,
    str: _write_str,
    int: _write_int,
    float: _write_float,
    list: _write_items,
    dict: _write_dict,
    tuple: _write_tuple,
    set: _write_set,
    frozenset: _write_set,
}
_readers |= {
    "str": exactly(_str_to_base64, _str_from_base64),
    "int": exactly(hex, _int_from_hex),
    "float": exactly(repr, float),
    "map": _read_map,
    "tuple": _read_tuple,
    "set": _read_set,
    "frozenset": _read_frozenset,
}
