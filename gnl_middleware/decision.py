"""What may run twice: the table of DESIGN 3.1 as pure functions, without I/O. Every cell is a test."""

from dataclasses import dataclass
from enum import Enum

from gnl_middleware.model import Kind, StoredStatus
from gnl_middleware.policy import Label


class Do(Enum):
    """What happens to a call."""

    RUN = "run"
    """Write an intent, run the body, write the outcome."""
    RETURN = "return"
    """Give back the recorded value."""
    RAISE = "raise"
    """Raise the recorded error."""
    WAIT = "wait"
    """A try is still running: wait for its outcome, then decide again."""
    SETTLE = "settle"
    """A side effect may have happened: ask ``recover``, else block or tell the model."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What the journal and this process know about a call.

    Attributes:
        status: The stored status, or None if nothing is stored.
        running: A try of it still runs, in this process or under a live claim elsewhere.
        handled: It failed, and the agent went on with the error.
        not_performed: It failed with an error that proves that the effect did not happen.
        cleared: ``recover`` or a person said that it has not happened and no longer can.
        decided_failed: A person decided that it failed.
    """

    status: StoredStatus | None = None
    running: bool = False
    handled: bool = False
    not_performed: bool = False
    cleared: bool = False
    decided_failed: bool = False


def decide(kind: Kind, label: Label, facts: Facts) -> Do:
    """What happens to a call, given its label and what is known.

    Example:
        >>> decide("tool", "never", Facts(status="started"))
        <Do.SETTLE: 'settle'>
        >>> decide("tool", "safe", Facts(status="started"))
        <Do.RUN: 'run'>
    """
    if facts.running:
        return Do.WAIT
    match facts.status:
        case None | "withdrawn" | "paused":
            return Do.RUN
        case "done":
            return Do.RETURN
        case "failed" if facts.decided_failed or facts.handled:
            return Do.RAISE
        case "started" | "failed":
            return Do.SETTLE if is_interrupted(kind, label, facts) else Do.RUN


def is_interrupted(kind: Kind, label: Label, facts: Facts) -> bool:
    """Whether a side effect may have happened without anybody knowing: it must be settled before anything goes on."""
    if kind == "value" or label != "never" or facts.running or facts.cleared:
        return False
    if facts.status == "failed":
        return not (facts.handled or facts.not_performed or facts.decided_failed)
    return facts.status == "started"
