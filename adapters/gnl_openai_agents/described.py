"""The items of a request described: anew only those that the request before did not hold as they are now.

Each model call is told the whole conversation, mostly by items that the SDK makes anew each time. What was described of them
stays with the run's record, beside a snapshot of each item: one that differs from it, or was changed in place, is described anew.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from gnl_middleware.adapter import Message, Session, Snapshot, current_scope

from .requests import is_of_reply, messages_of
from .values import plain


@dataclass(frozen=True, slots=True)
class _Described:
    """The items of one message: as they were, and what the model is told by them.

    Attributes:
        items: A snapshot of each; None where one of them holds what cannot be compared.
        is_reply: They are of a reply, which all items of a reply that follow each other are.
    """

    items: tuple[Snapshot | None, ...]
    is_reply: bool
    message: tuple[Any, Message]

    def fits(self, items: Sequence[Any], place: int) -> bool:
        """Whether the items from this place on are these, and one message as these were."""
        after = place + len(self.items)
        if after > len(items):
            return False
        for index, item in enumerate(self.items, start=place):
            if item is None or not item.fits(items[index]):
                return False
        return not self.is_reply or not _goes_on(items, after)


def described(session: Session, items: Sequence[Any]) -> list[tuple[Any, Message]]:
    """The messages that the items are: as the model is told them, and as identity sees them."""
    # Others that ask side by side in the same scope only make this one describe more.
    kept, here = session.record.histories.described, ("openai_agents", current_scope())
    earlier: Mapping[int, _Described] = kept.get(here, {})
    found: dict[int, _Described] = {}
    place = 0
    while place < len(items):
        before = earlier.get(place)
        message = before if before is not None and before.fits(items, place) else _described(items, place)
        found[place] = message
        place += len(message.items)
    kept[here] = found
    return [each.message for each in found.values()]


def _described(items: Sequence[Any], place: int) -> _Described:
    after = place + 1
    if is_reply := _goes_on(items, place):
        while _goes_on(items, after):
            after += 1
    # Taken first: what is changed while it is described differs from it the next time.
    snapshots = tuple([Snapshot.of(item) for item in items[place:after]])
    (message,) = messages_of([plain(item) for item in items[place:after]])
    return _Described(snapshots, is_reply, message)


def _goes_on(items: Sequence[Any], place: int) -> bool:
    if place >= len(items):
        return False
    item = items[place]
    return is_of_reply(cast("dict[str, Any]", item) if isinstance(item, dict) else plain(item))
