"""A scripted model behind the adapter surface: each turn adds a question and a reply to a growing conversation."""

from typing import Any

from gnl_middleware.adapter import (
    Message,
    ModelCall,
    Policy,
    Reply,
    ReplyCall,
    ToolCall,
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
        self._add(role, text, reply=digest(text) if role == "assistant" else None)

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

    def act(self, policy: Policy) -> None:
        """A model call whose reply asks for a call of a tool, that call, and its answer in the history."""
        call_id = f"call_{len(self._messages)}"
        wanted = ReplyCall(call_id, "effect", digest(call_id))
        messages = tuple(self._messages)
        call = ModelCall(
            name="scripted",
            request=request_of(messages, tuple(self._parts), {"model": "scripted"}),
            messages=messages,
            describe=lambda reply: Reply(digest=digest(reply), calls=(wanted,)),
        )
        session = session_for(name="scripted")
        carrier = digest(perform(session, call, lambda: call_id))
        self._add("assistant", call_id, call_ids=(call_id,), reply=carrier)
        effect = ToolCall(
            name="effect", policy=policy, arguments=call_id, call_id=call_id, carrier=carrier, place=0
        )
        self._add("tool", perform(session, effect, lambda: f"did {call_id}"), answers=call_id)

    def _add(self, role: str, text: str, **identity: Any) -> None:
        message = {"role": role, "content": text}
        self._messages.append(message)
        self._parts.append(Message(role=role, digest=digest(message), **identity))

    def _reply(self, number: int) -> str:
        self.asked += 1
        return f"reply {number} {_text(-number, self._size // 2)}"


def _text(seed: int, size: int) -> str:
    # Different in every message and hard to compress, as real text is to some degree.
    pieces = [digest([seed, piece]) for piece in range(size // 64 + 1)]
    return " ".join(pieces)[:size]
