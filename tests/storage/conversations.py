"""A scripted model behind the adapter surface: each turn adds a question and a reply to a growing conversation."""

from gnl_middleware.adapter import (
    Message,
    ModelCall,
    Reply,
    digest,
    perform,
    request_of,
    session_for,
)


class Conversation:
    """A conversation that grows by one question and one reply with every turn.

    Attributes:
        asked: How often the model ran.
    """

    def __init__(self, *, size: int = 1024, tokens: int = 7) -> None:
        self._messages: list[dict[str, str]] = []
        self._parts: list[Message] = []
        self._size, self._tokens = size, tokens
        self.asked = 0

    def say(self, text: str, *, role: str = "user") -> None:
        """Add a message to the history."""
        message = {"role": role, "content": text}
        reply = digest(text) if role == "assistant" else None
        self._messages.append(message)
        self._parts.append(Message(role=role, digest=digest(message), reply=reply))

    def ask(self) -> str:
        """Ask the model for its next reply and add that to the history."""
        messages = tuple(self._messages)
        call = ModelCall(
            name="scripted",
            request=request_of(messages, tuple(self._parts), {"model": "scripted"}),
            messages=messages,
            describe=lambda reply: Reply(digest=digest(reply), tokens=self._tokens),
        )
        reply = perform(session_for(name="scripted"), call, lambda: self._reply(len(messages)))
        self.say(reply, role="assistant")
        return reply

    def turns(self, number: int) -> None:
        """So many questions and replies, each of about the given size."""
        for _turn in range(number):
            self.say(f"question {len(self._messages)} {_text(len(self._messages), self._size // 2)}")
            self.ask()

    def _reply(self, number: int) -> str:
        self.asked += 1
        return f"reply {number} {_text(-number, self._size // 2)}"


def _text(seed: int, size: int) -> str:
    # Different in every message and hard to compress, as real text is to some degree.
    pieces = [digest([seed, piece]) for piece in range(size // 64 + 1)]
    return " ".join(pieces)[:size]
