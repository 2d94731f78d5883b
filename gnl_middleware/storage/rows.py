"""Steps and runs as rows, and back: what is stored in which column, and what a readable row looks like."""

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
from .protocol import Completed, Intent, Outcome, StoredRun
from .schema import steps

_Row = dict[str, Any] | sa.RowMapping
_COMPRESSED_FROM = 1024
_SEAL = 16
_STEP = tuple(column.name for column in steps.c if not column.name.endswith("_seal"))
_TEXTS = ("run_id", "key", "scope", "name", "token", "arguments_hash", "fingerprint")
_TEXTS_OR_NONE = (
    *("reply", "call_id", "shape", "base", "reply_digest", "value_hash", "blocked", "resolution", "holder"),
    *("origin", "payloads"),
)
_NUMBERS = ("number", "fence", "tries", "attempt", "begun", "tokens", "raw", "drifted", "side_effect")
_NUMBERS_OR_NONE = ("position", "ended")
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


def _reader(kind: type, columns: Iterable[str]) -> Callable[[Any], dict[str, Any]]:
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
    # Rows that were written before there were forks have no origin, and are sealed without it.
    origin = [row["origin"]] if row["origin"] is not None else []
    return [row[column] for column in (*_TOLD_FIRST, *_TOLD_BY_INTENT)] + origin


def _outcome_cells(row: _Row, run_id: str, key: str, protection: Protection) -> list[Any]:
    """What an outcome's seal covers."""
    told, failure = [row[column] for column in _TOLD_BY_OUTCOME], row["failure"] or b""
    plain = protection.integrity_key is None and not is_encrypted(failure)
    # A plain error has a seal of its own, which it begins with.
    return [run_id, key, row["token"], *told, failure[:_SEAL] if plain else codec.content_hash(failure)]


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


