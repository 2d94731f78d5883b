"""A request as a model step, and its answer as it is recorded: a head, and the chunks in which the body came."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gnl_middleware.adapter import ModelCall, Reply, encode, request_of

from .decoding import DecodingError, plain_body
from .formats import WireFormat
from .told import Answered, Conversation

_NOT_KEPT = frozenset({"set-cookie"})
"""Headers that are secrets of the connection, and mean nothing to whoever reads the record."""


@dataclass(frozen=True, slots=True)
class Head:
    """What comes before the body.

    Attributes:
        status: Such as 200.
        reason: The words beside it.
        headers: Names and values, in their order.
    """

    status: int
    reason: str
    headers: tuple[tuple[str, str], ...]

    def header(self, name: str) -> str:
        """The first value of a header; empty where there is none."""
        return next((value for each, value in self.headers if each.lower() == name), "")


Chunk = Head | bytes
"""What a stream gives: its head first, then its bytes."""


def head_of(response: Any) -> Head:
    """The head of a response of httpx or httpx2."""
    headers = tuple((name, value) for name, value in response.headers.multi_items() if name not in _NOT_KEPT)
    return Head(response.status_code, response.reason_phrase, headers)


def kept(chunk: Chunk) -> Any:
    """What is recorded of a chunk; text where it is one, since people read journals."""
    if isinstance(chunk, Head):
        headers = [list(pair) for pair in chunk.headers]
        return {"status": chunk.status, "reason": chunk.reason, "headers": headers}
    try:
        return chunk.decode()
    except UnicodeDecodeError:
        return chunk


def as_recorded(chunks: Sequence[Any]) -> bytes:
    """What was kept of an answer, as bytes."""
    return encode({"head": chunks[0], "chunks": list(chunks[1:])})


def as_chunks(recorded: Mapping[str, Any]) -> Iterator[Chunk]:
    """A recorded answer, with the boundaries at which it came."""
    head = recorded["head"]
    headers = tuple((str(name), str(value)) for name, value in head["headers"])
    yield Head(int(head["status"]), str(head["reason"]), headers)
    for chunk in recorded["chunks"]:
        yield chunk.encode() if isinstance(chunk, str) else bytes(chunk)


def answered_by(wire: WireFormat, chunks: Sequence[Any]) -> Answered | None:
    """What an answer says, from what was kept of it; None where it is not whole."""
    head, body = plain_answer(chunks)
    if body is None:
        return None
    stream = head.header("content-type").startswith("text/event-stream") or body.startswith(
        (b"data:", b"event:")
    )
    return wire.answered(body, stream=stream)


def plain_answer(chunks: Sequence[Any]) -> tuple[Head, bytes | None]:
    """The head of what was kept of an answer, and its body, decoded; None where it cannot be decoded."""
    head, *pieces = as_chunks({"head": chunks[0], "chunks": chunks[1:]})
    if not isinstance(head, Head):
        raise TypeError("an answer begins with its head")
    body = b"".join(piece for piece in pieces if isinstance(piece, bytes))
    try:
        return head, plain_body(body, head.header("content-encoding"))
    except DecodingError:
        return head, None


def model_call(wire: WireFormat, asked: Conversation) -> ModelCall:
    """A request as the journal sees it."""
    setup = {"format": wire.name, **asked.setup}

    def describe(chunks: Sequence[Any]) -> Reply:
        answered = answered_by(wire, chunks)
        return Reply(digest="") if answered is None else answered.reply

    return ModelCall(
        name=asked.model or "a model",
        request=request_of(asked.messages, asked.parts, setup),
        messages=asked.messages,
        setup=setup,
        encode=as_recorded,
        decode=as_chunks,
        describe=describe,
    )
