"""Which format a request is in, and what an answer in it says."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast
from urllib.parse import urlsplit

from . import anthropic, chat, responses
from .events import events_of, is_done
from .told import Answered, Conversation, Json


class _OfEvents(Protocol):
    def __call__(self, events: Sequence[Json], *, done: bool) -> Answered | None: ...


@dataclass(frozen=True, slots=True)
class WireFormat:
    """A format in which a provider is asked and answers.

    Attributes:
        name: ``chat``, ``responses`` or ``anthropic``.
        path: How the path of its requests ends.
    """

    name: str
    path: str
    conversation_of: Callable[[Mapping[str, Any]], Conversation]
    said_of: Callable[[Mapping[str, Any]], Answered | None]
    said_of_events: _OfEvents

    def asked(self, body: bytes) -> Conversation | None:
        """What a request asks; None where it is not in this format after all."""
        try:
            return self.conversation_of(json.loads(body))
        except (ValueError, LookupError, TypeError, AttributeError):
            return None

    def answered(self, body: bytes, *, stream: bool) -> Answered | None:
        """What an answer says; None where it is not whole: cut, an error, or something else.

        Args:
            body: Decoded.
            stream: It came as server-sent events.
        """
        try:
            text = body.decode()
            if stream:
                return self.said_of_events(list(events_of(text)), done=is_done(text))
            return self.said_of(cast("Mapping[str, Any]", json.loads(text)))
        except (ValueError, LookupError, TypeError, AttributeError):
            return None


FORMATS = (
    WireFormat("chat", chat.PATH, chat.conversation_of, chat.said_of, chat.said_of_events),
    WireFormat(
        "responses", responses.PATH, responses.conversation_of, responses.said_of, responses.said_of_events
    ),
    WireFormat(
        "anthropic", anthropic.PATH, anthropic.conversation_of, anthropic.said_of, anthropic.said_of_events
    ),
)


def format_of(method: str, url: str) -> WireFormat | None:
    """The format of a request that asks a model; None for any other request."""
    if method.upper() != "POST":
        return None
    path = urlsplit(url).path.rstrip("/")
    return next((each for each in FORMATS if path.endswith(each.path)), None)
