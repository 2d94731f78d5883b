"""The chain over a run's rows: a digest of each row, and one head over all of them that is kept outside the rows.

An attempt that leaves its run makes the chain anew. Until the next one does, rows may change: steps are tried again, and
bodies that outlive their attempt end. Each such change moves the order of the run's intents and outcomes on, which is how
it is told from one that nobody of ours has made.
"""

import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import orjson

from gnl_middleware import codec
from gnl_middleware.model import Integrity

from .protection import Protection
from .rows import CHAINED, MARKS

_Cells = Sequence[Any]
_BEGUN, _ENDED, _STATUS = (CHAINED.index(name) for name in ("begun", "ended", "status"))
_KEY, _NUMBER, _NAME = (CHAINED.index(name) for name in ("key", "number", "name"))
_LEFT = ("completed", "failed", "blocked", "paused")


@dataclass(frozen=True)
class ChainedRows:
    """A run's rows as they are stored, without the payloads; read after the links that they are compared with.

    Attributes:
        run_id: The run.
        head: The head that is stored, or None.
        links: What it is the head of, or None.
        fixed: Cells of the run that never change.
        moving: Cells of the run that change with its attempts.
        locked: One worker at a time is at it; other runs have no chain.
        at_rest: Nobody has taken the run since the links were made.
        steps: Cells of the steps: those of ``CHAINED``, then those of ``MARKS``.
        attempts: Number, holder, times, status and error of the attempts.
        resolutions: Cells of the decisions of persons.
    """

    run_id: str
    head: str | None
    links: bytes | None
    fixed: _Cells
    moving: _Cells
    at_rest: bool
    locked: bool = True
    steps: Sequence[_Cells] = ()
    attempts: Sequence[_Cells] = ()
    resolutions: Sequence[_Cells] = ()

    @cached_property
    def step_links(self) -> dict[Any, list[Any]]:
        """The link of each step, by its key: made once, to compare with those that are kept and to make the next ones."""
        return {step[_KEY]: _link(step) for step in self.steps}


@dataclass(frozen=True, slots=True)
class Chain:
    """A chain that was made: its head, what it is the head of, and how many rows it covers."""

    head: str
    links: bytes
    covered: int


def made(rows: ChainedRows, protection: Protection) -> Chain:
    """The chain over the rows as they are."""
    links = {
        "run": [_digest(rows.fixed), _digest(rows.moving)],
        "tick": max((_tick(step) for step in rows.steps), default=0),
        "steps": [[key, *link] for key, link in rows.step_links.items()],
        "attempts": [[attempt[0], _is_open(attempt), _digest(attempt)] for attempt in rows.attempts],
        "resolutions": [_digest(resolution) for resolution in rows.resolutions],
    }
    written = orjson.dumps(links)
    covered = len(rows.steps) + len(rows.attempts) + len(rows.resolutions)
    return Chain(
        protection.seal("head", _head_cells(rows.run_id, written)), zlib.compress(written, 1), covered
    )


def compared(rows: ChainedRows, protection: Protection, *, leaving: int | None = None) -> Integrity:
    """What the head of a run says about its rows.

    Args:
        rows: The rows.
        protection: With the key that the head was made with.
        leaving: The attempt that is just about to make the first head.

    Raises:
        JournalKeyError: The head was made with another key.
    """
    if rows.head is None and rows.links is None:
        return _without_head(rows, protection, leaving)
    where = f"run {rows.run_id!r}, head of its chain"
    written = None if rows.links is None else _unpacked(rows.links)
    if (
        written is None
        or rows.head is None
        or not protection.fits("head", _head_cells(rows.run_id, written), rows.head, where=where)
    ):
        return _result(rows, protection, problems=["the head of its chain is gone or was changed"])
    return _with_links(rows, protection, orjson.loads(written))


