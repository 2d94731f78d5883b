"""The world outside of a run, as all its processes see it: one file of records in the order in which things happened.

A record has a fixed size that divides a page, so that a process that is killed half way leaves it whole or not at all.
"""

import json
import os
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gnl_middleware import Done, InterruptedCall, NotDone

_SIZE = 512


@dataclass(frozen=True, slots=True)
class World:
    """What happened, whoever asks.

    Attributes:
        path: The file of records.
    """

    path: Path

    def note(self, what: str, name: str, **facts: Any) -> None:
        """Let something happen; it is on the disk when this returns."""
        self.note_all([{"what": what, "name": name, **facts}])

    def note_all(self, entries: Sequence[dict[str, Any]]) -> None:
        """Let several things happen, synced once."""
        records = [json.dumps(entry).encode().ljust(_SIZE - 1) + b"\n" for entry in entries]
        assert all(len(record) == _SIZE for record in records), "a record is too long"
        file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            for record in records:
                os.write(file, record)
            os.fsync(file)
        finally:
            os.close(file)

    def entries(self) -> list[dict[str, Any]]:
        """All that happened, in order."""
        return (
            [json.loads(line) for line in self.path.read_bytes().splitlines()] if self.path.exists() else []
        )

    def recover(self, call: InterruptedCall) -> Done | NotDone:
        """The truth about an interrupted call, looked up by its idempotency key."""
        happened = [
            entry
            for entry in self.entries()
            if entry["what"] == "effect" and entry["key"] == call.idempotency_key
        ]
        self.note("recover", call.tool, found=bool(happened))
        return Done(happened[0]["result"]) if happened else NotDone()


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the processes of one run did to the world.

    Attributes:
        doubled: Effects that happened twice.
        repeated: Model calls that were made although their reply had been recorded or given.
        lost: Outcomes that had been recorded or given, and that were made anew or came out different.
        recovered: How often ``recover`` was asked.
        found: How often it found the effect.
    """

    doubled: tuple[str, ...] = ()
    repeated: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    recovered: int = 0
    found: int = 0


def judge(entries: Sequence[dict[str, Any]]) -> Verdict:
    """Count what must never be.

    An outcome exists from the moment at which the agent was given it or an attempt found it in the journal. A keyed
    effect may be asked for again under its own key: whoever performs it knows the key.
    """
    keys: defaultdict[str, set[str]] = defaultdict(set)
    outcomes: dict[str, str | None] = {}
    doubled: list[str] = []
    repeated: list[str] = []
    lost: list[str] = []
    for entry in entries:
        what, name = entry["what"], entry["name"]
        if what == "effect":
            again = bool(keys[name]) if entry["policy"] == "never" else bool(keys[name] - {entry["key"]})
            doubled += [name] if again else []
            keys[name].add(entry["key"])
        if what in ("effect", "read", "asked") and name in outcomes:
            (repeated if what == "asked" else lost).append(name)
        if what in ("given", "recorded"):
            value = entry.get("value")
            before = outcomes.setdefault(name, value)
            outcomes[name] = before or value
            lost += [name] if before and value and before != value else []
    asked = [entry for entry in entries if entry["what"] == "recover"]
    found = sum(entry["found"] for entry in asked)
    return Verdict(tuple(doubled), tuple(repeated), tuple(lost), len(asked), found)
