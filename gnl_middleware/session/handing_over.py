"""Hand a framework the turns that are over, instead of replaying its loop turn by turn (``resume="handover"``).

An adapter asks for the finished turns, rebuilds of each what its framework would have in its history, and lets each be
proven. What was proven it gives the framework as its history, and says so here: those steps count as read back. The last
recorded reply is never handed over: the framework asks for it, so that a changed setup, interrupted effects and calls that
are still to be made are met as in any replay.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

from gnl_middleware.conversation import Request
from gnl_middleware.errors import JournalCorruptError, UnserializableValueError
from gnl_middleware.identity import Message
from gnl_middleware.model import StoredStep
from gnl_middleware.replay.payloads import decoded
from gnl_middleware.replay.turns import Proof, Turn, turns_of

from .context import current_where
from .recorded import recorded_value
from .session import Session

Resume = Literal["replay", "handover"]
"""How a run goes on: its framework's loop is replayed, or is handed the turns that are over."""

_CHOICES = ("replay", "handover")


def wants_handover(resume: Any, replay: Any) -> bool:
    """Whether turns are to be handed over.

    Raises:
        ValueError: There is no such way to resume, or a strict replay was asked for, which compares every turn.

    Example:
        >>> wants_handover("handover", "lenient")
        True
    """
    if resume not in _CHOICES:
        raise ValueError(f"resume is {resume!r}; choose of {', '.join(map(repr, _CHOICES))}")
    if resume == "handover" and replay == "strict":
        raise ValueError(
            'resume="handover" does not replay the turns that are over, and replay="strict" compares every one of them: '
            "drop one of the two"
        )
    return resume == "handover"


@dataclass(frozen=True, slots=True)
class FinishedCall:
    """A tool call of a finished turn.

    Attributes:
        name: The tool.
        value: What was recorded of its result, decoded; None where it failed.
        failed: It failed, and the agent went on from that: what it made of it, the next request tells.
        raw: The value comes from ``recover`` or a person, as the tool would have returned it.
    """

    name: str
    value: Any
    failed: bool
    raw: bool


@dataclass(frozen=True, slots=True)
class FinishedTurn:
    """A turn that is over.

    Attributes:
        reply: What was recorded of the model's reply, decoded.
        calls: The calls that it asks for, in order; never none.
        asked_next: Where a call has failed, the messages of the request that followed, as the provider was told them: at least
            all that are new in it.
    """

    reply: Any
    calls: tuple[FinishedCall, ...]
    asked_next: tuple[Any, ...]


class History:
    """The finished turns of a conversation.

    Args:
        session: The open run.
        scope: Where the conversation is held.

    Example:
        >>> history = History(session, current_scope())     # doctest: +SKIP
        >>> for turn in history.turns():     # doctest: +SKIP
        ...     if (rebuilt := rebuild(turn)) is None or not history.proves(told(rebuilt), parts(rebuilt)):
        ...         break
        ...     messages += rebuilt
        >>> history.hand_over()     # doctest: +SKIP
    """

    def __init__(self, session: Session, scope: str) -> None:
        self._session, self._proven = session, 0
        record = session.record
        with record.lock:
            # Beside other workers nothing is certain to be over.
            self._turns: list[Turn] = turns_of(record, scope) if session.locked else []
        self._exactly = session.options.strictness.on_change == "stop"
        self._proof = Proof(record, self._turns, exactly=self._exactly)

    @property
    def round(self) -> int:
        """The round of a graph in which the last recorded reply was asked for; 0 outside of graphs."""
        return self._turns[-1].reply.rounds[0] if self._turns and self._turns[-1].reply.rounds else 0

    @property
    def next_reply(self) -> StoredStep | None:
        """The reply that the framework asks for after what was proven; None where nothing is recorded."""
        return self._turns[self._proven].reply if self._turns else None

    @property
    def length(self) -> int:
        """How many replies are recorded."""
        return len(self._turns)

    def began_with(self, request: Request) -> bool:
        """Whether what the framework would ask first gets the first reply; its setup is compared where it asks in fact.

        Args:
            request: What it would ask.

        Example:
            >>> history.began_with(request)     # doctest: +SKIP
            True
        """
        if not self._turns:
            return False
        first, record = self._turns[0].reply, self._session.record
        with record.lock:
            shaped = not self._exactly and first.shape == request.shape(record.our_replies(first.scope))
        return shaped or first.fingerprint == request.fingerprint

    @property
    def has_begun(self) -> bool:
        """Whether the framework has come to the first turn, and was given its reply."""
        return bool(self._turns) and self._turns[0].reply.key in self._session.record.consumed

    def turns(self) -> Iterator[FinishedTurn]:
        """The turns that may be handed over, in order, up to the first that has to be replayed.

        Example:
            >>> next(history.turns()).calls[0].name     # doctest: +SKIP
            'lookup'
        """
        for turn, following in pairwise(self._turns):
            try:
                finished = _finished(self._session, turn, following.reply)
            except (JournalCorruptError, UnserializableValueError):
                return  # the replay comes to it, and says what is wrong
            if not finished.calls:
                return
            yield finished

    def proves(self, told: Sequence[Any], parts: Sequence[Message]) -> bool:
        """Whether the next turn, rebuilt as these messages, led to the request that is recorded after it.

        Args:
            told: The messages as the provider is told them; plain data.
            parts: The same as identity sees them.

        Example:
            >>> history.proves(told, parts)     # doctest: +SKIP
            True
        """
        with self._session.record.lock:
            proven = self._proof.leads_on(self._proven, told, parts)
        self._proven += proven
        return proven

    def hand_over(self) -> None:
        """Count the steps of what was proven as read back; what the framework does next follows on them.

        Example:
            >>> history.hand_over()     # doctest: +SKIP
        """
        session, where = self._session, current_where()
        following = self.next_reply
        skipped: list[StoredStep] = []
        with session.record.lock:
            for step in (step for turn in self._turns[: self._proven] for step in turn.steps):
                if step.key not in session.record.consumed:
                    session.record.consume(step.key)
                    session.spared.count(step)
                    skipped.append(step)
            if following is not None and following.rounds and where.rounds:
                session.rounds_ahead = following.rounds[0] - where.rounds[0]
        if session.watcher is not None:
            for step in skipped:
                session.watcher.step_read_back(step)


def _finished(session: Session, turn: Turn, following: StoredStep) -> FinishedTurn:
    calls = tuple(_finished_call(session, step) for step in turn.calls)
    # Decoded only where somebody has to look: it holds all that the journal holds of the turn once more.
    told = decoded(following, following.arguments) if any(call.failed for call in calls) else ()
    return FinishedTurn(recorded_value(turn.reply), calls, tuple(told))


def _finished_call(session: Session, step: StoredStep) -> FinishedCall:
    failed = step.status == "failed"
    value = None if failed else recorded_value(step, session.policy_of(step).types)
    return FinishedCall(step.name, value, failed, step.raw)
