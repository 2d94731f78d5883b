"""Steps as rows, and runs as rows and back: what is stored in which column. ``reading`` makes steps of rows again."""

import json
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from operator import attrgetter
from typing import Any, cast

import sqlalchemy as sa

from gnl_middleware import codec
from gnl_middleware.errors import JournalCorruptError
from gnl_middleware.model import RecordedFailure, ReplyCall, StoredStep

from .bounds import failure_bound, late_bound, payload_bound, reason_bound
from .encryption import is_encrypted
from .protection import NONE, Protection
from .protocol import Completed, Intent, Outcome, Payload, StoredRun
from .schema import steps
from .splicing import Splice

_Row = dict[str, Any] | sa.RowMapping
_COMPRESSED_FROM = 1024
SEAL = 16
"""Characters of the digest that an error begins with."""
SPLICED = 2
"""How a payload is stored, beside 0 (as it is) and 1 (compressed): spliced and compressed."""

_RUN_STATUSES = ("running", "paused", "completed", "failed", "blocked", "erased")
_TOLD_FIRST = (
    *("run_id", "key", "number", "scope", "kind", "name", "reply", "position", "call_id", "side_effect"),
)
KEPT_ON_RETRY = (*_TOLD_FIRST, "origin")
_TOLD_BY_INTENT = (
    *("policy", "fence", "tries", "attempt", "started_at", "begun", "arguments_hash", "rounds"),
    *("fingerprint", "shape", "base", "answered"),
)
_TOLD_BY_OUTCOME = (
    *("status", "finished_at", "ended", "value_hash", "raw", "resolution", "reply_digest", "calls", "tokens"),
)
SEALED_BY_INTENT = (*_TOLD_FIRST, *_TOLD_BY_INTENT)
"""What an intent's seal covers, and the origin where there is one: rows from before there were forks are sealed without."""

SEALED_BY_OUTCOME = ("token", *_TOLD_BY_OUTCOME)
"""What an outcome's seal covers, between the run id with the key and the mark of the error."""

SET_BY_INTENT = (
    *KEPT_ON_RETRY,
    *_TOLD_BY_INTENT,
    *("status", "token", "setups", "calls", "tokens", "raw", "drifted", "intent_seal"),
    *("holder", "claimed_until"),
)
SET_BY_OUTCOME = (*_TOLD_BY_OUTCOME, "failure", "outcome_seal")
SET_BY_COMPLETED = tuple(dict.fromkeys((*SET_BY_INTENT, *SET_BY_OUTCOME)))
CHAINED = (*KEPT_ON_RETRY, *_TOLD_BY_INTENT, "token", *SET_BY_OUTCOME, "intent_seal")
"""The cells of a step that its link in the chain covers; fixed, since heads outlive the versions that made them."""

MARKS = ("setups", "drifted", "blocked", "late")
"""The cells of a step that are noted beside what it is."""


def _reader(kind: type[StoredStep | Outcome], columns: Iterable[str]) -> Callable[[Any], dict[str, Any]]:
    """From a value to its cells by name; None in columns that it has not."""
    names, empty = [field.name for field in fields(kind) if field.name in columns], dict.fromkeys(columns)
    values = attrgetter(*names)
    return lambda value: empty | dict(zip(names, values(value), strict=True))


_of_intent, _of_outcome = _reader(StoredStep, SET_BY_INTENT), _reader(Outcome, SET_BY_OUTCOME)
_of_whole = _reader(StoredStep, [column.name for column in steps.c])


def intent_row(intent: Intent, protection: Protection = NONE) -> dict[str, Any]:
    """The parameters of an intent."""
    step = intent.step
    row = _cells(step, _of_intent)
    row["intent_seal"] = protection.seal("intent", _intent_cells(row))
    row["held_run"], row["held_fence"], row["expected"] = step.run_id, step.fence, intent.expected
    return row


def _cells(step: StoredStep, read: Callable[[Any], dict[str, Any]]) -> dict[str, Any]:
    row = read(step)
    row["setups"], row["answered"] = _listed(step.setups), _listed(step.answered)
    row["rounds"], row["calls"] = _listed(step.rounds), _encoded_calls(step.calls)
    row["raw"], row["drifted"], row["side_effect"] = int(step.raw), int(step.drifted), int(step.side_effect)
    # Providers make up names and ids; a text column takes no lone surrogate and no NUL, and nothing is looked up by these.
    row["name"], row["call_id"] = _storable(step.name), _storable(step.call_id)
    return row


def whole_row(step: StoredStep, protection: Protection = NONE) -> dict[str, Any]:
    """A step as it stands, every column of it: the row of a fork, whose seals and secrets belong to its own run."""
    run_id, key = step.run_id, step.key
    row = _cells(step, _of_whole)
    bound = failure_bound(run_id, key, step.token)
    row["failure"] = encoded_failure(step.failure, protection, *bound)
    row["blocked"] = protection.hidden_text(step.blocked, *reason_bound(run_id, key))
    if step.late is not None:
        row["late"] = protection.hidden(step.late, *late_bound(run_id, key))
    row["intent_seal"] = protection.seal("intent", _intent_cells(row))
    # Each outcome has its time, and each new intent takes it away.
    ended = step.finished_at is not None
    cells = _outcome_cells(row, run_id, key, protection)
    row["outcome_seal"] = protection.seal("outcome", cells) if ended else None
    return row


def _intent_cells(row: _Row) -> list[Any]:
    """What an intent's seal covers: a row that damage put together from others is not believed."""
    origin = [row["origin"]] if row["origin"] is not None else []
    return [row[column] for column in SEALED_BY_INTENT] + origin


