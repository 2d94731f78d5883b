"""What the state machine works with: the journal, its process and its machine, an open attempt, and the reference."""

import contextlib
import contextvars
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

from hypothesis.stateful import RuleBasedStateMachine

from gnl_middleware import Journal
from gnl_middleware.storage.link import RETRIES
from tests.processes.hanging import alarm

from .agent import Abandoned, Said, World, call_now, tool_call
from .faults import Clock, Disk, as_left_by_the_dead, flush, locked, numbered
from .reference import LIMIT, Behaviour, Call, Reference, Result, Row

RUN = "order-7"
LEASE = 1000.0
_PATIENCE = 60
_HUNG = ("error", f"hung for {_PATIENCE} s")

counted: Counter[str] = Counter()
"""What the machines of a test did."""


class How(NamedTuple):
    """How a call is made.

    Attributes:
        behaviour: What the body does if it runs.
        later: Asynchronously.
        blip: The commits that fail meanwhile and are tried again.
    """

    behaviour: Behaviour = "return"
    later: bool = False
    blip: tuple[str, ...] = ()


class Attempt:
    """An open run, in a context of its own, and how far its agent has come.

    Attributes:
        history: What the model was told last, and what it said.
        reply: What it said.
        answers: What the calls of that reply gave.
        errors: What they raised, until the agent handles it.
    """

    def __init__(self, journal: Journal, *, tells: bool, offline: bool = False) -> None:
        self.run = journal.run(
            RUN, lease=LEASE, grace=0.0, offline=offline, on_interrupted="tell_model" if tells else "block"
        )
        self._context = contextvars.copy_context()
        self._context.run(self.run.__enter__)
        self.history: list[Said] = [("user", "please pay", "")]
        self.reply = ""
        self.answers: dict[str, str] = {}
        self.errors: dict[str, str] = {}

    def leave(self, error: BaseException | None) -> None:
        """Leave the run."""
        self._context.run(self.run.__exit__, type(error) if error else None, error, None)


