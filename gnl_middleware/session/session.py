"""One open run: its record, its lease, its latch and its counters. No call is decided here; see ``engine``."""

import itertools
import secrets
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NoReturn

from gnl_middleware import codec
from gnl_middleware.clock import Clock
from gnl_middleware.errors import GnlError, LeaseLostError
from gnl_middleware.identity import idempotency_key
from gnl_middleware.lease import Holder
from gnl_middleware.model import StoredStep
from gnl_middleware.policy import OnInterrupted, Policy, is_disputed, never, remembered, stricter
from gnl_middleware.replay.call import AnyCall, Call
from gnl_middleware.replay.divergence import OnChange, Strictness
from gnl_middleware.replay.news import await_running, merge
from gnl_middleware.replay.record import Record

from .context import current_steps
from .running import all_running_here
from .watching import Watcher

if TYPE_CHECKING:
    from gnl_middleware.storage.database import Database

Replay = Literal["lenient", "strict"]


@dataclass(frozen=True, slots=True)
class CurrentStep:
    """The step whose body is running.

    Attributes:
        run_id: Its run.
        key: The step; the same on every attempt.
        name: The tool or function.
        attempts: How often it was tried, this try included.
        origin: In a fork, the run in which it began; None for its run.
    """

    run_id: str
    key: str
    name: str
    attempts: int
    origin: str | None = None

    @property
    def idempotency_key(self) -> str:
        """A key for the outside world: the same on every attempt, different for every step."""
        return idempotency_key(self.origin or self.run_id, self.key)


@dataclass(frozen=True, slots=True)
class Options:
    """How a run replays.

    Attributes:
        replay: ``lenient`` serves a record to a slightly different call, ``strict`` raises DivergenceError.
        offline: Nothing runs live, and nothing is written.
        on_interrupted: What happens to a side effect that nothing can settle, unless its policy says otherwise.
        on_change: What a changed setup of the agent does; None for ``stop`` where the replay is strict, else ``continue``.
    """

    replay: Replay = "lenient"
    offline: bool = False
    on_interrupted: OnInterrupted = "block"
    on_change: OnChange | None = None

    @property
    def strictness(self) -> Strictness:
        """What may differ from the record."""
        strict = self.replay == "strict"
        return Strictness(strict, self.on_change or ("stop" if strict else "continue"))


@dataclass(slots=True)
class Lease:
    """The right to work on the run, as this process knows it.

    Attributes:
        fence: The number that our writes carry.
        length: Seconds.
        deadline: Monotonic time after which the lease may be another's.
        lost: How the loss was noticed, or None.
    """

    fence: int
    length: float
    deadline: float
    lost: str | None = None


@dataclass(slots=True)
class Spared:
    """What this attempt did and did not spend.

    Attributes:
        ran: Steps that ran.
        read_back: Steps whose outcome was read back.
        tokens: Tokens of the model replies read back.
        seconds: Seconds that the steps read back took when they ran.
    """

    ran: int = 0
    read_back: int = 0
    tokens: int = 0
    seconds: float = 0.0

    def count(self, step: StoredStep) -> None:
        """Note that a step was read back."""
        self.read_back += 1
        self.tokens += step.tokens
        self.seconds += max(0.0, (step.finished_at or step.started_at) - step.started_at)


@dataclass(frozen=True, slots=True)
class News:
    """What was read of a run.

    Attributes:
        steps: Its steps.
        running: The ends of the tries that went on in this process before they were read, by their tokens.
    """

    steps: list[StoredStep]
    running: "Mapping[str, Future[None]]"


