"""What a request tells a model, without what SDKs make up anew and how it is sent."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from gnl_middleware.adapter import Message, Reply, ReplyCall, digest

HOW_IT_IS_SENT = frozenset(
    {"stream", "stream_options", "prompt_cache_key", "prompt_cache_retention", "service_tier"}
)
"""Fields of every format that change nothing about what is asked."""

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Told:
    """One message: as it is journalled, and as identity sees it."""

    message: Json
    part: Message


@dataclass(frozen=True, slots=True)
class Conversation:
    """A request.

    Attributes:
        model: The model's name.
        told: Its messages.
        setup: The model, its settings and its tools.
    """

    model: str
    told: tuple[Told, ...]
    setup: Json

    @property
    def messages(self) -> tuple[Json, ...]:
        """The messages as they are journalled."""
        return tuple(each.message for each in self.told)

    @property
    def parts(self) -> tuple[Message, ...]:
        """The messages as identity sees them."""
        return tuple(each.part for each in self.told)


@dataclass(frozen=True, slots=True)
class Asks:
    """A tool call of a reply: its id, its tool, and its arguments as data where they are JSON."""

    call_id: str
    name: str
    arguments: Any


@dataclass(frozen=True, slots=True)
class Said:
    """What an assistant message says: its text and the tools that it asks for."""

    text: str
    asks: tuple[Asks, ...] = ()

    @property
    def digest(self) -> str:
        """By which a reply is recognised in later requests."""
        return digest([self.text, [[each.name, each.arguments, each.call_id] for each in self.asks]])


@dataclass(frozen=True, slots=True)
class Answered:
    """What a model answers, and what that cost in tokens; 0 where the provider does not say."""

    said: Said
    tokens: int = 0

    @property
    def reply(self) -> Reply:
        """As the journal is told of it."""
        asks = self.said.asks
        calls = tuple(
            ReplyCall(call_id=each.call_id, name=each.name, arguments_digest=digest(each.arguments))
            for each in asks
        )
        return Reply(digest=self.said.digest, calls=calls, tokens=self.tokens)


def other(role: str, message: Mapping[str, Any], *, answers: str | None = None) -> Told:
    """A message that no model wrote."""
    said = without_nothing(message)
    return Told(said, Message(role, digest(said), answers=answers))


def assistant(message: Mapping[str, Any], said: Said) -> Told:
    """A message that a model wrote."""
    plain = without_nothing(message)
    ids = tuple(each.call_id for each in said.asks)
    return Told(plain, Message("assistant", digest(plain), call_ids=ids, reply=said.digest))


def setup_of(body: Mapping[str, Any], conversation: Iterable[str]) -> Json:
    """The model, its settings and its tools: whatever is neither the conversation nor how it is sent."""
    left_out = HOW_IT_IS_SENT | set(conversation)
    return {name: value for name, value in body.items() if name not in left_out}


def without_nothing(message: Mapping[str, Any], left_out: Iterable[str] = ()) -> Json:
    """A message without the fields that say nothing."""
    gone = set(left_out)
    return {
        name: value for name, value in message.items() if name not in gone and value not in (None, [], {})
    }


def arguments_of(text: object) -> Any:
    """Arguments as the model wrote them; as data where they are JSON, whose layout does not count."""
    if not isinstance(text, str):
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text


def objects(value: object) -> list[Json]:
    """The objects of a list; nothing of anything else."""
    items = cast("Sequence[object]", value) if isinstance(value, list) else ()
    return [cast("Json", item) for item in items if isinstance(item, dict)]


def text_of(content: object, kinds: Iterable[str] = ("text", "output_text")) -> str:
    """The text of a message's content, which is a text or a list of parts."""
    if isinstance(content, str):
        return content
    wanted = set(kinds)
    return "".join(str(part.get("text") or "") for part in objects(content) if part.get("type") in wanted)
