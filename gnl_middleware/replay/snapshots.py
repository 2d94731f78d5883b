"""What something was when it was described, so that it is described anew only where somebody has changed it.

Frameworks hand on a whole history with each request, as the same objects or as equal ones, and anybody may have changed
one of them in place meanwhile. To see that nobody has costs a small part of what a description and its digest cost.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from itertools import chain
from operator import is_
from typing import Any, cast

_LEAVES: frozenset[type] = frozenset({str, int, float, bool, bytes, type(None)})
_ALIKE_IF_EQUAL: frozenset[type] = frozenset({str, int, bytes})
"""Types whose equal values have the same digest; 0.0 and -0.0 have not."""

_MAX_DEPTH = 30


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A value as it was: its containers are copied, what nobody can change is shared.

    Attributes:
        kind: Its type: a list, a tuple, or a dictionary with texts as keys.
        names: The keys, of a dictionary.
        items: The very objects that it held.
        inside: The containers among them, by their place, as they were.
        live: All containers below it, as they are at any time: what they hold, and the keys of those that have some.
        sizes: How much each of them held.
        held: What they held, one after another.
    """

    kind: type
    names: tuple[str, ...]
    items: tuple[Any, ...]
    inside: "dict[int, Snapshot]"
    live: tuple[Collection[Any], ...]
    sizes: list[int]
    held: tuple[Any, ...]

    @classmethod
    def of(cls, value: Any) -> "Snapshot | None":
        """The value as it is now; None where it holds anything of which nobody could tell later whether it has changed.

        Example:
            >>> Snapshot.of([{"type": "text", "text": "Hello"}]) is None, Snapshot.of([object()]) is None
            (False, True)
        """
        return _taken(value, 1)

    def fits(self, value: Any) -> bool:
        """Whether a value is, type by type, what this one was.

        Example:
            >>> snapshot = Snapshot.of([1])
            >>> snapshot.fits([1]), snapshot.fits([True]), snapshot.fits([1.0])
            (True, False, False)
        """
        if type(value) is not self.kind or len(value) != len(self.items):
            return False
        if self.kind is dict:
            named = cast("dict[Any, Any]", value)
            if not (all(map(is_, named, self.names)) or all(map(_is_alike, named, self.names))):
                return False
            value = named.values()
        # Mostly it is made of the very same objects, and so are the containers in it: no need to go into them one by one.
        if all(map(is_, value, self.items)) and (
            not self.live
            or (
                list(map(len, self.live)) == self.sizes
                and all(map(is_, chain.from_iterable(self.live), self.held))
            )
        ):
            return True
        return self._holds_alike(value)

    def _holds_alike(self, items: Iterable[Any]) -> bool:
        for place, item in enumerate(items):
            inside = self.inside.get(place)
            if not (_is_alike(item, self.items[place]) if inside is None else inside.fits(item)):
                return False
        return True


def _is_alike(now: object, then: object) -> bool:
    if now is then:
        return True
    kind = type(now)
    return kind in _ALIKE_IF_EQUAL and kind is type(then) and now == then


def _taken(value: object, depth: int) -> Snapshot | None:
    kind = type(value)
    names: tuple[Any, ...] = ()
    if kind is dict:
        named = cast("dict[Any, Any]", value).copy()  # another thread may go on adding to the original
        names, items = tuple(named), tuple(named.values())
        if any(type(name) is not str for name in names):
            return None
    elif kind is list or kind is tuple:
        items = tuple(cast("list[Any]", value))
    else:
        return None
    inside: dict[int, Snapshot] = {}
    for place, item in enumerate(items):
        if type(item) in _LEAVES:
            continue
        if depth == _MAX_DEPTH or (taken := _taken(item, depth + 1)) is None:
            return None
        inside[place] = taken
    return _assembled(kind, names, items, inside)


def _assembled(
    kind: type, names: tuple[str, ...], items: tuple[Any, ...], inside: dict[int, Snapshot]
) -> Snapshot:
    live: list[Collection[Any]] = []
    sizes: list[int] = []
    held: list[Any] = []
    for place, each in inside.items():
        container = items[place]
        views = [container, container.values()] if each.kind is dict else [container]
        live += [*views, *each.live]
        sizes += [*(len(each.items) for _ in views), *each.sizes]
        held += [*each.names, *each.items, *each.held]
    return Snapshot(kind, names, items, inside, tuple(live), sizes, tuple(held))
