"""What an adapter says about one call: who is called with what, and how values pass through the journal."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from gnl_middleware import codec
from gnl_middleware.conversation import Request
from gnl_middleware.errors import GnlError
from gnl_middleware.identity import Message, Place
from gnl_middleware.model import Kind, ReplyCall
from gnl_middleware.policy import Policy, safe

Ending = Literal["failure", "pause", "outcome", "control"]
"""What an exception from a body means: ``failure``: the call failed; ``pause``: it stopped at an approval and will be
called again; ``outcome``: the exception is its result (it is recorded through ``encode``); ``control``: it is ours."""


def _same(value: Any) -> Any:
    return value


_judges: list[Callable[[Exception], Ending]] = []


def judge_endings_with(judge: Callable[[Exception], Ending]) -> None:
    """Let an adapter say what its framework's exceptions mean in plain functions, too; all but ``failure`` is believed.

    Example:
        >>> judge_endings_with(ending_of)     # doctest: +SKIP
    """
    _judges.append(judge)


def _ending(error: Exception) -> Ending:
    for judge in _judges:
        if (ending := judge(error)) != "failure":
            return ending
    return "failure"


def _nothing() -> None:
    pass


def _same_error(error: GnlError) -> GnlError:
    return error


@dataclass(frozen=True, kw_only=True)
class Call:
    """What every call has.

    Attributes:
        name: The model, tool or function.
        policy: Its replay label.
        encode: The live value as bytes; raises UnserializableValueError.
        decode: The caller's value from the decoded plain one. May raise, where the recorded outcome is an exception.
        present: A raw value, from ``recover`` or a person, as the call would have returned it.
        adopt: A value of an equal call (``once_per``) as this call's own; where a value names its call, it is renamed.
        ending: What an exception from the body means.
        as_control: Our own error as a type that passes the framework untouched.
        served: Called before a record is given to the call instead of running it.
        places: Where in the framework's own structure it is called, where the adapter knows better than ``find_places_with``.
    """

    name: str
    policy: Policy = safe
    encode: Callable[[Any], bytes] = codec.encode
    decode: Callable[[Any], Any] = _same
    present: Callable[[Any], Any] = _same
    adopt: Callable[[Any], Any] = _same
    ending: Callable[[Exception], Ending] = _ending
    as_control: Callable[[GnlError], GnlError] = _same_error
    served: Callable[[], None] = _nothing
    places: tuple[Place, ...] | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """What the session needs to know of a model's reply.

    Attributes:
        digest: Digest of the reply as it will stand in later requests.
        calls: The tool calls that it asks for, in order.
        tokens: What it cost, in tokens; 0 where the provider does not say.
    """

    digest: str
    calls: tuple[ReplyCall, ...] = ()
    tokens: int = 0


@dataclass(frozen=True, kw_only=True)
class ModelCall(Call):
    """A model is asked.

    Attributes:
        request: The conversation and the digest of the setup.
        messages: The normalised messages that ``request.messages`` are digests of; plain data.
        setup: The normalised model, settings and tools; plain data, to show in a difference.
        describe: What the session must know of a reply, from the value that the body returned.
        redescribe: The same from what was recorded, decoded, where texts were taken out of it; by default through ``decode``.
        whole: What was kept of a stream, as one value to record: a journal that redacts records no chunks, since a secret
            may be cut in two by them. Without it such a journal refuses the stream.
    """

    request: Request
    messages: tuple[Any, ...]
    setup: Any = None
    describe: Callable[[Any], Reply]
    redescribe: Callable[[Any], Reply] | None = None
    whole: Callable[[list[Any]], Any] | None = None

    @property
    def kind(self) -> Kind:
        """Always ``model``."""
        return "model"

    def describe_recorded(self, recorded: Any) -> Reply:
        """What the session must know of a reply that was recorded otherwise than it was given."""
        return self.describe(self.decode(recorded)) if self.redescribe is None else self.redescribe(recorded)


@dataclass(frozen=True, kw_only=True)
class ToolCall(Call):
    """A tool is called because a model's reply asks for it.

    Attributes:
        arguments: What it is called with; plain data.
        call_id: The provider's id; empty where it gave none.
        carrier: Digest of the assistant message that carries the call, where the framework shows it.
        occurrence: Which of the equal carriers in the history it is, from 1; or how to find that out, which is seldom asked.
        place: Its place among the calls of the carrier, from 0, where the framework shows it.
    """

    arguments: Any
    call_id: str
    carrier: str | None = None
    occurrence: int | Callable[[], int] = 1
    place: int | None = None

    @property
    def kind(self) -> Kind:
        """Always ``tool``."""
        return "tool"

    @property
    def of_equals(self) -> int:
        """Which of the equal carriers in the history it is."""
        return self.occurrence if isinstance(self.occurrence, int) else self.occurrence()


@dataclass(frozen=True, kw_only=True)
class FunctionCall(Call):
    """A plain function is called, or a value such as ``run.now()`` is taken.

    Attributes:
        arguments: What it is called with; plain data.
        kind: ``tool`` for a function, ``value`` for a value.
    """

    arguments: Any
    kind: Kind = field(default="tool")


AnyCall = ModelCall | ToolCall | FunctionCall


def request_of(messages: tuple[Any, ...], parts: tuple[Message, ...], setup: Any) -> Request:
    """A request from its messages and setup (None: unknown); ``parts`` are the messages as identity sees them.

    Example:
        >>> request_of(told, parts, {"model": "gpt-4.1"}).fingerprint     # doctest: +SKIP
    """
    if len(messages) != len(parts):
        raise ValueError(f"{len(messages)} messages, but {len(parts)} identities")
    return Request(messages=parts, setup="" if setup is None else codec.digest(setup))
