"""The one writer thread of a journal: it drains a queue and commits everything that waits in one transaction.

Every write is committed before its caller is told; what differs is who waits for the disk. A durable write (the intent
of a side effect) is synced with its commit, and so is all that stands before it; the rest is synced by the next durable
commit, or within ``SYNC_WITHIN`` seconds.
"""

import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import sqlalchemy as sa

from gnl_middleware import clock, codec
from gnl_middleware.errors import GnlError

from . import operations
from .gate import Gate
from .link import Link
from .prepared import execute
from .protocol import Counters, Intent, Outcome, Task, Verdict, Write

SYNC_WITHIN = 0.05
"""Seconds within which a commit that nobody waits for reaches the disk."""

_StepWrite = TypeVar("_StepWrite", Intent, Outcome)
_Result = tuple[Write, Any, BaseException | None]


class Writer:
    """Commits writes in the order in which they were handed over.

    It holds no reference to the journal, so that a forgotten journal can be collected and its thread ends.

    Args:
        link: The database.
        counters: Where commits and syncs are counted.
        gate: Stood in during a transaction.
    """

    def __init__(
        self,
        link: Link,
        counters: Counters,
        gate: Gate,
    ) -> None:
        self._link, self._counters, self._gate = link, counters, gate
        self._clock = clock.SystemClock()
        self._wake = threading.Condition()
        self._queue: deque[Write] = deque()
        self._thread: threading.Thread | None = None
        self._closed = False
        self._connection: sa.Connection | None = None
        self._syncing: bool | None = None
        self._unsynced_since: float | None = None

    def submit(self, write: Write) -> Write:
        """Queue a write; ``write.ended`` tells when it is committed.

        Raises:
            JournalUnavailableError: The journal is closed.
        """
        with self._wake:
            if self._closed:
                raise self._link.describe(RuntimeError("it is closed"))
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="gnl-writer", daemon=True)
                self._thread.start()
            self._queue.append(write)
            self._wake.notify()
        return write

    def close(self) -> None:
        """Commit and sync what is queued, then end the thread and its connection."""
        with self._wake:
            self._closed = True
            self._wake.notify()
            thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def _work(self) -> None:
        while (batch := self._next_batch()) is not None:
            for write, result, error in self._commit(batch):
                if error is None:
                    write.ended.set_result(result)
                else:
                    write.ended.set_exception(error)
        self.drop_connection()

    def _next_batch(self) -> list[Write] | None:
        with self._wake:
            while not self._queue and not self._closed:
                in_time = self._wake.wait(self._seconds_to_sync())
                if not in_time and not self._queue:
                    break
            batch = list(self._queue)
            # A writer that never rests is synced as often as one that does.
            overdue = self._seconds_to_sync() == 0.0 and not any(write.durable for write in batch)
            if not overdue:
                self._queue.clear()
        if batch and not overdue:
            return batch
        if self._unsynced_since is not None:
            # Tried once: where even that fails, the next durable commit brings along what stands before it, and a
            # journal whose file is gone can still be closed.
            self._unsynced_since = None
            return [_sync_all(self._clock.time())]
        return None if self._closed else []

    def _seconds_to_sync(self) -> float | None:
        """Seconds until what nobody waits for must reach the disk; None where all of it has."""
        if self._unsynced_since is None:
            return None
        return max(0.0, self._unsynced_since + SYNC_WITHIN - self._clock.monotonic())

    def _commit(self, batch: list[Write]) -> list[_Result]:
        if not batch:
            return []
        try:
            return self._link.persist(lambda: self._transaction(batch))
        except Exception as error:  # noqa: BLE001 - whatever the database raises must reach the callers, not end the thread
            if len(batch) == 1 or self._link.meets_all(error):
                described = self._link.describe(error)
                described.__cause__ = error if described is not error else None
                return [(write, None, described) for write in batch]
            # One bad row must not fail the others that happened to share its commit.
            return [result for write in batch for result in self._commit([write])]

    def _transaction(self, batch: list[Write]) -> list[_Result]:
        durable = any(write.durable for write in batch)
        with self._gate.passed():
            try:
                connection = self._ready_connection(durable=durable)
                self._link.begin(connection)
                results = _write_all(connection, batch)
                execute(connection, "COMMIT")
            except BaseException:
                self.drop_connection()
                raise
        self._counters.commits += 1
        self._counters.synced += durable
        self._counters.writes += len(batch)
        if durable or self._link.always_syncs:
            self._unsynced_since = None
        elif self._unsynced_since is None:
            self._unsynced_since = self._clock.monotonic()
        return results

    def _ready_connection(self, *, durable: bool) -> sa.Connection:
        if self._connection is None:
            self._connection, self._syncing = self._link.connect(), None
        self._link.check()
        if durable is not self._syncing:
            self._link.set_syncing(self._connection, durable=durable)
            self._syncing = durable
        return self._connection

    def drop_connection(self) -> None:
        """Close the connection; the next transaction opens another one."""
        connection, self._connection = self._connection, None
        if connection is not None:
            # A connection that failed is closed for good; returning it to the pool would hand the failure on.
            connection.invalidate()
            connection.close()