def _with_links(rows: ChainedRows, protection: Protection, links: dict[str, Any]) -> Integrity:
    found = _Found()
    fixed, moving = links["run"]
    if fixed != _digest(rows.fixed) or (rows.at_rest and moving != _digest(rows.moving)):
        found.problems.append("the row of the run was changed")
    _compare_steps(rows, links, found)
    attempts = {attempt[0]: attempt for attempt in rows.attempts}
    for number, was_open, digest in links["attempts"]:
        attempt = attempts.pop(number, None)
        same = attempt is not None and _digest(attempt) == digest
        found.note(f"attempt {number}", same=same, gone=attempt is None, may_change=was_open)
    found.later += [f"attempt {number}" for number in attempts]
    decisions = {_digest(resolution) for resolution in rows.resolutions}
    for digest in links["resolutions"]:
        found.note("a decision of a person", same=digest in decisions, gone=digest not in decisions)
    found.later += ["a decision of a person"] * len(decisions.difference(links["resolutions"]))
    return _result(rows, protection, found.covered, found.later, found.problems)


def _compare_steps(rows: ChainedRows, links: dict[str, Any], found: "_Found") -> None:
    steps = {step[_KEY]: step for step in rows.steps}
    for key, begun, was_open, digest, marks in links["steps"]:
        step = steps.pop(key, None)
        if step is None:
            found.note(f"step {key}", gone=True)
            continue
        moved = _tick(step) > links["tick"] or (was_open and step[_BEGUN] == begun)
        now = rows.step_links[key]
        found.note(_named(step), same=now[2] == digest, may_change=moved)
        if now[3] != marks:
            # A drift, a block and late news are noted without a new moment in the order of the run.
            noted = f"the marks of {_named(step)}"
            (found.later if moved or not rows.at_rest or _is_news(step) else found.problems).append(
                noted if moved or not rows.at_rest or _is_news(step) else f"{noted} were changed"
            )
    found.later += [_named(step) for step in steps.values()]


class _Found:
    """What a comparison has found so far."""

    def __init__(self) -> None:
        self.covered, self.later, self.problems = 0, list[str](), list[str]()

    def note(self, name: str, *, same: bool = False, gone: bool = False, may_change: bool = False) -> None:
        if gone:
            self.problems.append(f"{name} is gone")
        elif same:
            self.covered += 1
        elif may_change:
            self.later.append(name)
        else:
            self.problems.append(f"{name} was changed")


def _without_head(rows: ChainedRows, protection: Protection, leaving: int | None) -> Integrity:
    later = [
        *(_named(step) for step in rows.steps),
        *(f"attempt {attempt[0]}" for attempt in rows.attempts),
    ]
    left = any(attempt[0] != leaving and attempt[_ATTEMPT_STATUS] in _LEFT for attempt in rows.attempts)
    expected = left and rows.locked and protection.integrity_key is not None
    problems = ["the head of its chain is gone"] if expected else []
    return _result(rows, protection, later=later, problems=problems)


_ATTEMPT_STATUS = 4
"""Place of the status among the cells of an attempt."""


def _result(
    rows: ChainedRows,
    protection: Protection,
    covered: int = 0,
    later: Iterable[str] = (),
    problems: Iterable[str] = (),
) -> Integrity:
    return Integrity(
        run_id=rows.run_id,
        head=rows.head,
        covered=covered,
        later=tuple(later),
        problems=tuple(problems),
        keyed=protection.integrity_key is not None,
    )


def _link(step: _Cells) -> list[Any]:
    fixed = len(CHAINED)
    is_open = step[_STATUS] == "started"
    return [step[_BEGUN], is_open, _digest(step[:fixed]), _digest(step[fixed:])[:_MARKS_DIGEST]]


_MARKS_DIGEST = 16


def _is_news(step: _Cells) -> bool:
    """Whether something came late, which may happen at any time."""
    return step[len(CHAINED) + MARKS.index("late")] is not None


def _is_open(attempt: _Cells) -> bool:
    return attempt[_ATTEMPT_STATUS] == "running"


def _tick(step: _Cells) -> int:
    ticks: list[Any] = [step[_BEGUN], step[_ENDED]]
    return max((tick for tick in ticks if isinstance(tick, int)), default=0)


def _named(step: _Cells) -> str:
    return f"step {step[_NUMBER]} ({step[_NAME]})"


def _digest(cells: _Cells) -> str:
    return codec.content_hash(repr(tuple(cells)).encode("utf-8", "surrogatepass"))


def _head_cells(run_id: str, written: bytes) -> list[str]:
    return [run_id, codec.content_hash(written)]


def _unpacked(links: Any) -> bytes | None:
    unpack: Callable[[Any], bytes] = zlib.decompress
    try:
        return unpack(links)
    except (TypeError, zlib.error):
        return None
