"""The values that the floors hand each other: frozen, typed, without I/O."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from gnl_middleware.identity import idempotency_key

Kind = Literal["model", "tool", "value"]
"""What a step is: a model's reply, a tool's or function's call, or a recorded value such as ``run.now()``."""

StepStatus = Literal["started", "done", "failed"]
"""``started``: an intent without outcome; ``done``: its value is recorded; ``failed``: its error is."""

StoredStatus = Literal["started", "done", "failed", "withdrawn", "paused"]
"""As ``StepStatus``; ``withdrawn``: cancelled before its body began; ``paused``: stopped at an approval."""

RunStatus = Literal["running", "paused", "completed", "failed", "blocked", "interrupted", "erased"]
"""``blocked``: waits for a person's decision; ``interrupted``: not ended, and nobody holds it; ``erased``: its record was
removed, and only its run id is kept."""

EDITED, HANDLED = "edited", "handled"
"""Resolutions in a fork: a person has given the step this outcome; the run that was copied had gone on from the failure."""
CARRIED, DECIDED = (EDITED, HANDLED), (EDITED, "failed")
"""Resolutions of failures that are history; and of those that a person has decided."""

WITHHELD = "this fork performs no side effects"
"""Why a call is blocked that has not run."""


@dataclass(frozen=True, slots=True)
class Done:
    """The interrupted call happened, and this is its result.

    Attributes:
        value: The raw value, as the tool would have returned it.

    Example:
        >>> Done("T-7").value
        'T-7'
    """

    value: Any = None


@dataclass(frozen=True, slots=True)
class NotDone:
    """The interrupted call has not happened **and can no longer happen**: it may run."""


@dataclass(frozen=True, slots=True)
class Unknown:
    """Nobody can tell whether the interrupted call happened."""


@dataclass(frozen=True, slots=True)
class Failed:
    """A person's decision that the call failed: the agent gets this text as the tool's error.

    Attributes:
        error: What the agent is told.
    """

    error: str


Answer = Done | NotDone | Unknown
"""What ``recover`` returns."""

Decision = Done | NotDone | Failed
"""What a person decides through ``Journal.resolve`` or ``gnl resolve``."""


@dataclass(frozen=True, slots=True)
class InterruptedCall:
    """What ``recover`` gets: a call that began and left no outcome.

    Attributes:
        run_id: The run.
        step_key: The step; the same on every attempt.
        tool: The tool's name.
        arguments: What it was called with.
        idempotency_key: The key that the call was given; the same on every attempt.
        started_at: When its last try began, in seconds since the epoch.
        attempts: How often it was tried so far.
        error: Type and text of the error that its last try ended with, if it did.
    """

    run_id: str
    step_key: str
    tool: str
    arguments: Any
    idempotency_key: str
    started_at: float | None
    attempts: int
    error: str | None = None


def type_name(kind: type[BaseException]) -> str:
    """The name that a class of errors is known by: a library's ``TimeoutError`` is not Python's."""
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


@dataclass(frozen=True, slots=True)
class RecordedFailure:
    """An error as the journal keeps it.

    Attributes:
        type_name: The qualified name of its class; of a class that is not built in, with its module.
        text: Its text.
        args: Its arguments, where they can be journalled; else None.
        state: Its attributes, where they can be journalled; else None.
    """

    type_name: str
    text: str
    args: tuple[Any, ...] | None = None
    state: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class ReplyCall:
    """A tool call that a recorded model reply asks for.

    Attributes:
        call_id: The provider's id; providers reuse and omit them.
        name: The tool.
        arguments_digest: Digest of the arguments as the model gave them.
    """

    call_id: str
    name: str
    arguments_digest: str


@dataclass(frozen=True, slots=True)
class StoredStep:
    """A row of ``gnl_steps`` with its payloads, as the session holds it in memory.

    Attributes:
        token: Random name of the try that claimed the step last; an outcome needs it unchanged.
        begun: Order of intents and outcomes within the run: when the last try began …
        ended: … and when it ended.
        arguments: Encoded arguments; for a model step the messages that are new since ``base``.
        fingerprint: Digest of what was asked.
        reply: For a tool step, the key of the model step whose reply carries the call.
        position: For a tool step, the place of the call in that reply.
        rounds: For a call inside a graph, the rounds of the graphs around it in which its last try began, the outermost
            first.
        base: For a model step, digest of the conversation that ``arguments`` continues.
        setups: For a model step, digests of every model and settings that were tried.
        answered: Keys of the failed steps that the program had gone on from when this one began; for a model step, also
            those of the tool steps whose answers its new messages bring.
        calls: For a model step, the tool calls that its reply asks for.
        reply_digest: For a model step, digest of its reply as it will stand in later requests.
        raw: The value comes from ``recover`` or a person, not from the framework.
        side_effect: It began as ``never`` or ``keyed``; its run counts these.
        value: Encoded value; None with status ``done`` means that it could not be encoded.
        holder: In a run without a lock, the worker that claimed it last.
        claimed_until: When that claim ends if it is not renewed, by the clock that all workers share.
        claimed: When it was read, that claim had not ended, and its worker was not known to be dead.
        origin: In a fork, the run in which the step began; None for this run.
        payloads: In a fork, the run among whose payloads its arguments and value are; None for this run.
    """

    run_id: str
    key: str
    number: int
    scope: str
    kind: Kind
    name: str
    policy: str
    status: StoredStatus
    token: str
    fence: int
    tries: int
    attempt: int
    started_at: float
    begun: int
    arguments: bytes
    arguments_hash: str
    fingerprint: str
    reply: str | None = None
    position: int | None = None
    call_id: str | None = None
    rounds: tuple[int, ...] = ()
    shape: str | None = None
    base: str | None = None
    setups: tuple[str, ...] = ()
    answered: tuple[str, ...] = ()
    calls: tuple[ReplyCall, ...] = ()
    reply_digest: str | None = None
    tokens: int = 0
    finished_at: float | None = None
    ended: int | None = None
    value: bytes | None = None
    value_hash: str | None = None
    failure: RecordedFailure | None = None
    raw: bool = False
    blocked: str | None = None
    resolution: str | None = None
    drifted: bool = False
    late: bytes | None = None
    side_effect: bool = False
    holder: str | None = None
    claimed_until: float | None = None
    claimed: bool = False
    origin: str | None = None
    payloads: str | None = None

    @property
    def idempotency_key(self) -> str:
        """The key that the call is given: the same on every attempt, and in every fork that carries the call along."""
        return idempotency_key(self.origin or self.run_id, self.key)


