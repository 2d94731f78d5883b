"""What the floors above ask of the storage, and what they get: values only, no SQL."""

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple, Protocol

from gnl_middleware import codec
from gnl_middleware.model import RecordedFailure, ReplyCall, StoredStatus, StoredStep


class Verdict(Enum):
    """How a write of a step ended."""

    WON = "won"
    """It is committed."""
    TAKEN = "taken"
    """Another try claimed or ended the step meanwhile."""
    STALE = "stale"
    """The fence is no longer the run's: the lease changed hands."""
    LATE = "late"
    """The outcome of a try that is no longer the step's; kept aside as news."""


@dataclass(frozen=True, slots=True)
class Effect:
    """A piece of business that may happen once.

    Attributes:
        window_run: The run that it may happen once in; empty for the whole journal.
        digest: Digest of what makes two calls the same business.
    """

    window_run: str
    tool: str
    digest: str


@dataclass(frozen=True, slots=True)
class Owner:
    """The step that performs an effect, or has performed it."""

    run_id: str
    key: str


@dataclass(frozen=True, slots=True)
class Predecessor:
    """The owner of an effect as it was when it was found not to have performed it; its place may be taken.

    Attributes:
        token: The token of its try: one that has been tried anew meanwhile keeps its place. Empty where its run was erased.
        fence: The fence of a try of another run that was cut off. A holder that only fell silent has lost it.
    """

    owner: Owner
    token: str = ""
    fence: int | None = None


class Committer(Protocol):
    """Commits what was handed over."""

    def commit_here(self) -> None:
        """Commit what waits on this thread, unless another one is at it, which then sees to it."""
        ...

    def wake(self) -> None:
        """Have another thread commit what waits."""
        ...


@dataclass(slots=True, eq=False)
class Write:
    """Something for the writer.

    Attributes:
        durable: It must be synced to the disk before its caller goes on.
        ended: Resolved when the write is committed, or has failed for good.
        committer: Whom it was handed over to.
    """

    durable: bool = field(default=False, kw_only=True)
    ended: "Future[Any]" = field(default_factory=Future[Any], kw_only=True, repr=False)
    committer: Committer | None = field(default=None, kw_only=True, repr=False)

    def result(self) -> Any:
        """Wait until it is committed; gives its result, or raises what it failed with."""
        if self.committer is not None and not self.ended.done():
            self.committer.commit_here()
        return self.ended.result()

    def wake(self) -> None:
        """Have it committed elsewhere: ``ended`` will tell when it is."""
        if self.committer is not None and not self.ended.done():
            self.committer.wake()


class Source(NamedTuple):
    """A payload that another one of the same run may be stored with a part of."""

    hash: str
    body: bytes


class Payload(NamedTuple):
    """Bytes to store once under their hash; ``sources`` hold long parts of them, if any does."""

    run_id: str
    hash: str
    body: bytes
    sources: tuple[Source, ...] = ()


@dataclass(slots=True, eq=False)
class Intent(Write):
    """The row written before a step runs.

    Attributes:
        step: The row; its token names the new try.
        expected: The token of the try that it replaces, or "" where nothing is stored.
        effect: The effect that the step must own to be written, if it may happen once.
        instead_of: Whose place it takes, because that one has not performed the effect and never will.
        setup: What a model is asked with besides its messages, in canonical bytes whose hash the step names; None where it
            is kept already.
        claim: In a run without a lock, seconds for which the try is this worker's if it falls silent.
        sources: Values of tool steps that a model is told of.
    """

    step: StoredStep
    expected: str = ""
    effect: Effect | None = None
    instead_of: Predecessor | None = None
    setup: bytes | None = None
    claim: float | None = None
    sources: tuple[Source, ...] = ()


@dataclass(slots=True, eq=False)
class Outcome(Write):
    """What completes an intent; it needs the unchanged token of its try, not the fence.

    Attributes:
        status: ``done`` or ``failed``; ``withdrawn`` or ``paused`` for a try that does not count.
        value: Encoded value, or None.
        new_token: Takes the place of the try's token: who still holds that one can no longer write.
    """

    run_id: str
    key: str
    token: str
    status: StoredStatus
    finished_at: float
    ended_tick: int
    value: bytes | None = None
    value_hash: str | None = None
    failure: RecordedFailure | None = None
    raw: bool = False
    resolution: str | None = None
    reply_digest: str | None = None
    calls: tuple[ReplyCall, ...] = ()
    tokens: int = 0
    new_token: str | None = None


@dataclass(frozen=True, slots=True)
class Completed:
    """An intent that nobody waited for and its outcome, which are written together: one row, at once."""

    intent: Intent
    outcome: Outcome

    @property
    def step(self) -> StoredStep:
        """The row of the intent."""
        return self.intent.step


@dataclass(slots=True, eq=False)
class Task(Write):
    """Any other statement, run with the writer's connection inside its transaction.

    Attributes:
        about: The run whose row it changes, or empty.
    """

    run: Callable[[Any], Any]
    about: str = ""


