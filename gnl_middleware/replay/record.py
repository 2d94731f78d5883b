"""The record of a run in memory: its steps, and the indexes that make every question about them cheap.

It holds what was read from the journal and what this attempt adds. Whoever uses it holds ``lock``: executor threads and
event loops reach it at once.
"""

import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from typing import Any

from gnl_middleware.conversation import Request
from gnl_middleware.decision import Facts, is_interrupted
from gnl_middleware.identity import Where, graph_scope
from gnl_middleware.model import CARRIED, DECIDED, Kind, StoredStep
from gnl_middleware.policy import Policy, never

from .histories import Histories
from .news import is_news
from .setups import Setups
from .views import Conversations, Ours, proves_nothing_happened


class Record:
    """What a run has done so far.

    Args:
        run_id: The run.
        steps: Its steps as they stand in the journal.
        completed_before: The last attempt that ended cleanly: the agent went on from each failure until then.
        journal: The journal's path, for messages, where it is not the default one.
        attempt: The number of this attempt.
        others: In a run without a lock, the attempts of other workers that were going on when this one began.

    Attributes:
        shift: How many rounds later than in the record the tasks of a graph come now: each time that a person changes its
            state takes a round. None where nobody could look.
        setups: What models were asked with, besides their messages.
        histories: What was worked out of the conversations so far.
        as_written: A value as it would stand in the record, to compare it with what stands there.
    """

    def __init__(
        self,
        run_id: str,
        steps: Iterable[StoredStep],
        *,
        completed_before: int = 0,
        journal: str | None = None,
        attempt: int = 0,
        others: frozenset[int] | None = None,
    ) -> None:
        self.run_id, self.journal, self.attempt, self.others = run_id, journal, attempt, others
        self.lock = threading.RLock()
        self.shift: int | None = None
        self.setups, self.histories = Setups(), Histories()
        self.as_written: Callable[[Any], Any] = lambda value: value
        self.steps: dict[str, StoredStep] = {}
        self.arriving: Counter[str] = Counter()
        self.running: dict[str, Future[None]] = {}
        self.settling: dict[str, Future[None]] = {}
        self.consumed, self.unheard, self.failed_now = set[str](), set[str](), set[str]()
        self.counts: dict[tuple[str, tuple[int, ...], str], tuple[int, str]] = {}
        self.replies: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
        self.callers, self.cleared = dict[str, str](), dict[str, str]()
        self._replies_of_graph: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
        self._given: defaultdict[tuple[str, str, str], list[str]] = defaultdict(list)
        self._entered: dict[str, tuple[str, set[str]]] = {}
        self.calls_of: defaultdict[str, set[str]] = defaultdict(set)
        self._conversations: dict[str, str] = {}
        self._by_conversation: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
        self._by_shape: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
        self._effects_left: defaultdict[str, set[str]] = defaultdict(set)
        self._replies_left: defaultdict[str, set[str]] = defaultdict(set)
        self._suspects: set[str] = set()
        self._unanswered: defaultdict[str, set[str]] = defaultdict(set)
        self._without_reply: defaultdict[tuple[str, str, str, str | None], list[str]] = defaultdict(list)
        self._answered: dict[str, int] = {}
        self._tick = self._number = 0
        self._completed_before = completed_before
        self._load(steps)

    def _load(self, steps: Iterable[StoredStep]) -> None:
        for step in steps:
            self.put(step)
            self.pass_by(max(step.begun, step.ended or 0))
            self._leave_open(step)
            if step.kind == "tool" and step.reply is None:
                self._without_reply[step.scope, step.name, step.fingerprint, step.call_id].append(step.key)
        self.loaded = frozenset(self.steps)

    def _leave_open(self, step: StoredStep) -> None:
        if step.policy in ("never", "keyed") and step.status in ("started", "done", "failed"):
            self._effects_left[graph_scope(step.scope)].add(step.key)
        if step.kind == "model":
            self._replies_left[step.scope].add(step.key)

    def put(self, step: StoredStep) -> None:
        """Take a step as it now stands in the journal."""
        new = step.key not in self.steps
        self.steps[step.key] = step
        self._number = max(self._number, step.number)
        for key in step.answered:
            self._answered[key] = max(self._answered.get(key, 0), step.begun)
        if step.kind == "model":
            self._index_model(step)
        if new and step.reply is not None:
            self.calls_of[step.reply].add(step.key)
        if step.policy == "never" and step.status in ("started", "failed"):
            self._suspects.add(step.key)
        else:
            self._suspects.discard(step.key)

    def _index_model(self, step: StoredStep) -> None:
        _add(self._by_conversation[step.scope, step.fingerprint], step.key)
        _add(self._by_shape[step.scope, step.shape or ""], step.key)
        self._conversations[step.fingerprint] = step.key
        if step.reply_digest is not None:
            _add(self.replies[step.scope, step.reply_digest], step.key)
            _add(self._replies_of_graph[graph_scope(step.scope), step.reply_digest], step.key)

    def tick(self) -> int:
        """The next moment in the order of the run's intents and outcomes."""
        self._tick += 1
        return self._tick

    def pass_by(self, tick: int) -> None:
        """What comes next comes after this moment."""
        self._tick = max(self._tick, tick)

    def next_number(self) -> int:
        """The next step's place in the order in which steps first began."""
        self._number += 1
        return self._number

    def upcoming_number(self) -> int:
        """The number that the next new step will get, unless another call is faster."""
        return self._number + 1

    def newly_answered(self, keys: Iterable[str]) -> set[str]:
        """Those of the tool steps whose answers no recorded request has brought to the model yet."""
        return {key for key in keys if key not in self._answered}

    def consume(self, key: str) -> None:
        """Note that this attempt has come to a step (or that a checkpoint skipped it)."""
        self.consumed.add(key)
        if (step := self.steps.get(key)) is not None:
            self._effects_left[graph_scope(step.scope)].discard(key)
            self._replies_left[step.scope].discard(key)

    def take_back(self, key: str, kind: Kind) -> None:
        """Note that a call has gone without its answer: made again, it is that call, and no further one."""
        (self.consumed.discard if kind == "model" else self.unheard.add)(key)

    def enter(self, where: Where) -> None:
        """Note which tasks of which graphs are around a call: one that is executed again is met from its beginning."""
        for depth, level in enumerate(where.levels, start=1):
            task, entries = self._entered.get(level.scope, ("", set[str]()))
            if task != level.place.task:
                self._entered[level.scope] = level.place.task, {level.place.entry}
            elif level.place.entry not in entries:
                entries.add(level.place.entry)
                self.reenter(level.scope, where.rounds[:depth])

    def reenter(self, scope: str, rounds: tuple[int, ...] = ()) -> None:
        """Meet a scope from its beginning: the step around it is tried again, and what it did inside is read back.

        Args:
            scope: What is inside of it.
            rounds: Of a node of a graph, the rounds of what is tried again: what it did in others stays behind it.
        """
        deep = len(rounds)
        self.histories.forget()
        for counted in [
            each for each in self.counts if each[0].startswith(scope) and each[1][:deep] == rounds
        ]:
            del self.counts[counted]
        for key in [key for key in self.consumed if key.startswith(scope)]:
            step = self.steps.get(key)
            if step is None or step.rounds[:deep] == rounds:
                self.consumed.discard(key)
                if step is not None:
                    self._leave_open(step)
        for asked_for, keys in self._given.items():
            self._given[asked_for] = [
                key for key in keys if key in self.consumed or not key.startswith(scope)
            ]

    def caller_of(self, key: str) -> str | None:
        """The scope in which a tool step was called first; None for one that nobody called yet."""
        step = self.steps.get(key)
        return self.callers.get(key) if step is None else step.scope

    def give(self, step: StoredStep) -> None:
        """Note that this attempt was given a reply: the calls that follow may be those that it asks for."""
        graph = graph_scope(step.scope)
        # As it stands now: whoever gives it may still hold the row of its intent.
        for call_id, name in {(call.call_id, call.name) for call in self.steps[step.key].calls}:
            self._given[graph, call_id, name].append(step.key)

    def given(self, scope: str, call_id: str, name: str) -> list[StoredStep]:
        """The replies with such a call that this attempt was given, the last one first; in a graph the node's own before others'."""
        keys = self._given.get((graph_scope(scope), call_id, name), ())
        return sorted((self.steps[key] for key in reversed(keys)), key=lambda step: step.scope != scope)

    def standing(self, scope: str, digest: str, occurrence: int, *, last: bool = False) -> str | None:
        """The recorded reply that stands so many times in a history; in a graph it may be another node's.

        Args:
            scope: Where the history is told.
            digest: Of the reply.
            occurrence: Which of the equal ones, from 1.
            last: Where there are fewer, take the last one.
        """
        keys = self.replies.get((scope, digest)) or self._replies_of_graph.get(
            (graph_scope(scope), digest), []
        )
        if last:
            occurrence = min(occurrence, len(keys))
        return keys[occurrence - 1] if 0 < occurrence <= len(keys) else None

    def cut_off(
        self, where: Where, name: str, fingerprint: str, call_id: str | None = None
    ) -> StoredStep | None:
        """The same call, cut off in an earlier round that can therefore not have ended: a person shifted the rounds."""
        if not where.rounds:
            return None
        keys = self._without_reply.get((where.scope, name, fingerprint, call_id), ())
        steps = (self.steps[key] for key in keys if key not in self.consumed)
        open_ones = (step for step in steps if step.rounds < where.rounds and self._is_unfinished(step))
        return max(open_ones, key=lambda step: step.number, default=None)

    def _is_unfinished(self, step: StoredStep) -> bool:
        return step.status == "started" or (step.status == "failed" and not self.is_handled(step))

    def facts(self, step: StoredStep | None, policy: Policy) -> Facts:
        """What is known about a step, for the decision."""
        if step is None:
            return Facts()
        return Facts(
            # A call that was only listed while it waited for another one's effect has performed nothing itself.
            status="withdrawn" if step.status == "started" and step.tries == 0 else step.status,
            running=step.key in self.running or step.claimed,
            handled=self.is_handled(step),
            not_performed=proves_nothing_happened(step, policy),
            cleared=self.is_cleared(step) or step.resolution == "not_done",
            decided_failed=step.resolution == "failed",
        )

    def is_cleared(self, step: StoredStep) -> bool:
        """Whether ``recover`` said of this very try, and of no other one, that it has not happened and no longer can."""
        return self.cleared.get(step.key) == step.token

    def is_handled(self, step: StoredStep) -> bool:
        """Whether the agent went on from a failure: told the model, or (a plain function) began a later step."""
        if step.status != "failed" or step.ended is None:
            return False
        told = self._answered.get(step.key, 0) > step.ended
        if told or step.resolution in CARRIED or step.attempt <= self._completed_before:
            return True
        around = self._enclosing(step.scope)
        if around is None or around.ended is None or around.ended < step.ended:
            return False
        return around.status == "done" or self.is_handled(around)

    def failed(self, step: StoredStep) -> None:
        """Note a failure of this attempt: the agent may be about to handle it."""
        self.failed_now.add(step.key)
        if step.reply is None:
            self._unanswered[graph_scope(step.scope)].add(step.key)

    def gone_on_from(self, where: Where) -> set[str]:
        """The failures of a scope that the program has gone on from, now that it begins a later step there.

        Nodes of one round run side by side: the others have not gone on from a failure in it. They are stored with that step:
        which failures a retry comes to after it cannot be told from the order of steps.
        """
        failures = self._unanswered[graph_scope(where.scope)]
        passed = {
            key
            for key in failures
            if (step := self.steps[key]).scope == where.scope or step.rounds != where.rounds
        }
        failures -= passed
        return passed

    def _enclosing(self, scope: str) -> StoredStep | None:
        parts = scope.strip("/").split("/")
        keys = ("/".join(parts[:length]) for length in range(len(parts), 0, -1))
        return next((self.steps[key] for key in keys if key in self.steps), None)

    def interrupted(self, keys: Iterable[str] | None = None) -> list[StoredStep]:
        """Side effects that may have happened without anybody knowing, oldest first.

        A failure of this attempt is not among them: the agent may be about to handle it. Called again, it is settled.
        """
        among = self._suspects if keys is None else self._suspects.intersection(keys)
        found = [self.steps[key] for key in among if key not in self.failed_now]
        return sorted((step for step in found if self._is_interrupted(step)), key=lambda step: step.number)

    def claimed_elsewhere(self) -> list[StoredStep]:
        """Side effects that were another worker's when they were read."""
        return [step for key in self._suspects if (step := self.steps[key]).claimed]

    def failed_equal(self, besides: str, name: str, fingerprint: str) -> list[StoredStep]:
        """Side effects of a tool with these arguments that failed in a way that proves nothing, the latest first."""
        found = [self.steps[key] for key in self._suspects if key != besides]
        equal = ("failed", name, fingerprint)
        failed = [step for step in found if (step.status, step.name, step.fingerprint) == equal]
        undecided = (step for step in failed if step.resolution not in DECIDED)
        open_still = (step for step in undecided if not self.is_cleared(step))
        return sorted(open_still, key=lambda step: -step.number)

    def _is_interrupted(self, step: StoredStep) -> bool:
        return not is_news(self, step) and is_interrupted(step.kind, "never", self.facts(step, never))

    def effects_left(self, scope: str) -> list[StoredStep]:
        """Recorded side effects of a scope, or of the graph whose node it is, that this attempt has not come to."""
        keys = self._effects_left[graph_scope(scope)]
        return sorted((self.steps[key] for key in keys), key=lambda step: step.number)

    def has_left(self, scope: str) -> bool:
        """Whether the journal holds replies or side effects there that this attempt has not come to."""
        return bool(self._replies_left[scope] or self._effects_left[graph_scope(scope)])

    def replies_left(self, scope: str) -> list[StoredStep]:
        """Recorded replies of a scope that this attempt has neither come to nor seen in a history."""
        found = (self.steps[key] for key in self._replies_left[scope])
        return sorted((step for step in found if step.status == "done"), key=lambda step: step.number)

    def has_unreached_models(self, scope: str) -> bool:
        """Whether the journal holds model steps of a scope that this attempt has not come to."""
        return bool(self._replies_left[scope])

    def asked(self, scope: str, request: Request) -> list[StoredStep]:
        """Open model steps of a scope that were asked exactly this, oldest first."""
        keys = self._by_conversation[scope, request.fingerprint]
        return [step for step in self._open(keys) if step.fingerprint == request.fingerprint]

    def shaped(self, scope: str, shape: str) -> list[StoredStep]:
        """Open recorded model steps of a scope whose request had this shape."""
        return [
            step
            for step in self._open(self._by_shape[scope, shape])
            if step.key in self.loaded and step.shape == shape
        ]

    def recorded_rounds(self, where: Where) -> list[tuple[int, ...]]:
        """The rounds that what runs here may have in the record, the likeliest first."""
        return [self.as_recorded(where).rounds, where.rounds] if self.shift else [where.rounds]

    def as_recorded(self, where: Where) -> Where:
        """Where that was in the record, before its rounds shifted."""
        return where.earlier(self.shift or 0)

    def of_this_turn(self, steps: list[StoredStep], where: Where) -> list[StoredStep]:
        """Those of these steps that were begun in the round that is running now.

        Where nobody could look whether rounds have shifted, all are better than none.
        """
        for rounds in self.recorded_rounds(where):
            if found := [step for step in steps if step.rounds == rounds]:
                return found
        return steps if self.shift is None else []

    def _open(self, keys: Iterable[str]) -> Iterator[StoredStep]:
        """Those that this attempt has not come to; one that another attempt is at, in this process, is waited for."""
        return (self.steps[key] for key in keys if key not in self.consumed)

    def models(self, scope: str) -> list[StoredStep]:
        """All model steps of a scope, or of the graph whose node it is."""
        graph = graph_scope(scope)
        models = (step for step in self.steps.values() if step.kind == "model")
        return [step for step in models if step.scope == scope or graph_scope(step.scope) == graph]

    def our_replies(self, scope: str) -> Ours:
        """The digests of the replies that this run's models gave in a scope."""
        return Ours(self, scope)

    def conversations(self, besides: str) -> Conversations:
        """The digests of the recorded conversations that can be continued; never those of the step itself."""
        return Conversations(self, besides)

    def continued(self, digest: str) -> StoredStep | None:
        """The recorded model step that was asked exactly the conversation of this digest."""
        key = self._conversations.get(digest)
        step = self.steps[key] if key is not None else None
        return step if step is not None and step.fingerprint == digest else None


def _add(keys: list[str], key: str) -> None:
    if (not keys or keys[-1] != key) and key not in keys:
        keys.append(key)
