"""Classes that the code declares: what the annotations of a function name can be journalled inside its calls.

A record names a class by its qualified name, and that name is only ever looked up among the classes that were declared or
registered: nothing is imported or made because data says so.
"""

import contextlib
import dataclasses
import typing
from collections import Counter
from collections.abc import Generator, Iterable
from typing import Any

from . import tree
from .shapes import conversions, is_shaped
from .tree import Conversion, Declared, declared_now, tagging_writer


def register(
    kind: type,
    *,
    tag: str | None = None,
    to_plain: Conversion | None = None,
    from_plain: Conversion | None = None,
    canonical: Conversion | None = None,
) -> type:
    """Let the values of a class be journalled. Call it where the class is defined; the same call again changes nothing.

    A dataclass, a pydantic model, an enum or a named tuple needs nothing else: ``register(Invoice)``, also as a decorator.

    Args:
        kind: The class, matched exactly: a subclass needs a registration of its own.
        tag: Its name in journals, by default its qualified name; it must not change while there are journals that hold it.
        to_plain: Turns a value into one of supported or registered types, without loss.
        from_plain: Turns that back. It gets data from the journal and should check it.
        canonical: Turns a value into what counts when two are compared; by default ``to_plain``.

    Returns:
        The class.

    Raises:
        ValueError: The class or the tag has another meaning already, or the tag is not printable ASCII.
        TypeError: The class is none of these kinds, and there are no functions.

    Example:
        >>> from gnl_middleware.codec import decode, encode
        >>> register(complex, tag="complex", to_plain=lambda c: [c.real, c.imag], from_plain=lambda p: complex(*p))
        <class 'complex'>
        >>> decode(encode(1 + 2j))
        (1+2j)
    """
    name = kind.__qualname__ if tag is None else tag
    if to_plain is None or from_plain is None:
        found = conversions(kind) if to_plain is None and from_plain is None else None
        if found is None:
            raise TypeError(
                f"{kind.__qualname__} is no dataclass, pydantic model, enum or named tuple: give both functions, "
                f"register({kind.__qualname__}, to_plain=..., from_plain=...)"
            )
        if tree.derived.get(kind) == (tag, canonical):
            return kind
        to_plain, from_plain = found
        tree.register(kind, tag=name, to_plain=to_plain, from_plain=from_plain, canonical=canonical)
        tree.derived[kind] = tag, canonical
        tree.own_tags.add(name)
        return kind
    tree.register(kind, tag=name, to_plain=to_plain, from_plain=from_plain, canonical=canonical)
    return kind


@contextlib.contextmanager
def declaring(kinds: Iterable[type]) -> Generator[None]:
    """Let values of these classes be written and read in here, besides those of registered ones.

    Two classes of one name could not be told apart in a record: neither is known, and one has to be registered.

    Raises:
        TypeError: A class is none that can be declared.
    """
    token = declared_now.set(_table(tuple(kinds)))
    try:
        yield
    finally:
        declared_now.reset(token)


_NOTHING = contextlib.nullcontext()
_tables: dict[tuple[type, ...], Declared] = {}


def declared(kinds: tuple[type, ...]) -> contextlib.AbstractContextManager[None]:
    """As ``declaring``; costs nothing where there are none."""
    return declaring(kinds) if kinds else _NOTHING


def _table(kinds: tuple[type, ...]) -> Declared:
    if (known := _tables.get(kinds)) is not None:
        return known
    table = Declared()
    names = Counter(kind.__qualname__ for kind in kinds)
    for kind in kinds:
        name, pair = kind.__qualname__, conversions(kind)
        if pair is None:
            raise TypeError(f"{name} is no dataclass, pydantic model, enum or named tuple: register it")
        if names[name] > 1:
            continue
        table.writers[kind] = tagging_writer(name, pair[0], pair[0])
        table.readers[name] = pair[1]
    return _tables.setdefault(kinds, table)


def classes_in(annotations: Iterable[Any]) -> tuple[type, ...]:
    """The classes that annotations name, at any depth, whose values can be journalled without registering them.

    Example:
        >>> import enum
        >>> Colour = enum.Enum("Colour", "RED")
        >>> classes_in([list[Colour] | None, int])
        (<enum 'Colour'>,)
    """
    found: dict[int, type] = {}
    seen: dict[int, Any] = {}
    for annotation in annotations:
        _collect(annotation, found, seen)
    return tuple(found.values())


def _collect(annotation: Any, found: dict[int, type], seen: dict[int, Any]) -> None:
    if id(annotation) in seen:
        return
    seen[id(annotation)] = annotation
    for inner in (*typing.get_args(annotation), getattr(annotation, "__value__", None)):
        _collect(inner, found, seen)
    if inner := getattr(annotation, "__supertype__", None):
        _collect(inner, found, seen)
    if not isinstance(annotation, type) or typing.get_origin(annotation) is not None:
        return
    if is_shaped(annotation):
        found[id(annotation)] = annotation
    if is_shaped(annotation) or typing.is_typeddict(annotation):
        for inner in _annotations_of(annotation):
            _collect(inner, found, seen)


def _annotations_of(kind: Any) -> list[Any]:
    if hasattr(kind, "model_fields"):
        return [field.annotation for field in kind.model_fields.values()]
    names = [field.name for field in dataclasses.fields(kind)] if dataclasses.is_dataclass(kind) else None
    hints = hints_of(kind)
    return [hint for name, hint in hints.items() if names is None or name in names]


def hints_of(subject: Any) -> dict[str, Any]:
    """The annotations of a function or class; none where they cannot be found, as with names that are local elsewhere."""
    try:
        return typing.get_type_hints(subject)
    except Exception:  # noqa: BLE001 - annotations are the user's code
        return {}