@dataclass(frozen=True, slots=True)
class Opening:
    """A request to take a run's lease and begin an attempt.

    Attributes:
        holder: The process that asks, as text.
        now: Time in seconds since the epoch.
        lease: Length of the lease in seconds.
        input_digest: Digest of the outermost input, or None.
        tags: Words to find a new run by.
        metadata_digests: By what its metadata is found.
        restart: A run whose record was removed may begin anew.
        is_dead: Tells whether a stored holder is certainly gone.
        locked: Only one worker at a time may be at it; fixed when the run is created.
    """

    run_id: str
    holder: str
    now: float
    lease: float
    input_digest: str | None
    metadata: bytes
    is_dead: Callable[[str | None], bool]
    locked: bool = True
    tags: tuple[str, ...] = ()
    metadata_digests: tuple[str, ...] = ()
    restart: bool = False


@dataclass(frozen=True, slots=True)
class Opened:
    """A run whose lease is ours.

    Attributes:
        fence: The number that our writes carry.
        attempt: Number of this attempt, from 1.
        completed_before: The last attempt that ended cleanly, or 0: the agent went on from each failure until then.
        status_before: What the run's status was.
        locked: As the run was created. Where another way was asked for, nothing was taken.
        others: Of a run without a lock, the attempts of the other workers that were at it.
        forked_from: The run that it began as a copy of, or None.
        effects: Whether it may perform side effects.
    """

    fence: int
    attempt: int
    completed_before: int
    status_before: str = "running"
    locked: bool = True
    others: frozenset[int] = frozenset()
    forked_from: str | None = None
    effects: bool = True


@dataclass(frozen=True, slots=True)
class Edit:
    """Another outcome that a person gives a step of a fork, for audit.

    Attributes:
        id: A name of its own.
        token: The try that was recorded.
    """

    id: str
    key: str
    token: str
    value_hash: str | None


@dataclass(frozen=True, slots=True)
class Forking:
    """A request to begin a run as a copy of another one.

    Attributes:
        now: Time in seconds since the epoch; also tells our own fork from another one of the same name.
        effects: Whether it may perform side effects.
        plan: From the run's steps and its last attempt that ended cleanly to the steps of the fork and what was edited.
        is_dead: Tells whether a stored holder is certainly gone.
        by: Who edits.
        note: Why.
        journal: The journal as commands to copy name it.
    """

    run_id: str
    new_run_id: str
    now: float
    effects: bool
    plan: Callable[[list[StoredStep], int], tuple[list[StoredStep], list[Edit]]]
    is_dead: Callable[[str | None], bool]
    by: str
    note: str
    journal: str | None


@dataclass(frozen=True, slots=True)
class Leaving:
    """How an attempt ended.

    Attributes:
        status: ``completed``, ``failed``, ``blocked`` or ``paused``; ``running`` where it was killed from outside.
        now: Time in seconds since the epoch.
        error: Type and text of the error that ended it, or None.
        locked: Whether it held the run's lease, or was one of several workers.
        spared: What it did not spend again, by column of ``gnl_attempts``.
        readable: Its record could be read; over one that could not, no chain is made.
    """

    run_id: str
    fence: int
    attempt: int
    status: str
    now: float
    error: str | None
    locked: bool = True
    spared: Mapping[str, float] = field(default_factory=dict[str, float])
    readable: bool = True


@dataclass(frozen=True, slots=True)
class StoredRun:
    """A row of ``gnl_runs``.

    Attributes:
        holder: Who holds it; of a run without a lock, one of the workers that are at it.
        leased: Its lease had not ended when it was read.
        locked: Only one worker at a time may be at it.
    """

    run_id: str
    status: str
    attempts: int
    created_at: float
    updated_at: float
    fence: int
    holder: str | None
    lease_ends_at: float
    metadata: Mapping[str, Any]
    leased: bool = False
    locked: bool = True
    tags: tuple[str, ...] = ()
    forked_from: str | None = None
    effects: bool = True


@dataclass(frozen=True, slots=True)
class RunFilter:
    """Which runs are meant; each condition that is given must hold.

    Attributes:
        run_id: Exactly this run.
        like: A pattern of SQL's LIKE for the run id; it may fit too many.
        statuses: Stored statuses; without them, all but removed runs.
        tags: All of these.
        metadata_digests: All of these.
        changed_since: Seconds since the epoch.
        changed_before: Seconds since the epoch.
        larger_than: Bytes that its payloads take, at least one more.
        limit: How many at most.
    """

    run_id: str | None = None
    like: str | None = None
    statuses: tuple[str, ...] | None = None
    tags: tuple[str, ...] = ()
    metadata_digests: tuple[str, ...] = ()
    changed_since: float | None = None
    changed_before: float | None = None
    larger_than: int | None = None
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class Removing:
    """A request to remove the record of runs, and who asked for it.

    Attributes:
        removal: Its random name; asked a second time, it has been done.
        kind: ``pruned`` or ``erased``; once-per owners keep their outcome where it is ``pruned``.
        is_dead: Tells whether a stored holder is certainly gone.
        scrub: Overwrite what is deleted.
    """

    removal: str
    kind: str
    by: str
    note: str
    now: float
    is_dead: Callable[[str | None], bool]
    scrub: bool = False


def metadata_digests(metadata: Mapping[str, Any]) -> tuple[str, ...]:
    """By what a run is found: one digest for each name with its value."""
    return tuple(sorted({codec.digest([name, value]) for name, value in metadata.items()}))
