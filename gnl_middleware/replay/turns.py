"""The turns of a conversation as they are recorded: a reply, the outcomes of its calls, and the request that they lead to.

A history that is rebuilt from them may take the place of replaying them only if it is proven to be what the models were
asked: each turn must lead, message by message, to the next recorded request. Whatever is not proven is left to the replay.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from gnl_middleware import codec
from gnl_middleware.errors import JournalCorruptError
from gnl_middleware.identity import Message, digest_of
from gnl_middleware.model import StoredStep

from .payloads import decoded
from .record import Record

_INSTRUCTIONS = ("system", "developer")


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn.

    Attributes:
        reply: What a model was asked, and replied.
        calls: The calls that the reply asks for, in order, each with a recorded result or a failure that the agent has gone on
            from; empty where one has neither.
    """

    reply: StoredStep
    calls: tuple[StoredStep, ...] = ()

    @property
    def steps(self) -> tuple[StoredStep, ...]:
        """The reply and the calls."""
        return self.reply, *self.calls


def turns_of(record: Record, scope: str) -> list[Turn]:
    """The turns of a scope up to the last recorded reply; none where its models were not asked one after another.

    Only the last model step may be without a reply: another one would stand for a request that was given up, and which of
    the two a replay comes to depends on what it asks.
    """
    models = (step for step in record.steps.values() if step.kind == "model" and step.scope == scope)
    steps = sorted(models, key=lambda step: step.number)
    if steps and not _has_reply(steps[-1]):
        steps.pop()
    if not all(_has_reply(step) for step in steps):
        return []
    return [Turn(step, _results(record, step)) for step in steps]


def _has_reply(step: StoredStep) -> bool:
    return step.status == "done" and step.value is not None and step.reply_digest is not None


def _results(record: Record, reply: StoredStep) -> tuple[StoredStep, ...]:
    called = {step.position: step for key in record.calls_of[reply.key] if (step := record.steps[key])}
    calls = [called.get(position) for position in range(len(reply.calls))]
    over = [step for step in calls if step is not None and _is_over(record, step)]
    return tuple(over) if len(over) == len(calls) else ()


def _is_over(record: Record, step: StoredStep) -> bool:
    return (step.status == "done" and step.value is not None) or record.is_handled(step)


class Proof:
    """Proves, turn by turn, that what was rebuilt of a conversation is what its models were asked.

    Args:
        record: The record of the run; the caller holds its lock.
        turns: The turns, in order.
        exactly: Not even the instructions may have changed between two turns.
    """

    def __init__(self, record: Record, turns: Sequence[Turn], *, exactly: bool) -> None:
        self._record, self._turns, self._exactly = record, turns, exactly
        self._rebuilt: list[Any] = []
        self._beginning: list[Any] | None = None

    def leads_on(self, place: int, told: Sequence[Any], parts: Sequence[Message]) -> bool:
        """Whether the turn at this place, rebuilt as these messages, led to the request of the turn after it.

        Args:
            place: Which turn; all before it were proven.
            told: What was rebuilt of it, as the provider is told it.
            parts: The same as identity sees it.
        """
        self._rebuilt += told
        asked, following = self._turns[place].reply, self._turns[place + 1].reply
        digest = asked.fingerprint
        for part in parts:
            digest = digest_of(digest, part.digest)
        if self._exactly and following.setups != self._turns[0].reply.setups:
            return False
        return digest == following.fingerprint or (not self._exactly and self._leads_anew(following))

    def _leads_anew(self, following: StoredStep) -> bool:
        """Whether that request began with changed instructions, and is the same but for these.

        An attempt with changed instructions continues no recorded conversation: its first new request is recorded whole.
        """
        try:
            beginning, asked = self._asked_first(), list(decoded(following, following.arguments))
        except JournalCorruptError:
            return False
        begun = len(beginning)
        rebuilt = self._record.as_written(self._rebuilt)
        return (
            len(asked) == begun + len(rebuilt)
            and all(_same_but_instructions(*pair) for pair in zip(beginning, asked[:begun], strict=True))
            and codec.digest(asked[begun:]) == codec.digest(rebuilt)
        )

    def _asked_first(self) -> list[Any]:
        if self._beginning is None:
            first = self._turns[0].reply
            self._beginning = list(decoded(first, first.arguments))
        return self._beginning


def _same_but_instructions(first: Any, second: Any) -> bool:
    roles = _role(first), _role(second)
    return roles[0] == roles[1] and (roles[0] in _INSTRUCTIONS or codec.digest(first) == codec.digest(second))


def _role(message: Any) -> Any:
    return cast("dict[str, Any]", message).get("role") if isinstance(message, dict) else None