def _outcome_cells(row: _Row, run_id: str, key: str, protection: Protection) -> list[Any]:
    """What an outcome's seal covers."""
    told = [row[column] for column in SEALED_BY_OUTCOME]
    return [run_id, key, *told, failure_mark(row["failure"], protection)]


def failure_mark(failure: bytes | None, protection: Protection) -> Any:
    """What stands for an error in the seal of its outcome."""
    failure = failure or b""
    plain = protection.integrity_key is None and not is_encrypted(failure)
    # A plain error has a seal of its own, which it begins with.
    return failure[:SEAL] if plain else codec.content_hash(failure)


def _storable(text: str | None) -> str | None:
    if text is None or (text.isascii() and "\x00" not in text):
        return text
    return text.encode("utf-8", "backslashreplace").decode().replace("\x00", "\\x00")


def outcome_row(outcome: Outcome, protection: Protection = NONE) -> dict[str, Any]:
    """The parameters of an outcome."""
    row = _of_outcome(outcome)
    row["ended"], row["raw"], row["calls"] = (
        outcome.ended_tick,
        int(outcome.raw),
        _encoded_calls(outcome.calls),
    )
    row["token"] = outcome.new_token or outcome.token
    bound = failure_bound(outcome.run_id, outcome.key, row["token"])
    row["failure"] = encoded_failure(outcome.failure, protection, *bound)
    cells = _outcome_cells(row, outcome.run_id, outcome.key, protection)
    row["outcome_seal"] = protection.seal("outcome", cells)
    row["at_run"], row["at_key"], row["at_token"] = outcome.run_id, outcome.key, outcome.token
    return row


def completed_row(completed: Completed, protection: Protection = NONE) -> dict[str, Any]:
    """The parameters of an intent and its outcome together."""
    return intent_row(completed.intent, protection) | outcome_row(completed.outcome, protection)


def blob_row(payload: Payload, splice: Splice | None, protection: Protection = NONE) -> dict[str, Any]:
    """A payload as it is stored: compressed where that makes it smaller, and then encrypted.

    Args:
        payload: The payload.
        splice: What to store instead of it, and the payload of its run that holds what is left out.
        protection: Of its journal.
    """
    body = payload.body if splice is None else splice.body
    squeezed = zlib.compress(body, 1) if splice or len(body) >= _COMPRESSED_FROM else body
    compressed = SPLICED if splice else int(len(squeezed) < len(body))
    bound = payload_bound(payload.run_id, payload.hash)
    return {
        "run_id": payload.run_id,
        "hash": payload.hash,
        "compressed": compressed,
        "body": protection.hidden(squeezed if compressed else body, *bound),
        "source": splice.source if splice else None,
    }


def _encoded_calls(calls: tuple[ReplyCall, ...]) -> str:
    return _listed([[call.call_id, call.name, call.arguments_digest] for call in calls])


def _listed(items: Sequence[Any]) -> str:
    """A list as JSON; most are empty."""
    return json.dumps(items) if items else "[]"


def encoded_failure(
    failure: RecordedFailure | None, protection: Protection = NONE, *bound: str
) -> bytes | None:
    """An error as bytes: its text may hold what no text column takes."""
    if failure is None:
        return None
    encoded = codec.encode([failure.type_name, failure.text, failure.args, failure.state])
    return protection.hidden(codec.content_hash(encoded)[:SEAL].encode() + encoded, *bound)


def attempt_number(run_id: str, stored: Any) -> int:
    """The number of an attempt; 0 where there is none.

    Raises:
        JournalCorruptError: It is no number.
    """
    if not isinstance(stored, int | None):
        raise JournalCorruptError(where=f"run {run_id!r}", problem=f"an attempt has the number {stored!r}")
    return stored or 0


def stored_run(row: Mapping[Any, Any], now: float) -> StoredRun:
    """A run from its row, leased or not at this time.

    Raises:
        JournalCorruptError: The row is not readable.
    """
    try:
        _check(row, str, ("run_id", "status"))
        _check(row, (str, type(None)), ("holder", "input_digest", "forked_from"))
        _check(row, int, ("attempts", "fence", "side_effects", "locked", "effects"))
        _check(row, float, ("created_at", "updated_at", "lease_ends_at"))
        _check(row, (float, type(None)), ("completed_at",))
        if row["status"] not in _RUN_STATUSES:
            raise ValueError(f"unknown status {row['status']!r}")  # noqa: TRY301 - reported with the row's name below
        kept = (
            "run_id",
            "status",
            "attempts",
            "created_at",
            "updated_at",
            "fence",
            "holder",
            "lease_ends_at",
            "forked_from",
        )
        leased = row["lease_ends_at"] > now
        return StoredRun(
            **{name: row[name] for name in kept},
            metadata=metadata_of(row["metadata"]),
            leased=leased,
            locked=row["locked"] != 0,
            effects=row["effects"] != 0,
        )
    except (JournalCorruptError, TypeError, ValueError) as error:
        raise JournalCorruptError(where=f"run {row['run_id']!r}", problem=_problem(error)) from error


def metadata_of(stored: Any) -> dict[str, Any]:
    """The metadata of a run, decoded.

    Raises:
        TypeError: It is no dictionary.
        JournalCorruptError: It is not what was written.
    """
    metadata: Any = codec.outline(stored)
    if type(metadata) is not dict:
        raise TypeError(f"its metadata is a {type(metadata).__name__}")
    return cast("dict[str, Any]", metadata)


def _check(row: Any, kinds: type | tuple[type, ...], names: Iterable[str]) -> None:
    for name in names:
        if not isinstance(row[name], kinds):
            raise TypeError(f"its {name} is {row[name]!r}")


def _problem(error: Exception) -> str:
    return error.problem if isinstance(error, JournalCorruptError) else str(error)