def _sync_all(now: float) -> Task:
    return Task(lambda connection: operations.touch(connection, now), durable=True)


def _write_all(connection: sa.Connection, batch: Sequence[Write]) -> list[_Result]:
    intents = [write for write in batch if isinstance(write, Intent)]
    outcomes = [write for write in batch if isinstance(write, Outcome)]
    about = {write.about for write in batch if isinstance(write, Task)}
    operations.hold_runs(connection, about.union(intent.step.run_id for intent in intents))
    operations.put_payloads(connection, _payloads(intents, outcomes))
    # An intent that nobody waited for may share the batch with its outcome: intents first.
    shared = [intent for intent in intents if intent.effect is None]
    results = _write_steps(connection, shared, operations.claim_steps, operations.explain_claim)
    results += [_claim_exclusively(connection, intent) for intent in intents if intent.effect is not None]
    results += _write_steps(connection, outcomes, operations.finish_steps, operations.keep_late_outcome)
    return results + [_run_task(connection, write) for write in batch if isinstance(write, Task)]


def _payloads(intents: Sequence[Intent], outcomes: Sequence[Outcome]) -> list[tuple[str, str, bytes]]:
    payloads = [(intent.step.run_id, intent.step.arguments_hash, intent.step.arguments) for intent in intents]
    payloads += [
        (intent.step.run_id, codec.content_hash(intent.setup), intent.setup)
        for intent in intents
        if intent.setup is not None
    ]
    values = ((outcome.run_id, outcome.value_hash, outcome.value) for outcome in outcomes)
    return payloads + [
        (run_id, digest, value) for run_id, digest, value in values if digest and value is not None
    ]


def _write_steps(
    connection: sa.Connection,
    writes: Sequence[_StepWrite],
    write: Callable[[sa.Connection, Sequence[_StepWrite]], int],
    explain: Callable[[sa.Connection, _StepWrite], Verdict],
) -> list[_Result]:
    if len(writes) > 1:
        savepoint = _Savepoint(connection)
        if write(connection, writes) == len(writes):
            savepoint.release()
            return [(item, Verdict.WON, None) for item in writes]
        savepoint.roll_back()
    return [(item, _write_one(connection, item, write, explain), None) for item in writes]


def _write_one(
    connection: sa.Connection,
    item: _StepWrite,
    write: Callable[[sa.Connection, Sequence[_StepWrite]], int],
    explain: Callable[[sa.Connection, _StepWrite], Verdict],
) -> Verdict:
    return Verdict.WON if write(connection, [item]) == 1 else explain(connection, item)


def _claim_exclusively(connection: sa.Connection, intent: Intent) -> _Result:
    savepoint = _Savepoint(connection)
    verdict = operations.claim_exclusively(connection, intent)
    if verdict is Verdict.WON:
        savepoint.release()
    else:
        # A step that was not written must not own the effect either.
        savepoint.roll_back()
    return (intent, verdict, None)


def _run_task(connection: sa.Connection, task: Task) -> _Result:
    savepoint = _Savepoint(connection)
    try:
        result = task.run(connection)
    except GnlError as error:
        savepoint.roll_back()
        return (task, None, error)
    savepoint.release()
    return (task, result, None)


class _Savepoint:
    """A part of the transaction that can be taken back."""

    def __init__(self, connection: sa.Connection) -> None:
        self._connection = connection
        execute(connection, "SAVEPOINT part")

    def release(self) -> None:
        execute(self._connection, "RELEASE part")

    def roll_back(self) -> None:
        execute(self._connection, "ROLLBACK TO part")
        execute(self._connection, "RELEASE part")
