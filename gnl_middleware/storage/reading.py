"""Steps from their rows: every cell is checked, and what was not written together is not believed.

A run is read whole before anything is answered from it, so what is done here is done for every step of it. Cells are taken
by their place in the row, and what the type of each cell must be is asked once per combination of types, not once per row.
"""

import json
import zlib
from collections.abc import Callable, Sequence
from dataclasses import fields, make_dataclass
from operator import itemgetter
from typing import Any, cast

import orjson
import sqlalchemy as sa

from gnl_middleware import codec
from gnl_middleware.errors import JournalCorruptError
from gnl_middleware.model import RecordedFailure, ReplyCall, StoredStep

from .bounds import failure_bound, late_bound, payload_bound, reason_bound
from .encryption import is_encrypted
from .protection import NONE, Protection
from .rows import SEAL, SEALED_BY_INTENT, SEALED_BY_OUTCOME, SPLICED, failure_mark
from .schema import steps
from .splicing import joined

_Stored = tuple[Any, ...]
"""Body, how it is stored, and hash of a payload."""

LoadedRow = Sequence[Any]
"""The cells of a step with its payloads, in the order of ``LOADED``."""

LOADED = (
    *(column.name for column in steps.c),
    *("side_effects", "expected_steps"),
    *(
        f"{payload}_{cell}"
        for payload in ("arguments", "value")
        for cell in ("compressed", "body", "source", "source_compressed", "source_body")
    ),
)
"""What the query that loads a run gives for each step: its columns, what its run has counted, and its payloads."""

_PLACES = {name: place for place, name in enumerate(LOADED)}
KEY = _PLACES["key"]
_SIDE_EFFECTS, _EXPECTED = _PLACES["side_effects"], _PLACES["expected_steps"]


def _cells(*names: str) -> Callable[[LoadedRow], tuple[Any, ...]]:
    return itemgetter(*(_PLACES[name] for name in names))


_KINDS: tuple[tuple[type | tuple[type, ...], tuple[str, ...]], ...] = (
    (str, ("run_id", "key", "scope", "name", "token", "arguments_hash", "fingerprint")),
    (
        (str, type(None)),
        (
            *("reply", "call_id", "shape", "base", "reply_digest", "value_hash", "blocked", "resolution"),
            *("holder", "origin", "payloads"),
        ),
    ),
    (int, ("number", "fence", "tries", "attempt", "begun", "tokens", "raw", "drifted", "side_effect")),
    ((int, type(None)), ("position", "ended")),
    (float, ("started_at",)),
    ((float, type(None)), ("finished_at", "claimed_until")),
)
_KNOWN_KINDS: set[tuple[type, ...]] = set()
"""Types of the cells of whole rows that were found to be right: a run has a handful of them."""
_MOST_KNOWN = 1024

_STATUSES = frozenset(("started", "done", "failed", "withdrawn", "paused"))
_STEP_KINDS = frozenset(("model", "tool", "value"))
_POLICIES = frozenset(("", "safe", "keyed", "never"))

_IDENTITY = _cells("run_id", "key")
_VALUED = _cells("status", "kind", "policy")
_BODIES = {
    payload: _cells(f"{payload}_body", f"{payload}_compressed", f"{payload}_hash")
    for payload in ("arguments", "value")
}
_SOURCES = {
    payload: _cells(f"{payload}_source_body", f"{payload}_source_compressed", f"{payload}_source")
    for payload in ("arguments", "value")
}
_HAS_VALUE = _cells("value_hash", "status", "failure")
_HOME = _cells("payloads", "run_id")
_BY_INTENT, _BY_OUTCOME = _cells(*SEALED_BY_INTENT), _cells("run_id", "key", *SEALED_BY_OUTCOME)
_SEALS = _cells("intent_seal", "outcome_seal", "origin", "failure", "status")
_LISTS, _FLAGS = _cells("rounds", "setups", "answered", "calls"), _cells("raw", "drifted", "side_effect")
_NEWS = _cells("late", "blocked")
_FAILURE = _cells("failure", "run_id", "key", "token")

