"""What a journal tells about a run besides its steps: its attempts, what persons decided, and what was removed."""

from dataclasses import dataclass
from typing import Literal

RemovalKind = Literal["pruned", "erased"]
"""``pruned``: by age, and what once-per keys of the whole journal still need stays; ``erased``: nothing stays."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One execution of a run's code, as ``Journal.attempts`` shows it.

    Attributes:
        number: From 1.
        holder: Who worked on it: host and process id.
        started_at: In seconds since the epoch.
        ended_at: In seconds since the epoch; None while it goes on, and for one that was killed and not yet followed.
        status: ``running``, ``completed``, ``failed``, ``blocked``, ``paused`` or ``interrupted``.
        error: Type and text of the error that ended it, or None.
        steps_ran: Steps that ran in it; None where it was killed before it could say so, as all below.
        steps_read_back: Steps whose outcome was read back.
        tokens_not_spent: Tokens of the replies that were read back.
        seconds_not_spent: Seconds that the steps read back took when they ran.
    """

    number: int
    holder: str
    started_at: float
    ended_at: float | None
    status: str
    error: str | None
    steps_ran: int | None
    steps_read_back: int | None
    tokens_not_spent: int | None
    seconds_not_spent: float | None


@dataclass(frozen=True, slots=True)
class Resolution:
    """A person's decision, kept for audit, as ``Journal.resolutions`` shows it.

    Attributes:
        step_key: The step that was decided.
        decision: ``happened``, ``not_done`` or ``failed``.
        by: Who decided.
        note: Why.
        decided_at: In seconds since the epoch.
    """

    step_key: str
    decision: str
    by: str
    note: str
    decided_at: float


@dataclass(frozen=True, slots=True)
class RemovedRun:
    """What was removed of one run; kept in its place as proof.

    Attributes:
        run_id: The run.
        kind: ``pruned`` or ``erased``.
        removed_at: In seconds since the epoch.
        by: Who asked for it.
        note: Why.
        steps: Steps that are gone.
        steps_kept: Steps that stay, since a once-per key of the whole journal needs their outcome.
        payloads: Arguments and values that are gone.
        bytes: Bytes that those took.
        digest: SHA-256 over the keys of the steps and the hashes of the payloads: who has a backup can tell that exactly
            these are meant. Empty where nothing has been removed yet.
    """

    run_id: str
    kind: RemovalKind
    removed_at: float
    by: str
    note: str
    steps: int
    steps_kept: int
    payloads: int
    bytes: int
    digest: str


@dataclass(frozen=True, slots=True)
class Removal:
    """What ``Journal.prune`` or ``Journal.erase`` has removed, or would.

    Attributes:
        runs: What was removed, by run.
        busy: Runs that were meant and stay, because a worker holds them.
        rewritten: The file was written anew, so nothing of it stays in unused places. Always false of a server, which
            reclaims space by itself (VACUUM); and backups are yours.
    """

    runs: tuple[RemovedRun, ...]
    busy: tuple[str, ...] = ()
    rewritten: bool = False

    @property
    def bytes(self) -> int:
        """Bytes that the removed payloads took."""
        return sum(run.bytes for run in self.runs)