@dataclass(slots=True, eq=False)
class Session:
    """An open run, shared by all threads and tasks that work on it.

    Attributes:
        attempt: Number of this attempt, from 1.
        holder: This process, as the journal names it while the run is open.
        policies: Policies of the tools that adapters have wrapped for this run, by tool name.
        latch: The first control error of this attempt; every later call raises it again.
        spoiled: Steps inside whose bodies a control error was raised: their values are not to be trusted.
        paused: The attempt stopped at an approval.
        status_before: What the run's status was when this attempt began.
        locked: The run has one worker at a time; else each call is claimed by one of several.
        claims: In a run without a lock, the tokens of the tries that this worker has claimed and not ended.
        suspended: How to end the tries whose streams wait for their consumers, by step.
        effects: Whether side effects may be performed; false in most forks.
        forked_from: The run that this one began as a copy of, or None.
        wary: The last worker died and nothing has succeeded since: what runs now may be what killed it, so each try is
            written before it begins.
        has_warned: The log says already that a request differs from its record.
        rounds_ahead: How many rounds of a graph were handed over to it: its own count begins anew, the record's goes on.
        handle: The ``Run`` that the caller holds.
        entered_by: Thread and task that entered the run.
        watcher: Who looks on, or None.
    """

    database: "Database"
    run_id: str
    attempt: int
    options: Options
    lease: Lease
    record: Record
    clock: Clock
    holder: Holder
    policies: dict[str, Policy] = field(default_factory=dict[str, Policy])
    latch: GnlError | None = None
    spoiled: set[str] = field(default_factory=set[str])
    paused: bool = False
    status_before: str = "running"
    locked: bool = True
    claims: set[str] = field(default_factory=set[str])
    suspended: "dict[str, Callable[[], None]]" = field(default_factory=dict[str, Any])
    effects: bool = True
    forked_from: str | None = None
    wary: bool = False
    has_warned: bool = False
    rounds_ahead: int = 0
    handle: Any = None
    entered_by: tuple[int, Any] = (0, None)
    watcher: Watcher | None = None
    spared: Spared = field(default_factory=Spared)
    lock: threading.Lock = field(default_factory=threading.Lock, repr=False)
    _nonce: str = field(default_factory=lambda: secrets.token_hex(8), repr=False)
    _tries: Iterator[int] = field(default_factory=itertools.count, repr=False)
    # Lets the renewer forget a session that was dropped without being left.
    __weakref__: object = field(init=False, repr=False)

    @property
    def strict(self) -> bool:
        """Whether every mismatch raises."""
        return self.options.replay == "strict"

    @property
    def redacts(self) -> bool:
        """Whether texts are taken out of what is written; the program gets what is left, live and on replay."""
        return self.database.protection.redact is not None

    def new_token(self) -> str:
        """A name for a try, which no other try has: drawn once for the attempt, since to draw lets other threads in."""
        return f"{self._nonce}{next(self._tries):x}"

    def encode(self, value: Any, types: tuple[type, ...] = ()) -> bytes:
        """A value as it is written; besides registered classes it may hold those of the types.

        Raises:
            UnserializableValueError: It cannot be journalled, or not redacted.
        """
        with codec.declared(types):
            return self.redacted(codec.encode(value))

    def redacted(self, encoded: bytes) -> bytes:
        """What an adapter has encoded, as it is written."""
        return self.database.protection.redacted(encoded)

    def stop(self, error: GnlError, call: Call | None = None) -> NoReturn:
        """Set the latch and raise it: whatever swallows this error, the next call of the run raises it again."""
        raised = error if call is None else call.as_control(error)
        with self.lock:
            self.spoiled.update(step.key for step in current_steps())
            if self.latch is None or self.latch is error:
                self.latch = raised
        raise raised

    def check_latch(self, call: Call) -> None:
        """Raise the first control error of this attempt again, if there was one."""
        if self.latch is not None:
            self.stop(self.latch, call)

    def gone(self, key: str, call: AnyCall) -> None:
        """Note that whoever made a call has gone without its answer, as when a time ran out: who calls again waits for it."""
        with self.record.lock:
            self.record.take_back(key, call.kind)

    def check_lease(self) -> None:
        """Raise LeaseLostError unless the lease is certainly ours."""
        if self.lease.lost is None and self.clock.monotonic() >= self.lease.deadline:
            self.lease.lost = "deadline"
        if self.lease.lost is not None:
            raise LeaseLostError(run_id=self.run_id, reason=self.lease.lost)

    def note_shift(self, rounds: int) -> None:
        """Note how many rounds later than in the record a graph's tasks come now, since a person changed its state."""
        with self.record.lock:
            self.record.shift = rounds

    def leave_to_the_parent(self) -> None:
        """After a fork, in the child: the run and its lease are the parent's, so nothing more is started here."""
        self.lease.lost = "fork"
        self.claims.clear()
        # Held by threads, and awaited from bodies, that only the parent has.
        self.lock, self.record.lock = threading.Lock(), threading.RLock()
        self.record.running.clear()
        self.record.settling.clear()

    def register(self, policies: dict[str, Policy]) -> None:
        """Make the hooks of wrapped tools known, so that interrupted calls can be settled before anything goes on."""
        with self.lock:
            self.policies.update(policies)

    def policy_of(self, step: StoredStep) -> Policy:
        """The policy of a recorded step; of the labels before and after a change, the stricter one."""
        return stricter(self.policies.get(step.name) or remembered(step.name) or never, step.policy)

    def is_disputed(self, step: StoredStep) -> bool:
        """Whether several tools of this process have the step's name, and nobody has told yet which one it was."""
        return step.name not in self.policies and is_disputed(step.name)

    def take_over(self, key: str, ended: "Future[None]") -> None:
        """Read how a try ended that an earlier attempt had left running in this process."""
        if self.record.running.get(key) is ended:
            self.refresh(key, over=ended)

    def take_over_what_ended(self) -> None:
        """The same for all that have ended since: a body that died with its thread may have had its effect."""
        for key, ended in list(self.record.running.items()):
            if ended.done():
                self.take_over(key, ended)

    def left_behind(self) -> "dict[str, Future[None]]":
        """Bodies of side effects that an earlier attempt left running in this process.

        In a run without a lock they may be another worker's, who is at it beside this one.
        """
        if not self.locked:
            return {}
        with self.record.lock:
            steps, running = self.record.steps, self.record.running
            earlier = [key for key in running if steps[key].attempt < self.attempt]
            return {key: running[key] for key in earlier if steps[key].policy in ("never", "keyed")}

    def refresh(self, key: str, *, over: "Future[None] | None" = None) -> None:
        """Read a step again after another try or a person has changed it.

        Args:
            key: The step.
            over: The end of the try that was waited for.
        """
        running = all_running_here()
        # Nobody waits until the end of a try whose body never began is written.
        found = self.database.load_written(self.run_id, self.clock.time())
        self.take_news(News(found, running), sure=key, over=over)

    def look(self) -> "News":
        """Read the run's steps as they stand now."""
        running = all_running_here()
        return News(self.database.load(self.run_id, self.clock.time()), running)

    def take_news(self, news: "News", *, sure: str = "", over: "Future[None] | None" = None) -> None:
        """Take what was read: where several workers are at the run, what all of them have done; else one step."""
        record = self.record
        with record.lock:
            if over is not None and record.running.get(sure) is not over:
                return  # another call that waited for it has taken its end already, and maybe tried again
            if over is not None:
                del record.running[sure]
            if not self.locked:
                merge(record, news.steps, sure=sure)
            elif sure not in record.running:
                record.put(next(step for step in news.steps if step.key == sure))
            await_running(record, news.steps, news.running)
