"""What a batch of writes becomes: statements for many of them at once, and for each alone where one is refused."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import sqlalchemy as sa

from gnl_middleware import codec
from gnl_middleware.errors import GnlError

from . import operations
from .prepared import execute
from .protocol import Completed, Intent, Outcome, Payload, Task, Verdict, Write

_StepWrite = TypeVar("_StepWrite", Intent, Outcome)
Result = tuple[Write, Any, BaseException | None]
"""A write, and what it gave or failed with."""


@dataclass(frozen=True, slots=True)
class _Parts:
    """The writes of a batch, by what they are."""

    completed: Sequence[Completed] = ()
    intents: Sequence[Intent] = ()
    outcomes: Sequence[Outcome] = ()
    tasks: Sequence[Task] = ()

    @property
    def begun(self) -> Sequence[Completed | Intent]:
        """What begins steps."""
        return (*self.completed, *self.intents)

    @property
    def steps(self) -> Sequence[tuple[str, str]]:
        """The run and the key of each step that is written."""
        begun = [(write.step.run_id, write.step.key) for write in self.begun]
        return [*begun, *((outcome.run_id, outcome.key) for outcome in self.outcomes)]


def _parts(batch: Sequence[Write]) -> _Parts:
    intents: list[Intent] = []
    outcomes: list[Outcome] = []
    tasks: list[Task] = []
    for write in batch:
        if isinstance(write, Intent):
            intents.append(write)
        elif isinstance(write, Outcome):
            outcomes.append(write)
        elif isinstance(write, Task):
            tasks.append(write)
    completed = _completed(intents, outcomes) if intents and outcomes else ()
    return _Parts(completed, intents, outcomes, tasks)


def _completed(intents: list[Intent], outcomes: list[Outcome]) -> list[Completed]:
    """Take the intents out that share the batch with their outcomes, and these, too."""
    ended = {(outcome.run_id, outcome.token): outcome for outcome in outcomes if outcome.new_token is None}
    found: list[Completed] = []
    for intent in list(intents):
        outcome = ended.get((intent.step.run_id, intent.step.token))
        if outcome is not None and intent.effect is None and intent.claim is None:
            intents.remove(intent)
            outcomes.remove(outcome)
            found.append(Completed(intent, outcome))
    return found


def write_batch(connection: sa.Connection, batch: Sequence[Write]) -> list[Result]:
    """Write all of a batch within a transaction; each write's result."""
    parts = _parts(batch)
    about = {write.about for write in parts.tasks}
    operations.hold_runs(connection, about.union(write.step.run_id for write in parts.begun))
    operations.put_payloads(connection, _payloads(parts))
    results, parts = _write_completed(connection, parts)
    # Intents before outcomes: one that could not be written together with its outcome is still in front of it.
    shared = [intent for intent in parts.intents if intent.effect is None]
    results += _write_steps(connection, shared, operations.claim_steps, operations.explain_claim)
    results += [_claim_exclusively(connection, each) for each in parts.intents if each.effect is not None]
    results += _write_steps(connection, parts.outcomes, operations.finish_steps, operations.keep_late_outcome)
    return results + [_run_task(connection, task) for task in parts.tasks]


def write_at_once(connection: sa.Connection, batch: Sequence[Write]) -> tuple[list[Result], Sequence[Write]]:
    """Write what one statement can write, which commits it.

    Returns:
        The results; and what is left, with what was refused: to find out why takes a transaction.
    """
    parts = _parts(batch)
    times = Counter(parts.steps)
    fitting = _Parts(
        [pair for pair in parts.completed if _fits(pair.intent, times)],
        [intent for intent in parts.intents if _fits(intent, times)],
        [outcome for outcome in parts.outcomes if times[outcome.run_id, outcome.key] == 1],
    )
    if not fitting.steps:
        return [], batch
    tokens = operations.write_at_once(connection, fitting.begun, fitting.outcomes, _payloads(fitting))
    won = [write for write in fitting.begun if write.step.token in tokens]
    written: list[Write] = [each for pair in won for each in _each(pair)]
    written += [outcome for outcome in fitting.outcomes if outcome.token in tokens]
    known = {id(write) for write in written}
    return [(write, Verdict.WON, None) for write in written], [
        each for each in batch if id(each) not in known
    ]


def _fits(intent: Intent, times: Mapping[tuple[str, str], int]) -> bool:
    """Whether an intent is a first try of a step that nothing else of its batch is about."""
    first = intent.effect is None and intent.claim is None and not intent.expected
    return first and times[intent.step.run_id, intent.step.key] == 1


def _each(write: Completed | Intent) -> Sequence[Write]:
    return (write,) if isinstance(write, Intent) else (write.intent, write.outcome)


def _payloads(parts: _Parts) -> list[Payload]:
    payloads: list[Payload] = []
    for write in parts.begun:
        intent, step = write if isinstance(write, Intent) else write.intent, write.step
        payloads.append(Payload(step.run_id, step.arguments_hash, step.arguments, intent.sources))
        if intent.setup is not None:
            payloads.append(Payload(step.run_id, codec.content_hash(intent.setup), intent.setup))
    return payloads + [
        Payload(outcome.run_id, outcome.value_hash, outcome.value)
        for outcome in (*[pair.outcome for pair in parts.completed], *parts.outcomes)
        if outcome.value is not None and outcome.value_hash
    ]


def _write_completed(connection: sa.Connection, parts: _Parts) -> tuple[list[Result], _Parts]:
    """Write intents and outcomes that come together as one row each; where one is refused, they are left as two each."""
    pairs = parts.completed
    if not pairs:
        return [], parts
    savepoint = _Savepoint(connection) if len(pairs) > 1 else None
    if operations.complete_steps(connection, pairs) == len(pairs):
        if savepoint is not None:
            savepoint.release()
        written = [each for pair in pairs for each in _each(pair)]
        return [(each, Verdict.WON, None) for each in written], replace(parts, completed=())
    if savepoint is not None:
        savepoint.roll_back()
    intents = [*(pair.intent for pair in pairs), *parts.intents]
    outcomes = [*(pair.outcome for pair in pairs), *parts.outcomes]
    return [], _Parts((), intents, outcomes, parts.tasks)


def _write_steps(
    connection: sa.Connection,
    writes: Sequence[_StepWrite],
    write: Callable[[sa.Connection, Sequence[_StepWrite]], int],
    explain: Callable[[sa.Connection, _StepWrite], Verdict],
) -> list[Result]:
    if not writes:
        return []
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


def _claim_exclusively(connection: sa.Connection, intent: Intent) -> Result:
    savepoint = _Savepoint(connection)
    verdict = operations.claim_exclusively(connection, intent)
    if verdict is Verdict.WON:
        savepoint.release()
    else:
        # A step that was not written must not own the effect either.
        savepoint.roll_back()
    return (intent, verdict, None)


def _run_task(connection: sa.Connection, task: Task) -> Result:
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