def blob_row(run_id: str, content_hash: str, body: bytes, protection: Protection = NONE) -> dict[str, Any]:
    """A payload as it is stored: compressed where that makes it smaller, and then encrypted."""
    squeezed = zlib.compress(body, 1) if len(body) >= _COMPRESSED_FROM else body
    compressed = len(squeezed) < len(body)
    hidden = protection.hidden(squeezed if compressed else body, *payload_bound(run_id, content_hash))
    return {
        "run_id": run_id,
        "hash": content_hash,
        "compressed": int(compressed),
        "body": hidden,
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
    return protection.hidden(codec.content_hash(encoded)[:_SEAL].encode() + encoded, *bound)


def _failure(row: _Row, protection: Protection, where: str) -> RecordedFailure | None:
    stored = row["failure"]
    if stored is None:
        return None
    if isinstance(stored, bytes):
        bound = failure_bound(row["run_id"], row["key"], row["token"])
        stored = protection.shown(stored, *bound, where=where)
    if not isinstance(stored, bytes) or codec.content_hash(stored[_SEAL:])[:_SEAL].encode() != stored[:_SEAL]:
        raise ValueError("its error does not match its hash")
    return RecordedFailure(*codec.outline(stored[_SEAL:]))


def check_complete(run_id: str, found: Sequence[StoredStep], counted: dict[str, Any]) -> None:
    """Raise where rows are not found again: what they record would happen once more.

    Args:
        run_id: The run.
        found: Its steps.
        counted: How many side effects it has begun, and how many steps it had when its chain was made last, or None.

    Raises:
        JournalCorruptError: Fewer are found than the run has counted.
    """
    present, begun, expected = (
        sum(step.side_effect for step in found),
        counted["side_effects"],
        counted["expected_steps"] or 0,
    )
    problem = None
    if present != begun:
        problem = f"{begun} side effects began in it, and {present} of them are found"
    elif len(found) < expected:
        problem = f"{expected} steps were recorded in it, and {len(found)} of them are found"
    if problem is not None:
        raise JournalCorruptError(where=f"run {run_id!r}", problem=problem)


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


def stored_step(row: dict[str, Any], protection: Protection = NONE) -> StoredStep:
    """A step from its row and payloads.

    Raises:
        JournalCorruptError: The row is not readable.
        JournalKeyError: It was written with other keys.
    """
    where = f"run {row['run_id']!r}, step {row['key']!r}"
    try:
        arguments = _body(row, "arguments", protection, where)
        value = _body(row, "value", protection, where)
        unreadable = row["value_hash"] is None and (row["status"] != "done" or row["failure"] is not None)
        if arguments is None or (value is None and not unreadable):
            raise ValueError("its arguments or its value are gone")  # noqa: TRY301 - reported with the row's name below
        checked = _checked(row, protection, where)
        _check_seals(row, protection, where)
        return StoredStep(**checked, arguments=arguments, value=value)
    except (KeyError, TypeError, ValueError, zlib.error, JournalCorruptError) as error:
        raise JournalCorruptError(where=where, problem=_problem(error)) from error


def _check_seals(row: _Row, protection: Protection, where: str) -> None:
    if not protection.fits("intent", _intent_cells(row), row["intent_seal"], where=where):
        raise ValueError("its cells were not written together")
    if row["outcome_seal"] is None:
        believed = row["status"] == "started"
    else:  # also of a try that a person has cleared to run
        cells = _outcome_cells(row, row["run_id"], row["key"], protection)
        believed = protection.fits("outcome", cells, row["outcome_seal"], where=where)
    if not believed:
        raise ValueError("its outcome was not written for it")


def _body(row: _Row, payload: str, protection: Protection, where: str) -> bytes | None:
    body, compressed, content_hash = (row[f"{payload}_{cell}"] for cell in ("body", "compressed", "hash"))
    if body is None:
        return None
    if isinstance(body, bytes):
        bound = payload_bound(row["payloads"] or row["run_id"], content_hash)
        body = protection.shown(body, *bound, where=where)
    return payload_body(body, compressed, content_hash, payload)


def payload_body(stored: Any, compressed: Any, content_hash: str, payload: str) -> bytes:
    """A payload from its row.

    Raises:
        TypeError: It is stored as something else than bytes.
        ValueError: It does not match its hash.
        zlib.error: It cannot be decompressed.
    """
    if not isinstance(stored, bytes) or compressed not in (0, 1):
        raise TypeError(f"its {payload} are stored as {type(stored).__name__}")
    body = zlib.decompress(stored) if compressed else stored
    if codec.content_hash(body) != content_hash:
        raise ValueError(f"its {payload} does not match its hash")
    return body


def setup_body(run_id: str, found: sa.RowMapping | None, protection: Protection = NONE) -> bytes | None:
    """The setup of a model from its row; None where there is none.

    Raises:
        JournalCorruptError: The row is not readable.
    """
    if found is None:
        return None
    where, body = f"run {run_id!r}, a model's setup", found["body"]
    try:
        if isinstance(body, bytes):
            body = protection.shown(body, *payload_bound(found["run_id"], found["hash"]), where=where)
        return payload_body(body, found["compressed"], found["hash"], "setup")
    except (TypeError, ValueError, zlib.error) as error:
        raise JournalCorruptError(where=where, problem=str(error)) from error


def _check(row: Any, kinds: type | tuple[type, ...], names: Iterable[str]) -> None:
    for name in names:
        if not isinstance(row[name], kinds):
            raise TypeError(f"its {name} is {row[name]!r}")


def _texts(stored: Any) -> tuple[str, ...]:
    if stored == "[]":
        return ()
    found = json.loads(stored)
    if not isinstance(found, list) or not all(isinstance(item, str) for item in cast("list[Any]", found)):
        raise TypeError(f"{stored!r} is no list of texts")
    return tuple(cast("list[str]", found))


def _integers(stored: Any) -> tuple[int, ...]:
    if stored == "[]":
        return ()
    found = json.loads(stored)
    if not isinstance(found, list) or not all(type(item) is int for item in cast("list[Any]", found)):
        raise TypeError(f"{stored!r} is no list of whole numbers")
    return tuple(cast("list[int]", found))


def _calls(stored: Any) -> tuple[ReplyCall, ...]:
    if stored == "[]":
        return ()
    found = json.loads(stored)
    if not isinstance(found, list):
        raise TypeError(f"{stored!r} is no list of calls")
    return tuple(ReplyCall(*_texts(json.dumps(call))) for call in cast("list[Any]", found))


def _checked(row: _Row, protection: Protection, where: str) -> dict[str, Any]:
    step = {name: row[name] for name in _STEP}
    if step["status"] not in ("started", "done", "failed", "withdrawn", "paused"):
        raise ValueError(f"unknown status {step['status']!r}")
    if step["kind"] not in ("model", "tool", "value") or step["policy"] not in ("", "safe", "keyed", "never"):
        raise ValueError(f"unknown kind {step['kind']!r} or policy {step['policy']!r}")
    _check(step, str, _TEXTS)
    _check(step, (str, type(None)), _TEXTS_OR_NONE)
    _check(step, int, _NUMBERS)
    _check(step, (int, type(None)), _NUMBERS_OR_NONE)
    _check(step, float, ("started_at",))
    _check(step, (float, type(None)), ("finished_at", "claimed_until"))
    step |= _shown_news(step, protection, where)
    step |= {"failure": _failure(step, protection, where), "calls": _calls(step["calls"])}
    step |= {"setups": _texts(step["setups"]), "answered": _texts(step["answered"])}
    step |= {"rounds": _integers(step["rounds"])}
    return step | {name: bool(step[name]) for name in ("raw", "drifted", "side_effect")}


def _shown_news(step: _Row, protection: Protection, where: str) -> dict[str, Any]:
    """Why it waits, and what came late, readable."""
    run_id, key = step["run_id"], step["key"]
    late, blocked = step["late"], step["blocked"]
    if isinstance(late, bytes):
        late = protection.shown(late, *late_bound(run_id, key), where=where)
    return {
        "late": late,
        "blocked": protection.shown_text(blocked, *reason_bound(run_id, key), where=where),
    }


def _problem(error: Exception) -> str:
    return error.problem if isinstance(error, JournalCorruptError) else str(error)