class Stage(RuleBasedStateMachine):
    """Attempts at one run, beside the reference."""

    def __init__(self) -> None:
        super().__init__()
        self.cleanup = contextlib.ExitStack()
        self.files = numbered(Path(self.cleanup.enter_context(tempfile.TemporaryDirectory())))
        self.clock, self.disk = Clock(), Disk()
        self.world = World(self._outage)
        self.attempt: Any = None
        self.abandoned: dict[str, Abandoned] = {}
        self.script: list[list[Call]] = []
        self.status, self.lease_ends, self.hangs = "", 0.0, False
        self._open(next(self.files))

    def _open(self, path: Path) -> None:
        self.path, self.journals = path, [Journal(path, clock=self.clock)]
        self.disk.attach(self.journal)

    def close(self) -> None:
        """End what is left."""
        if self.attempt is not None:  # only where something else has failed
            self.attempt.leave(KeyboardInterrupt())
        self._bury()
        for journal in self.journals:
            journal.close()
        self.cleanup.close()

    @property
    def journal(self) -> Journal:
        """The journal of the last worker."""
        return self.journals[-1]

    def _outage(self, when: str) -> None:
        flush(self.journal)
        self.disk.plan = [when] * RETRIES

    def prepare(self, turns: Any, *, tells: bool) -> None:
        """Take what the model will ask for: for each turn, label and hook of the tools that it calls."""
        self.reference = Reference(tells)
        self.script = [
            [
                Call(f"t{turn}.{place}", label, recover if label == "never" else "", f"model {turn}")
                for place, (label, recover) in enumerate(calls)
            ]
            for turn, calls in enumerate(turns)
        ]
        self.policies = {call.name: self.world.policy(call) for call in self.tools()}

    def tools(self) -> list[Call]:
        """The calls of all turns."""
        return [call for calls in self.script for call in calls]

    # How far the open attempt has come.

    def turn(self) -> int:
        """How many replies it has got."""
        return sum(role == "assistant" for role, _, _ in self.attempt.history)

    def asked(self) -> list[Call]:
        """What the last reply asks for; the last of all asks for nothing."""
        turn = self.turn()
        return self.script[turn - 1] if 0 < turn <= len(self.script) else []

    def open_calls(self) -> list[Call]:
        """Those of them that wait for an answer and do not run."""
        rows = self.reference.rows
        waiting = [call for call in self.asked() if call.name not in self.attempt.answers]
        return [call for call in waiting if call.name not in rows or not self.reference.runs(rows[call.name])]

    def answer(self, call: Call, text: str) -> None:
        """Take what a call gave."""
        self.attempt.answers[call.name] = text
        self.attempt.errors.pop(call.name, None)

    # What is done in the library and in the reference alike.

    def begin_attempt(self, blip: tuple[str, ...] = ()) -> None:
        """Open the run."""
        self.disk.plan = list(blip)
        self.clock.begin()
        self.attempt = Attempt(self.journal, tells=self.reference.tells)
        self.disk.plan, self.lease_ends = [], self.clock.wall + LEASE
        self.reference.begin()
        self.attempt.run.session.register(self.policies)
        assert self.attempt.run.attempt == self.reference.attempt

    def perform(self, call: Call, asked: Any, how: How, answered: Any = ()) -> Result:
        """Make a call; what comes of it must be the same."""
        counted["calls"] += 1
        self.disk.plan = list(how.blip)
        expected = self.reference.perform(call, how.behaviour, answered)
        with alarm(_PATIENCE):
            result = self.call(self.attempt, call, asked, how)
        self.disk.plan, self.hangs = [], result == _HUNG
        assert result == expected, f"{call.name} gave {result} instead of {expected}"
        self.check_world()
        return result

    def call(self, attempt: Attempt, call: Call, asked: Any, how: How) -> Result:
        """Make a call in the library alone."""
        act = lambda: self.world.act(call.name, how.behaviour)  # noqa: E731
        return call_now(attempt.run.session, asked, act, how.behaviour, later=how.later)

    def as_asked(self, call: Call, attempt: Attempt) -> Any:
        """A tool's call as the adapter surface takes it."""
        return tool_call(call, self.policies[call.name], attempt.reply)

    def check_world(self) -> None:
        """Nothing has happened but what must have."""
        assert self.world.ran == self.reference.ran
        assert self.world.performed == self.reference.performed
        assert self.world.asked == self.reference.asked
        assert all(len(keys) == 1 for keys in self.world.keys.values())
        never = [call.name for call in self.tools() if call.label == "never"]
        assert all(len(self.world.performed.get(name, ())) <= 1 for name in never)

    def check_listing(self) -> None:
        """The journal lists what the reference holds."""
        flush(self.journal)
        listed = [
            (step.number, step.status, step.attempts, step.value, bool(step.blocked), step.resolution)
            for step in self.journal.steps(RUN)
        ]
        rows = sorted(self.reference.rows.values(), key=lambda row: row.number)
        assert listed == [
            (row.number, row.status, row.tries, row.value, row.blocked, row.resolution)
            for row in rows
            if row.status != "withdrawn"
        ]
        if self.reference.attempt:
            (record,) = self.journal.runs()
            assert (record.attempts, record.holder) == (self.reference.attempt, None)
            assert self.status in (record.status, "lost")

    def key_of(self, row: Row) -> str:
        """The key under which the journal has the step."""
        (key,) = [step.key for step in self.journal.steps(RUN) if step.number == row.number]
        return key

    # What happens to the process and to its machine.

    def kill(self, place: int, *, unwritten: bool) -> None:
        """The process dies, with all its threads; another one opens what is on the disk."""
        counted["restarts"] += 1
        flush(self.journal)
        dead, attempt, copy = self.journals, self.attempt, next(self.files)
        with locked(self.path):
            if unwritten and attempt is not None:
                self._die_unwritten(place)
            as_left_by_the_dead(self.path, copy)
        self.attempt = None
        self._bury()
        if attempt is not None:
            self.status = "interrupted"
            attempt.leave(KeyboardInterrupt())
        for journal in dead:
            journal.close()
        self._open(copy)
        self.check_listing()

    def _bury(self) -> None:
        # What these threads do from here on, nobody sees: their process is gone.
        unseen = World(lambda _when: None)
        for one in self.abandoned.values():
            one.bury(unseen)
        self.abandoned = {}
        if self.script:
            self.reference.running = {}

    def _die_unwritten(self, place: int) -> None:
        """Die in a body whose intent nobody waited for and that was never written."""
        calls = [call for call in self.open_calls() if call.label == "safe" and self.may_try(call)]
        if self.reference.latch or self.reference.lease_gone or not calls:
            return
        if self.attempt.run.session.wary:
            return  # after a death, tries are waited for
        call = calls[place % len(calls)]
        if self.reference.decision(call) == "run":
            counted["intents lost with the process"] += 1
            self.reference.ran[call.name] += 1
            how = How("die before effect")
            result = self.call(self.attempt, call, self.as_asked(call, self.attempt), how)
            assert result == ("died",), result

    def suspend(self) -> None:
        """The process stands still for longer than its lease."""
        counted["suspended attempts"] += 1
        self.clock.wall += LEASE
        self.clock.steady += LEASE
        self.reference.lease_gone = True

    def take_over(self, place: int) -> None:
        """Another worker, whose clock is ahead, takes the run: the first one begins no side effect any more."""
        counted["take-overs"] += 1
        old, reference = self.attempt, self.reference
        idle = not (reference.latch or reference.lease_gone or reference.suspects())
        calls = [call for call in self.open_calls() if call.label != "safe" and self.may_try(call)]
        fresh = [call for call in calls if idle and reference.decision(call) == "run"]
        self.clock = Clock(self.lease_ends + 1.0)
        self.journals.append(Journal(self.path, clock=self.clock))
        self.attempt = None
        self.begin_attempt()
        if fresh:
            call = fresh[place % len(fresh)]
            assert self.call(old, call, self.as_asked(call, old), How()) == ("lease",)
        old.leave(KeyboardInterrupt())

    def may_try(self, call: Call) -> bool:
        """Whether the step has a try left."""
        row = self.reference.rows.get(call.name)
        return row is None or row.tries < LIMIT
