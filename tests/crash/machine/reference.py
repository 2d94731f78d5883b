"""DESIGN 3.1 as a model that is small enough to read: no database, no processes, no threads.

It is told what a body does if it runs, and says what the caller must get; it never looks at the library.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

Result = tuple[str, ...]
"""What the caller gets: ``("value", V)``, ``("error", TEXT)``, or the name of what stopped the call."""

Behaviour = Literal[
    "return",
    "raise",  # after the effect, as a timeout does
    "refuse",  # an error that proves that there was no effect
    "die before effect",
    "die after effect",
    "cancelled before body",
    "cancelled in body",
    "cancelled at outcome",
    "unreadable",
    "outage at outcome",  # the database fails for good before the outcome is committed …
    "outage after outcome",  # … or after that, so that only the acknowledgement is lost
]
NOTE = (
    "This call of {name} was interrupted: it began at an earlier attempt and left no result. It may or may not have "
    "happened. Check whether it did before you call it again or report it."
)
LIMIT = 3
"""Tries of a step, for all policies of the machine."""


@dataclass(frozen=True)
class Call:
    """A model call, or a tool call that a reply asks for.

    Attributes:
        name: Names the step; for a tool also the tool.
        label: ``model``, ``safe``, ``keyed`` or ``never``.
        recover: What the tool's hook does: tell the ``truth``, say ``unknown``, or ``raises``; empty for none.
        reply: For a tool call, the step of the reply that asks for it.
    """

    name: str
    label: str
    recover: str = ""
    reply: str = ""


@dataclass
class Row:
    """A step as it must stand in the journal.

    Attributes:
        attempt: The attempt that tried it last.
        token: Grows when the step is tried or decided anew.
        proven: It failed with an error that proves that there was no effect.
        handled: It failed, and a later request brought that to the model.
    """

    call: Call
    number: int
    attempt: int = 0
    status: str = "started"
    tries: int = 1
    token: int = 0
    value: str | None = None
    error: str | None = None
    proven: bool = False
    handled: bool = False
    resolution: str | None = None
    blocked: bool = False


@dataclass
class Reference:
    """The journal, the open attempt and the world, as they must be.

    Attributes:
        tells: Whether the model is told of what may have happened, instead of blocking the run.
        rows: The journal.
        running: The tries that still run in this process, each with the token of its claim.
        attempt: The attempt that is open, or was the last.
        completed: The last attempt that ended cleanly.
        latch: What stopped this attempt.
        lease_gone: The attempt was suspended for longer than its lease.
        ran: How often each body ran.
        performed: The results of the effects that happened.
        asked: How often ``recover`` was asked.
    """

    tells: bool
    rows: dict[str, Row] = field(default_factory=dict)
    running: dict[str, int] = field(default_factory=dict)
    attempt: int = 0
    completed: int = 0
    latch: str | None = None
    lease_gone: bool = False
    cleared: set[str] = field(default_factory=set)
    failed_now: set[str] = field(default_factory=set)
    ran: Counter[str] = field(default_factory=Counter)
    performed: dict[str, list[str]] = field(default_factory=dict)
    asked: Counter[str] = field(default_factory=Counter)

    def begin(self) -> None:
        """Another attempt reads the journal."""
        self.attempt += 1
        self.look()

    def look(self) -> None:
        """The journal is read; whoever looks offline is no attempt."""
        self.latch, self.lease_gone = None, False
        self.cleared, self.failed_now = set(), set()
        self._handle_what_completed()

    def decision(self, call: Call) -> str:
        """The table of DESIGN 3.1."""
        row = self.rows.get(call.name)
        if row is not None and self.runs(row):
            return "wait"
        if row is None or row.status == "withdrawn":
            return "run"
        if row.status == "done":
            return "return"
        if row.status == "failed" and (row.handled or row.resolution == "failed"):
            return "raise"
        return "settle" if self._in_doubt(row) else "run"

    def runs(self, row: Row) -> bool:
        """Whether the step's last try still runs in this process."""
        return self.running.get(row.call.name) == row.token

    def _in_doubt(self, row: Row) -> bool:
        if row.call.label != "never" or row.status not in ("started", "failed") or self.runs(row):
            return False
        cleared = row.call.name in self.cleared or row.resolution == "not_done"
        settled = row.status == "failed" and (row.handled or row.proven or row.resolution == "failed")
        return not cleared and not settled

    def suspects(self) -> list[Row]:
        """The side effects that may have happened without anybody knowing, oldest first."""
        rows = sorted(self.rows.values(), key=lambda row: row.number)
        return [row for row in rows if self._in_doubt(row) and row.call.name not in self.failed_now]

    def perform(self, call: Call, behaviour: Behaviour, answered: Iterable[str] = ()) -> Result:
        """What the caller gets if a body that runs behaves like this; ``answered`` stands in a model's history."""
        if self.latch is not None:
            return (self.latch,)
        while True:
            decision, row = self.decision(call), self.rows.get(call.name)
            if row is not None and decision == "return":
                return self._served(row)
            if row is not None and decision == "raise":
                return "error", str(row.error)
            if row is not None and decision == "settle":
                if stopped := self._settled([row]):
                    return stopped
                continue
            return self._tried(call, behaviour, answered)

    def _served(self, row: Row) -> Result:
        if row.value is None:
            return self._stop("unreadable")
        # The agent must not go on from a reply while one of its side effects may have happened unseen.
        of_reply = [each for each in self.suspects() if each.call.reply == row.call.name]
        return self._settled(of_reply) or ("value", row.value)

    def may_start(self, call: Call) -> Result | None:
        """Settle what must be settled before the call's body runs; what stops it, or None."""
        if call.label != "safe":
            others = [row for row in self.suspects() if row.call.name != call.name]
            if stopped := self._settled(others):
                return stopped
        if self.lease_gone:
            return self._stop("lease")
        row = self.rows.get(call.name)
        # A person who says that it may run again is obeyed, however often it was tried.
        counts = row is not None and row.status in ("started", "failed") and row.resolution != "not_done"
        used = row.tries if row and counts else 0
        return self._stop("limit") if used >= LIMIT else None

    def _tried(self, call: Call, behaviour: Behaviour, answered: Iterable[str]) -> Result:
        if stopped := self.may_start(call):
            return stopped
        row = self.claim(call, answered)
        if behaviour == "cancelled before body":
            row.status = "withdrawn"
            return ("cancelled",)
        return self.run_body(row, behaviour)

    def claim(self, call: Call, answered: Iterable[str] = ()) -> Row:
        """Write the intent of a new try."""
        before = self.rows.get(call.name)
        row = Row(call, before.number if before else len(self.rows) + 1, self.attempt)
        if before:
            row.tries = before.tries + (before.status in ("started", "failed"))
            row.token = before.token + 1
        self.rows[call.name] = row
        self.failed_now.discard(call.name)
        self.cleared.discard(call.name)
        for name in answered:
            self.rows[name].handled |= self.rows[name].status == "failed"
        return row

    def run_body(self, row: Row, behaviour: Behaviour) -> Result:
        """Run the body of a try, whose claim may have been lost meanwhile."""
        name = row.call.name
        self.ran[name] += 1
        text = f"{name} ran {self.ran[name]}"
        if behaviour not in ("die before effect", "cancelled in body", "refuse"):
            self.performed.setdefault(name, []).append(text)
        if behaviour in ("die before effect", "die after effect"):
            return ("died",)
        if behaviour == "cancelled in body":
            return ("cancelled",)
        return self._ended(row, behaviour, text)

    def _ended(self, row: Row, behaviour: Behaviour, text: str) -> Result:
        if behaviour == "outage at outcome":
            return self._stop("unavailable")
        if behaviour in ("raise", "refuse"):
            if row.call.label == "model":
                row.status = "withdrawn"
                return "error", text
            row.status, row.error, row.proven = "failed", text, behaviour == "refuse"
            row.resolution = "not_performed" if row.proven else None
            self.failed_now.add(row.call.name)
            return "error", text
        row.status = "done"
        if behaviour == "unreadable":
            return self._stop("unreadable")
        row.value = text
        if behaviour == "outage after outcome":
            return self._stop("unavailable")
        return ("cancelled",) if behaviour == "cancelled at outcome" else ("value", text)

    def _settled(self, rows: Iterable[Row]) -> Result | None:
        for row in rows:
            if self.lease_gone:
                return self._stop("lease")
            hook, done = row.call.recover, self.performed.get(row.call.name, [])
            self.asked[row.call.name] += bool(hook)
            if hook == "truth" and done:
                _decide(row, "done", done[0], "recovered")
            elif hook == "truth":
                self.cleared.add(row.call.name)
            elif hook != "raises" and self.tells:
                _decide(row, "done", NOTE.format(name=row.call.name), "told")
            else:
                row.blocked = True
                return self._stop("blocked")
        return None

    def _stop(self, why: str) -> Result:
        self.latch = why
        return (why,)

    def decide(self, name: str, decision: str) -> bool:
        """A person decides a step while nobody holds the run; False if the journal must refuse."""
        self._handle_what_completed()
        row = self.rows[name]
        if row.status not in ("started", "failed") or row.resolution not in (None, "not_performed"):
            return False
        if row.handled or self.runs(row):
            return False
        if decision == "happened":
            _decide(row, "done", self.performed[name][0], decision)
        elif decision == "failed":
            _decide(row, "failed", None, decision)
            row.error = "a person said no"
        else:
            _decide(row, "started", None, decision)
        return True

    def leave(self, how: str) -> str:
        """End the attempt; gives the run's status."""
        if how == "clean" and self.latch is None:
            self._settled(self.suspects())
        if how == "interrupted":
            return "interrupted"
        if self.latch is not None:
            return {"blocked": "blocked", "lease": "lost"}.get(self.latch, "failed")
        if how == "error":
            return "failed"
        if any(self.runs(row) for row in self.rows.values()):
            return "interrupted"  # nobody knows yet how that body ends
        self.completed = self.attempt
        return "completed"

    def _handle_what_completed(self) -> None:
        for row in self.rows.values():
            row.handled |= row.status == "failed" and row.attempt <= self.completed


def _decide(row: Row, status: str, value: str | None, resolution: str) -> None:
    """Decide a step anew: whatever its last try still brings is late."""
    row.status, row.value, row.resolution = status, value, resolution
    row.error = row.error if status == "started" else None
    row.token, row.blocked, row.proven = row.token + 1, False, False
