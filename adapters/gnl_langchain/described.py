"""The messages of a request described: anew only those that the request before did not hold as they are now.

Each model call is told the whole conversation. What was described of it stays with the run's record, beside a snapshot of what
the description has read: whoever changes a message in place, its text or a call inside of it, gets it described anew.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, zip_longest
from operator import is_, itemgetter
from typing import Any

from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    HumanMessage,
    HumanMessageChunk,
    SystemMessage,
    SystemMessageChunk,
    ToolMessage,
    ToolMessageChunk,
)

from gnl_middleware.adapter import Message, Session, Snapshot, current_scope

from .requests import identified, normalised

_OF_ANY = ("type", "content", "name")
_REPLY = itemgetter(*_OF_ANY, "tool_calls", "invalid_tool_calls")
_ANSWER = itemgetter(*_OF_ANY, "tool_call_id", "status")
_OTHER = itemgetter(*_OF_ANY)
_READ: Mapping[type[BaseMessage], Callable[[Mapping[str, Any]], tuple[Any, ...]]] = {
    AIMessage: _REPLY,
    AIMessageChunk: _REPLY,
    ToolMessage: _ANSWER,
    ToolMessageChunk: _ANSWER,
    HumanMessage: _OTHER,
    HumanMessageChunk: _OTHER,
    SystemMessage: _OTHER,
    SystemMessageChunk: _OTHER,
}
"""What the description of a message reads of it; messages of other classes may say of themselves what they like."""


@dataclass(frozen=True, slots=True)
class _Described:
    """A message: as the provider is told it, as identity sees it, and what was read for that, if it can be compared."""

    kind: type[BaseMessage]
    read: Snapshot | None
    told: dict[str, Any]
    part: Message

    @classmethod
    def of(cls, message: BaseMessage, earlier: "_Described | None") -> "_Described":
        """A message described; by an earlier description, where that has read the same."""
        read = _read(message)
        # Taken first: what is changed while it is described differs from it the next time.
        snapshot = None if read is None else Snapshot.of(read)
        if earlier is not None and earlier.fits(message):
            return cls(earlier.kind, snapshot, earlier.told, earlier.part)
        told = normalised(message)
        return cls(type(message), snapshot, told, identified(message, told))

    def fits(self, message: BaseMessage) -> bool:
        """Whether a description of this message would read what was read then."""
        if self.read is None or type(message) is not self.kind:
            return False
        return self.read.fits(_read(message))


@dataclass(slots=True)
class _Kept:
    """What was described of a request, and all that its messages held then, to be compared at one go.

    Attributes:
        messages: The messages.
        kinds: Their classes.
        found: What was described of each.
        live: Their fields and the containers in these, as they are at any time.
        sizes: How much each of those held.
        held: What they held, one after another.
        comparable: Nothing else is read of them.
    """

    messages: list[BaseMessage] = field(default_factory=list[BaseMessage])
    kinds: list[type] = field(default_factory=list[type])
    found: list[_Described] = field(default_factory=list[_Described])
    live: list[Collection[Any]] = field(default_factory=list[Collection[Any]])
    sizes: list[int] = field(default_factory=list[int])
    held: list[Any] = field(default_factory=list[Any])
    comparable: bool = True

    def begins(self, messages: Sequence[BaseMessage]) -> bool:
        """Whether a request begins with these very messages, and nothing was put into them or taken out of them."""
        return (
            self.comparable
            and len(self.messages) <= len(messages)
            and all(map(is_, self.messages, messages))
            and list(map(type, self.messages)) == self.kinds
            and list(map(len, self.live)) == self.sizes
            and all(map(is_, chain.from_iterable(self.live), self.held))
        )

    def copy(self) -> "_Kept":
        """The same, to be added to: another thread may go on from this one."""
        lists = (self.messages, self.kinds, self.found, self.live, self.sizes, self.held)
        return _Kept(*map(list[Any], lists), comparable=self.comparable)

    def add(self, message: BaseMessage, earlier: _Described | None) -> None:
        """One message more."""
        fields, more = message.__dict__, message.__pydantic_extra__
        more = {} if more is None else more  # itself, though it is empty: somebody may add to it
        held = [*fields.values()], [*more]  # before it is described, too
        each = _Described.of(message, earlier)
        self.messages.append(message)
        self.kinds.append(type(message))
        self.found.append(each)
        self.live += [fields.values(), more]
        self.sizes += map(len, held)
        self.held += chain(*held)
        if each.read is None:
            self.comparable = False
        else:
            self.live += each.read.live
            self.sizes += each.read.sizes
            self.held += each.read.held


def described(
    session: Session, messages: Sequence[BaseMessage]
) -> tuple[tuple[dict[str, Any], ...], tuple[Message, ...]]:
    """The messages as the provider is told them, and as identity sees them."""
    # Others that ask side by side in the same scope only make this one describe more.
    kept, here = session.record.histories.described, ("langchain", current_scope())
    before: _Kept = kept.get(here) or _Kept()
    goes_on = before.begins(messages)
    after = before.copy() if goes_on else _Kept()
    earlier = [] if goes_on else before.found[: len(messages)]
    for message, known in zip_longest(messages[len(after.found) :], earlier):
        after.add(message, known)
    kept[here] = after
    return tuple([each.told for each in after.found]), tuple([each.part for each in after.found])


def _read(message: BaseMessage) -> tuple[Any, ...] | None:
    """What the description reads of a message; None where it may read more than is known here."""
    read = _READ.get(type(message))
    if read is None or "role" in (message.__pydantic_extra__ or ()):
        return None
    try:
        return read(message.__dict__)
    except KeyError:  # made without its fields
        return None