@dataclass(frozen=True, slots=True)
class Step:
    """One journalled call, as ``Journal.steps`` shows it.

    Attributes:
        run_id: The run.
        key: The step's name within the run; the same on every attempt.
        number: Place in the order in which the steps first began, from 1.
        scope: Where it happened: empty for the run itself, else the enclosing tool step or named branch.
        kind: ``model``, ``tool`` or ``value``.
        name: The model, tool or function.
        policy: The replay label of a tool step.
        status: ``started``, ``done`` or ``failed``.
        blocked: Why it waits for a person's decision, or None.
        attempts: How often it was tried, crashes included.
        started_at: When its last try began, in seconds since the epoch.
        finished_at: When its outcome was recorded, in seconds since the epoch.
        arguments: What it was called with; for a model step, the messages new since the request before.
        value: What it returned; None while there is no outcome, and for a value that could not be encoded.
        error: Type and text of its error, if it failed.
        drifted: A replay asked something slightly different and got this record.
        resolution: How a person or ``recover`` decided it, or None.
        attempt: Number of the run's attempt in which its last try began.
        tokens: Tokens that a model's reply was billed for, or 0.
        origin: In a fork, the run in which it began, whose idempotency key it keeps; None for this run.
    """

    run_id: str
    key: str
    number: int
    scope: str
    kind: Kind
    name: str
    policy: str
    status: StepStatus
    blocked: str | None
    attempts: int
    started_at: float
    finished_at: float | None
    arguments: Any
    value: Any
    error: str | None
    drifted: bool
    resolution: str | None
    attempt: int = 1
    tokens: int = 0
    origin: str | None = None

    @property
    def idempotency_key(self) -> str:
        """The key that the call was given: the same on every attempt, and in every fork that carries the call along."""
        return idempotency_key(self.origin or self.run_id, self.key)


@dataclass(frozen=True, slots=True)
class Integrity:
    """What can be said about a run's rows, as ``Journal.verify_integrity`` gives it.

    Attributes:
        run_id: The run.
        head: The head of the chain over its rows, made when an attempt last left it or a person last decided a step;
            None before. Kept elsewhere and given back as ``expect``, it proves that nothing was changed since.
        covered: How many rows (steps, attempts, decisions) are as they were when the head was made.
        later: Rows that were added or went on since, by their names: until the next head only their own seals cover them.
        problems: What does not fit: rows that were changed or are gone, payloads that are not what was written.
        keyed: The journal was opened with an integrity key.

    Example:
        >>> Integrity(run_id="order-7", head="ab", covered=3).intact
        True
    """

    run_id: str
    head: str | None = None
    covered: int = 0
    later: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    keyed: bool = False

    @property
    def intact(self) -> bool:
        """Whether nothing was found to be changed."""
        return not self.problems

    def with_problems(self, problems: Iterable[str]) -> "Integrity":
        """The same with these problems, each once."""
        return replace(self, problems=tuple(dict.fromkeys(problems)))


@dataclass(frozen=True, slots=True)
class RunRecord:
    """One run, as ``Journal.runs`` shows it.

    Attributes:
        run_id: The run.
        status: See ``RunStatus``.
        attempts: How often its code was started.
        created_at: In seconds since the epoch.
        updated_at: In seconds since the epoch.
        holder: Who holds it now, or None.
        lease_ends_at: When the holder's lease ends, in seconds since the epoch, or None.
        metadata: What the caller stored with it.
        tags: Words that the caller gave it to be found by, sorted.
        forked_from: The run that it began as a copy of, or None.
        effects: Whether it may perform side effects; a fork performs none unless it was made with ``effects=True``.
    """

    run_id: str
    status: RunStatus
    attempts: int
    created_at: float
    updated_at: float
    holder: str | None
    lease_ends_at: float | None
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])
    tags: tuple[str, ...] = ()
    forked_from: str | None = None
    effects: bool = True


Apart = Literal["only_in_a", "only_in_b", "name", "arguments", "messages", "setup", "reply", "outcome"]
"""What differs where two runs part: a step that only one has; another model or tool; other arguments of a tool; other
messages, or another setup, of a model; another reply of a model; another outcome of a tool or value."""


@dataclass(frozen=True, slots=True)
class RunDifference:
    """Where two runs part, as ``Journal.diff`` tells it.

    Attributes:
        a: A run.
        b: Another one.
        equal_steps: How many steps are equal before they part, or in all.
        what: What differs; None where the runs are equal.
        step_a: The first step at which they differ, in the first run; None where that one has no such step.
        step_b: The same in the second run.
        difference: What differs, as the lines that changed; short also for long conversations.
    """

    a: str
    b: str
    equal_steps: int
    what: Apart | None
    step_a: Step | None
    step_b: Step | None
    difference: str
