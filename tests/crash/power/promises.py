"""What DESIGN section 5 promises of a journal that is found after the loss of power."""

import contextlib
import json
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gnl_middleware import Done, Journal, NotDone, SideEffectRetryBlockedError
from gnl_middleware.identity import idempotency_key

from .disk import Disk, Operation, put
from .worker import SCENARIOS, WORLD, Shop, finish


@dataclass(frozen=True)
class Found:
    """The journal that is found: its steps by idempotency key and by run and name, and the runs' statuses."""

    by_key: dict[str, dict[str, Any]] = field(default_factory=dict)
    by_name: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    statuses: dict[str, str] = field(default_factory=dict)
    replies: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    damage: tuple[str, ...] = ()


_STEPS = """
SELECT run_id, key, name, kind, policy, status, reply, length(body) AS size FROM gnl_steps
LEFT JOIN gnl_blobs USING (run_id) WHERE hash = value_hash OR (value_hash IS NULL AND hash = arguments_hash)
"""


def look(files: dict[str, bytes]) -> Found:
    """Read the files past the library."""
    with tempfile.TemporaryDirectory() as folder:
        put(files, Path(folder))
        if not files.get("runs.db"):
            return Found()
        with contextlib.closing(sqlite3.connect(Path(folder, "runs.db"))) as connection:
            connection.row_factory = sqlite3.Row
            damage = [row[0] for row in connection.execute("PRAGMA integrity_check") if row[0] != "ok"]
            tables = connection.execute("SELECT count(*) FROM sqlite_master WHERE name = 'gnl_steps'")
            if not tables.fetchone()[0]:
                return Found(damage=tuple(damage))
            steps = [dict(row) for row in connection.execute(_STEPS)]
            runs = connection.execute("SELECT run_id, status FROM gnl_runs").fetchall()
    return Found(
        {idempotency_key(step["run_id"], step["key"]): step for step in steps},
        {(step["run_id"], step["name"]): step for step in steps},
        {row["run_id"]: row["status"] for row in runs},
        {(step["run_id"], step["key"]): step for step in steps if step["kind"] == "model"},
        tuple(damage),
    )


def happened(world: bytes) -> list[dict[str, Any]]:
    """What had happened in the world when the power was lost."""
    return [json.loads(line) for line in world.splitlines()]


def broken_promises(found: Found, world: Sequence[dict[str, Any]]) -> Iterator[str]:
    """The promises that the journal breaks, given what has happened in the world."""
    yield from (f"the file is damaged: {text}" for text in found.damage)
    for entry in world:
        if "effect" in entry and entry["key"] not in found.by_key:
            yield f"{entry['effect']} of {entry['run']} happened, and its intent is not there"
        if "left" in entry and found.statuses.get(entry["left"]) != "completed":
            yield f"{entry['left']} was left, and is {found.statuses.get(entry['left'])}"
    left = {entry["left"] for entry in world if "left" in entry}
    for entry in lost(found, world):
        if entry["run"] in left:
            yield f"{entry['run']} was left, and {entry['given']} is not there"
    for step in found.by_name.values():
        reply = found.replies.get((step["run_id"], step["reply"])) if step["reply"] else None
        if step["reply"] and (reply is None or reply["status"] != "done"):
            yield f"the intent of {step['name']} of {step['run_id']} is there, and not the reply that asked for it"


def lost(found: Found, world: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The outcomes that a caller was given and that the journal has forgotten."""
    given = [entry for entry in world if "given" in entry]
    known = found.by_name
    return [entry for entry in given if known.get((entry["run"], entry["given"]), {}).get("status") != "done"]


@dataclass
class Losses:
    """What was found at each moment at which the power could have been lost.

    Attributes:
        moments: How many moments were looked at.
        journals: How many different journals were found.
        broken: The promises that were broken.
        most_lost: The most outcomes that were given and lost.
        oldest_lost: How long ago the oldest of them had been given, in seconds.
    """

    moments: int = 0
    journals: int = 0
    broken: list[str] = field(default_factory=list)
    most_lost: int = 0
    oldest_lost: float = 0.0


def lose_power_at_every_moment(done: Sequence[Operation]) -> Losses:
    """Look at the journal as it would be found after each operation, with all that was not synced gone."""
    disk, losses, found, seen = Disk(WORLD), Losses(), Found(), -1
    times: list[float] = []
    for operation in done:
        before = len(disk.world)
        is_sync = operation.what == "s"
        if is_sync:  # the worst moment: right before the disk would have been written
            _compare(losses, found, disk, times, operation.at)
        disk.apply(operation)
        times += [operation.at] * (len(disk.world) > before)
        if disk.version != seen:
            seen, found = disk.version, look(disk.after_loss())
            losses.journals += 1
        if is_sync or len(disk.world) > before:
            _compare(losses, found, disk, times, operation.at)
    return losses


def _compare(losses: Losses, found: Found, disk: Disk, times: Sequence[float], now: float) -> None:
    world = happened(disk.world)
    losses.moments += 1
    losses.broken += broken_promises(found, world)
    gone = {(entry["run"], entry["given"]) for entry in lost(found, world)}
    ages = [
        now - at
        for entry, at in zip(world, times, strict=True)
        if (entry.get("run"), entry.get("given")) in gone
    ]
    losses.most_lost = max(losses.most_lost, len(ages))
    losses.oldest_lost = max(losses.oldest_lost, *ages, 0.0)


def resume(scenario: str, files: dict[str, bytes], world: bytes) -> list[str]:
    """Go on from what was found, to the end, with a person who looks before deciding; what came of it that must not."""
    with tempfile.TemporaryDirectory() as name:
        folder, shop = Path(name), Shop(Path(name), scenario)
        put(files | {WORLD: world}, folder)
        wrong: list[str] = []
        with Journal(folder / "runs.db") as journal:
            for run_id, turns in SCENARIOS[scenario].items():
                reply = _finished(shop, journal, run_id, turns)
                wrong += [] if reply == f"model-{turns}" else [f"{run_id} ended with {reply}"]
            wrong += [
                f"{step.name} of {run_id} is {step.status}"
                for run_id in SCENARIOS[scenario]
                for step in journal.steps(run_id)
                if step.status != "done"
            ]
        entries = happened((folder / WORLD).read_bytes())
    return wrong + list(_doubled(entries))


def _finished(shop: Shop, journal: Journal, run_id: str, turns: int) -> str:
    while True:
        try:
            return finish(shop, journal, run_id, turns)
        except SideEffectRetryBlockedError as blocked:
            seen = shop.happened(blocked.idempotency_key)
            decision = Done(shop.result(blocked.tool)) if seen else NotDone()
            journal.resolve(run_id, blocked.step_key, decision, by="ops")


def _doubled(entries: Sequence[dict[str, Any]]) -> Iterator[str]:
    effects = [entry for entry in entries if "effect" in entry]
    never = Counter((entry["run"], entry["effect"]) for entry in effects if entry["label"] != "keyed")
    yield from (
        f"{name} of {run} happened {count} times" for (run, name), count in never.items() if count > 1
    )
    keys = {(entry["run"], entry["effect"], entry["key"]) for entry in effects}
    names = Counter((run, name) for run, name, _ in keys)
    yield from (f"{name} of {run} has {count} keys" for (run, name), count in names.items() if count > 1)