_MADE = (
    *("arguments", "value", "failure", "late", "blocked"),
    *("rounds", "setups", "answered", "calls", "raw", "drifted", "side_effect", "claimed"),
)
"""The fields of a step that are not taken from its row as they stand there."""
_TAKEN = tuple(field.name for field in fields(StoredStep) if field.name not in _MADE)
_AS_THEY_STAND = _cells(*_TAKEN)


# Laid out as a step, but without the guard that makes setting 43 fields cost more than all the checks of a row.
_Draft: Callable[..., Any] = make_dataclass("_Draft", (*_TAKEN, *_MADE), slots=True)


def stored_step(row: LoadedRow, protection: Protection = NONE) -> StoredStep:
    """A step from its row and payloads.

    Raises:
        JournalCorruptError: The row is not readable.
        JournalKeyError: It was written with other keys.
    """
    run_id, key = _IDENTITY(row)
    where = f"run {run_id!r}, step {key!r}"
    try:
        arguments = _body(row, "arguments", protection, where)
        value = _body(row, "value", protection, where)
        value_hash, status, failure = _HAS_VALUE(row)
        unreadable = value_hash is None and (status != "done" or failure is not None)
        if arguments is None or (value is None and not unreadable):
            raise ValueError("its arguments or its value are gone")  # noqa: TRY301 - reported with the row's name below
        _check_cells(row)
        news = _failure(row, protection, where), *_shown_news(row, protection, where)
        lists, flags = _lists(row), (cell != 0 for cell in _FLAGS(row))
        _check_seals(row, protection, where)
        draft = _Draft(*_AS_THEY_STAND(row), arguments, value, *news, *lists, *flags, False)
    except (KeyError, TypeError, ValueError, zlib.error, JournalCorruptError) as error:
        problem = error.problem if isinstance(error, JournalCorruptError) else str(error)
        raise JournalCorruptError(where=where, problem=problem) from error
    draft.__class__ = StoredStep
    return draft


def _body(row: LoadedRow, payload: str, protection: Protection, where: str) -> bytes | None:
    stored = _BODIES[payload](row)
    if stored[0] is None:
        return None
    payloads, run_id = _HOME(row)
    home, source = payloads or run_id, None
    if stored[1] == SPLICED:
        source = _SOURCES[payload](row)
    return _shown_body(stored, source, home, protection, where, payload)


def _shown_body(  # noqa: PLR0917 - of one payload
    stored: _Stored, source: _Stored | None, home: str, protection: Protection, where: str, payload: str
) -> bytes:
    """A payload from its cells, and from those of the one that it is spliced from; both are payloads of the run ``home``.

    Raises:
        TypeError: It is stored as something else than bytes.
        ValueError: It does not match its hash, or what it is spliced from is gone.
        zlib.error: It cannot be decompressed.
    """
    body, compressed, content_hash = stored
    if not isinstance(body, bytes) or compressed not in (0, 1, SPLICED):
        raise TypeError(f"its {payload} are stored as {type(body).__name__}")
    if is_encrypted(body):
        body = protection.shown(body, *payload_bound(home, content_hash), where=where)
    body = zlib.decompress(body) if compressed else body
    if compressed == SPLICED:
        if source is None or source[0] is None:
            raise ValueError(f"the payload that its {payload} have a part of is gone")
        # What others are spliced from is whole: there is no chain to follow.
        body = joined(body, _shown_body(source, None, home, protection, where, f"source of {payload}"))
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
    where = f"run {run_id!r}, a model's setup"
    stored = found["body"], found["compressed"], found["hash"]
    source = found["source_body"], found["source_compressed"], found["source"]
    try:
        return _shown_body(stored, source, found["run_id"], protection, where, "setup")
    except (TypeError, ValueError, zlib.error) as error:
        raise JournalCorruptError(where=where, problem=str(error)) from error


