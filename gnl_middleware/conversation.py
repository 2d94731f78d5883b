"""A model's request as identity sees it: the conversation chain, what stands in its history, and its shape (DESIGN 3.2).

A conversation is mostly the one before with a few messages more. So a request takes over what was worked out of the one
that it goes on from, and a run of many turns costs as much per turn as a short one.
"""

from collections import Counter
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from operator import attrgetter, is_

from .identity import Hasher, Message, digest_of, hashed

_TOLD = attrgetter("digest", "reply", "role", "call_ids", "answers")


@dataclass(frozen=True, slots=True)
class Standing:
    """An assistant message that stands in a request's history, and which of its calls are answered there.

    Attributes:
        reply: Its digest, by which one of our replies is recognised.
        occurrence: 1 for the first message of this digest in the history, 2 for the next …
        answered: Positions of its calls that have an answer in the history.
    """

    reply: str
    occurrence: int
    answered: frozenset[int]


@dataclass(slots=True)
class _Shape:
    """How far the shape of a conversation was hashed, and which of its replies were not ours then."""

    hasher: Hasher
    messages: int
    foreign: set[str]


@dataclass(frozen=True)
class Request:
    """What a model is asked.

    Attributes:
        messages: The conversation.
        setup: Digest of the model, its settings and its tools; empty where whoever watches the call cannot know them.
        shapes: How far its shape was hashed, if it was.
    """

    messages: tuple[Message, ...]
    setup: str
    shapes: list[_Shape] = field(default_factory=list[_Shape], init=False, repr=False, compare=False)

    def follow(self, earlier: "Request") -> None:
        """Take over what was worked out of an earlier request, as far as this one goes on from it.

        It changes no answer, only what it takes to give it.
        """
        length = len(earlier.messages)
        if not self._begins_with(earlier):
            return
        chain, standings = list(earlier.chain), list(earlier.standings[: earlier.settled_standings])
        _chain_on(chain, self.messages[length:])
        assistants = [*earlier.assistants, *_assistants(self.messages, length)]
        _stand_on(standings, self.messages, assistants)
        self.__dict__.update(chain=tuple(chain), standings=tuple(standings), assistants=assistants)
        self.shapes[:] = earlier.shapes

    def _begins_with(self, earlier: "Request") -> bool:
        length = len(earlier.messages)
        if length > len(self.messages):
            return False
        # Adapters that describe only what is new hand on the very messages of the request before.
        return all(map(is_, self.messages, earlier.messages)) or self.told[:length] == earlier.told

    @cached_property
    def told(self) -> list[tuple[object, ...]]:
        """What the messages say, to compare many of them at once."""
        return list(map(_TOLD, self.messages))

    @cached_property
    def assistants(self) -> list[int]:
        """Where the assistant's messages are."""
        return _assistants(self.messages, 0)

    @property
    def settled_standings(self) -> int:
        """How many standings nothing that follows can change: those before the last open calls."""
        places = range(len(self.assistants) - 1, -1, -1)
        open_ones = (place for place in places if self.messages[self.assistants[place]].call_ids)
        return next(open_ones, len(self.assistants))

    @cached_property
    def chain(self) -> tuple[str, ...]:
        """Digest of each beginning of the conversation: the last one names the request, any one can be continued."""
        digests: list[str] = [digest_of("conversation")]
        _chain_on(digests, self.messages)
        return tuple(digests)

    @property
    def fingerprint(self) -> str:
        """Digest of the whole conversation."""
        return self.chain[-1]

    @cached_property
    def standings(self) -> tuple[Standing, ...]:
        """The assistant messages of the history with their answers; an answer belongs to the last one asking for it."""
        found: list[Standing] = []
        _stand_on(found, self.messages, self.assistants)
        return tuple(found)

    def shape(self, ours: Container[str]) -> str:
        """Digest of roles, call ids, user messages and which replies of ours stand in the history.

        A drift of the system prompt or of a tool's text keeps it; a changed user message does not, since nobody must
        be served the reply to another question.
        """
        known = self.shapes[-1] if self.shapes else None
        # A reply that was not ours can have become so; what was ours remains it.
        if known is None or any(reply in ours for reply in known.foreign):
            known = _Shape(hashed(()), 0, set())
        parts, foreign = list[str](), set(known.foreign)
        for message in self.messages[known.messages :]:
            told = message.digest if message.role == "user" else ""
            if message.reply is not None and message.reply in ours:
                told = message.reply
            elif message.reply is not None:
                foreign.add(message.reply)
            parts.append(digest_of(message.role, *message.call_ids, message.answers or "", told))
        hasher = hashed(parts, onto=known.hasher)
        self.shapes[:] = [_Shape(hasher, len(self.messages), foreign)]
        return hasher.hexdigest()

    def longest_known(self, known: Container[str]) -> int:
        """How many leading messages form a conversation that is recorded already."""
        for length in range(len(self.messages) - 1, 0, -1):
            if self.chain[length] in known:
                return length
        return 0


def _assistants(messages: Sequence[Message], start: int) -> list[int]:
    return [index for index in range(start, len(messages)) if messages[index].reply is not None]


def _chain_on(digests: list[str], messages: Iterable[Message]) -> None:
    for message in messages:
        digests.append(digest_of(digests[-1], message.digest))


def _stand_on(found: list[Standing], messages: Sequence[Message], assistants: Sequence[int]) -> None:
    """Go on with the standings from those that were found already."""
    seen = Counter(map(attrgetter("reply"), found))
    for index in assistants[len(found) :]:
        message = messages[index]
        reply = message.reply or ""
        seen[reply] += 1
        answered = _answered(message.call_ids, _answers_after(messages, index))
        found.append(Standing(reply, seen[reply], answered))


def _answers_after(messages: Sequence[Message], index: int) -> Iterable[str]:
    for place in range(index + 1, len(messages)):
        message = messages[place]
        if message.role == "assistant" and message.call_ids:
            return
        if message.answers is not None:
            yield message.answers


def _answered(call_ids: tuple[str, ...], answers: Iterable[str]) -> frozenset[int]:
    open_calls = list(enumerate(call_ids))
    done: set[int] = set()
    for answer in answers if call_ids else ():
        position = next(
            (place for place, call_id in open_calls if call_id == answer and place not in done), None
        )
        if position is not None:
            done.add(position)
    return frozenset(done)