def check_complete(run_id: str, found: Sequence[StoredStep], row: LoadedRow) -> None:
    """Raise where rows are not found again: what they record would happen once more.

    Args:
        run_id: The run.
        found: Its steps.
        row: Any of its rows: they tell how many side effects it has begun, and how many steps it had when its chain was
            made last, or None.

    Raises:
        JournalCorruptError: Fewer are found than the run has counted.
    """
    present, begun, expected = (
        sum(step.side_effect for step in found),
        row[_SIDE_EFFECTS],
        row[_EXPECTED] or 0,
    )
    problem = None
    if present != begun:
        problem = f"{begun} side effects began in it, and {present} of them are found"
    elif len(found) < expected:
        problem = f"{expected} steps were recorded in it, and {len(found)} of them are found"
    if problem is not None:
        raise JournalCorruptError(where=f"run {run_id!r}", problem=problem)


def _check_cells(row: LoadedRow) -> None:
    status, kind, policy = _VALUED(row)
    if status not in _STATUSES:
        raise ValueError(f"unknown status {status!r}")
    if kind not in _STEP_KINDS or policy not in _POLICIES:
        raise ValueError(f"unknown kind {kind!r} or policy {policy!r}")
    kinds = tuple(map(type, row))
    if kinds in _KNOWN_KINDS:
        return
    for right, names in _KINDS:
        for name in names:
            if not isinstance(row[_PLACES[name]], right):
                raise TypeError(f"its {name} is {row[_PLACES[name]]!r}")
    if len(_KNOWN_KINDS) < _MOST_KNOWN:
        _KNOWN_KINDS.add(kinds)


def _check_seals(row: LoadedRow, protection: Protection, where: str) -> None:
    intent_seal, outcome_seal, origin, failure, status = _SEALS(row)
    cells = _BY_INTENT(row)
    if origin is not None:
        cells = (*cells, origin)
    if not protection.fits("intent", cells, intent_seal, where=where):
        raise ValueError("its cells were not written together")
    if outcome_seal is None:
        believed = status == "started"
    else:  # also of a try that a person has cleared to run
        cells = (*_BY_OUTCOME(row), failure_mark(failure, protection))
        believed = protection.fits("outcome", cells, outcome_seal, where=where)
    if not believed:
        raise ValueError("its outcome was not written for it")


def _failure(row: LoadedRow, protection: Protection, where: str) -> RecordedFailure | None:
    stored, run_id, key, token = _FAILURE(row)
    if stored is None:
        return None
    if isinstance(stored, bytes):
        stored = protection.shown(stored, *failure_bound(run_id, key, token), where=where)
    if not isinstance(stored, bytes) or codec.content_hash(stored[SEAL:])[:SEAL].encode() != stored[:SEAL]:
        raise ValueError("its error does not match its hash")
    return RecordedFailure(*codec.outline(stored[SEAL:]))


def _shown_news(row: LoadedRow, protection: Protection, where: str) -> tuple[Any, str | None]:
    """What came late, and why it waits, readable."""
    late, blocked = _NEWS(row)
    if late is None and blocked is None:
        return None, None
    run_id, key = _IDENTITY(row)
    if isinstance(late, bytes):
        late = protection.shown(late, *late_bound(run_id, key), where=where)
    return late, protection.shown_text(blocked, *reason_bound(run_id, key), where=where)


def _lists(row: LoadedRow) -> tuple[Any, ...]:
    rounds, setups, answered, calls = _LISTS(row)
    return _integers(rounds), _texts(setups), _texts(answered), _calls(calls)


def _texts(stored: Any) -> tuple[str, ...]:
    return () if stored == "[]" else _are_texts(_parsed(stored))


def _are_texts(found: Any) -> tuple[str, ...]:
    if not isinstance(found, list) or not all(isinstance(item, str) for item in cast("list[Any]", found)):
        raise TypeError(f"{found!r} is no list of texts")
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
    found = _parsed(stored)
    if not isinstance(found, list):
        raise TypeError(f"{stored!r} is no list of calls")
    return tuple(ReplyCall(*_are_texts(call)) for call in cast("list[Any]", found))


def _parsed(stored: Any) -> Any:
    """JSON without numbers, which alone the two parsers read differently."""
    try:
        return orjson.loads(stored)
    except orjson.JSONDecodeError:
        return json.loads(stored)  # takes lone surrogates, which providers' ids may hold
