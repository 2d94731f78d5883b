"""What differs between two plain values: where, how it looks, and what it probably comes from."""

import difflib
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

Sort = Literal["moment", "id", "json"]
"""What a text changed in alone: a date or time, a random id, or the order and spacing of the same JSON."""

_SHOWN_CHANGES = 6
_SHOWN_LINES = 24
_WIDEST = 160
_AROUND = 40
_PATH_NAME = re.compile(r"[A-Za-z_]\w*")
_MOMENT = re.compile(
    r"\d{4}-\d{2}-\d{2}(?:[T ]\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:?\d{2})?)?"
    r"|\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?: ?[AaPp][Mm])?"
    r"|\b\d{1,2}[./]\d{1,2}[./]\d{2,4}\b"
    r"|\b1\d{9}(?:\d{3}|\.\d+)?\b"
    r"|\b(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]* \d{1,2}(?:, \d{4})?"
    r"|\b(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day\b"
)
_ID = re.compile(
    r"\b[0-9a-fA-F]{8}-?(?:[0-9a-fA-F]{4}-?){3}[0-9a-fA-F]{12}\b"  # a UUID
    r"|\b[0-9A-HJKMNP-TV-Z]{26}\b"  # a ULID
    r"|\b(?=[0-9a-f]*\d)[0-9a-f]{16,}\b"
)


class _Missing:
    """Stands on the side that does not have what the other one has."""

    def __repr__(self) -> str:
        return "(nothing)"


MISSING = _Missing()


@dataclass(frozen=True, slots=True)
class Change:
    """One place at which two values differ.

    Attributes:
        path: Where, as in ``messages[1].content``.
        recorded: What the journal holds there; ``MISSING`` where it holds nothing.
        asked: What stands there now.
    """

    path: str
    recorded: Any
    asked: Any

    @property
    def sort(self) -> Sort | None:
        """What the change is made of alone, where it is something that a program makes anew each time."""
        if not (isinstance(self.recorded, str) and isinstance(self.asked, str)):
            return None
        if _same_json(self.recorded, self.asked):
            return "json"
        if _blank(_ID, self.recorded) == _blank(_ID, self.asked):
            return "id"
        blank = [_blank(_MOMENT, _blank(_ID, text)) for text in (self.recorded, self.asked)]
        return "moment" if blank[0] == blank[1] else None


def changes(recorded: Any, asked: Any, path: str) -> list[Change]:
    """The places at which two plain values differ, in order; of lists, what was put in or taken out is told as such.

    Example:
        >>> changes([{"role": "user", "content": "7"}], [{"role": "user", "content": "8"}], "messages")
        [Change(path='messages[0].content', recorded='7', asked='8')]
    """
    return list(_changes(recorded, asked, path))


def _changes(recorded: Any, asked: Any, path: str) -> Iterator[Change]:
    if type(recorded) is type(asked) is dict:
        yield from _changes_of_dicts(recorded, asked, path)
    elif type(recorded) is type(asked) is list:
        yield from _changes_of_lists(recorded, asked, path)
    elif _spelled(recorded) != _spelled(asked):
        yield Change(path, recorded, asked)


def _changes_of_dicts(recorded: dict[Any, Any], asked: dict[Any, Any], path: str) -> Iterator[Change]:
    for name in [*recorded, *(name for name in asked if name not in recorded)]:
        plain = isinstance(name, str) and _PATH_NAME.fullmatch(name) is not None
        inside = f"{path}.{name}" if plain else f"{path}[{name!r}]"
        yield from _changes(recorded.get(name, MISSING), asked.get(name, MISSING), inside)


def _changes_of_lists(recorded: list[Any], asked: list[Any], path: str) -> Iterator[Change]:
    sides = [_spelled(item) for item in recorded], [_spelled(item) for item in asked]
    for tag, start, end, begin, stop in difflib.SequenceMatcher(None, *sides, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        pairs = min(end - start, stop - begin)
        for place in range(pairs):
            yield from _changes(recorded[start + place], asked[begin + place], f"{path}[{start + place}]")
        for place in range(start + pairs, end):
            yield Change(f"{path}[{place}]", recorded[place], MISSING)
        for place in range(begin + pairs, stop):
            yield Change(f"{path}[{place}]", MISSING, asked[place])


def _spelled(value: Any) -> str:
    # With its types: 1, 1.0 and True are equal to Python, and different to a provider.
    return json.dumps(value, sort_keys=True, default=lambda other: f"{type(other).__qualname__} {other!r}")


def shown(found: Sequence[Change], names: tuple[str, str] = ("recorded", "asked")) -> str:
    """Changes as a person reads them: each with its place, and of long texts only what is around the difference."""
    if not found:
        return "(the same text; only types or settings differ)"
    lines = [f"--- {names[0]}", f"+++ {names[1]}"]
    for change in found[:_SHOWN_CHANGES]:
        lines += [f"@@ {change.path} @@", *_shown_change(change)]
    if len(found) > _SHOWN_CHANGES:
        lines.append(f"… {len(found) - _SHOWN_CHANGES} more places differ")
    return "\n".join(lines)


def difference(
    recorded: Any, asked: Any, path: str = "value", *, names: tuple[str, str] = ("recorded", "asked")
) -> str:
    """What differs, readable; short also for long conversations."""
    return shown(changes(recorded, asked, path), names)


def _shown_change(change: Change) -> list[str]:
    before, after = _lines(change.recorded), _lines(change.asked)
    if len(before) == len(after) == 1:
        before, after = _around_the_difference(before[0], after[0])
        return [f"-{before}", f"+{after}"]
    told = list(difflib.unified_diff(before, after, lineterm="", n=1))[2:]
    lines = [_cut(line) for line in told if not line.startswith("@@")]
    if len(lines) > _SHOWN_LINES:
        lines = [*lines[:_SHOWN_LINES], f"… {len(lines) - _SHOWN_LINES} more lines"]
    return lines


def _lines(value: Any) -> list[str]:
    if isinstance(value, _Missing):
        return []
    if isinstance(value, str):
        return value.split("\n")
    return json.dumps(value, indent=1, ensure_ascii=False, default=repr).splitlines()


def _around_the_difference(before: str, after: str) -> tuple[str, str]:
    """Two long lines, without most of what they begin and end with in common."""
    if max(len(before), len(after)) <= _WIDEST:
        return before, after
    differs = (place for place, (one, other) in enumerate(zip(before, after, strict=False)) if one != other)
    start = max(0, next(differs, min(len(before), len(after))) - _AROUND)
    return _cut(before[start:], cut_before=start > 0), _cut(after[start:], cut_before=start > 0)


def _cut(line: str, *, cut_before: bool = False) -> str:
    shown_part = line if len(line) <= _WIDEST else f"{line[:_WIDEST]}…"
    return f"…{shown_part}" if cut_before else shown_part


def _blank(pattern: re.Pattern[str], text: str) -> str:
    return pattern.sub("\x00", text)


def _same_json(recorded: str, asked: str) -> bool:
    if not (recorded.lstrip()[:1] in ("{", "[") and asked.lstrip()[:1] in ("{", "[")):
        return False
    try:
        return _spelled(json.loads(recorded)) == _spelled(json.loads(asked))
    except (ValueError, RecursionError):
        return False


_REMEDIES: dict[Sort, str] = {
    "moment": "a date or time at {path}: take it from run.now(), which a replay reads back",
    "id": "a random id at {path}: take it from run.uuid4() or run.value(), which a replay reads back",
    "json": "the same JSON in another order or spacing at {path}: write it with sorted keys",
}


def made_anew(found: Sequence[Change]) -> list[str]:
    """What programs make anew each time, with the place and the cure; empty where other things changed, too."""
    if not found or any(change.sort is None for change in found):
        return []
    return _told((change, change.sort) for change in found)


def likely_causes(found: Sequence[Change]) -> list[str]:
    """What the changes probably come from, the surest first."""
    causes = _told((change, change.sort) for change in found)
    for change in found:
        causes += _setup_causes(change)
    return list(dict.fromkeys(causes))


def _told(sorts: Iterable[tuple[Change, Sort | None]]) -> list[str]:
    told = [_REMEDIES[sort].format(path=change.path) for change, sort in sorts if sort is not None]
    return list(dict.fromkeys(told))[:_SHOWN_CHANGES]


def _setup_causes(change: Change) -> list[str]:
    root, _, rest = change.path.partition(".")
    if root != "setup":
        return []
    setting = re.split(r"[.\[]", rest)[0]
    if setting in ("model", "model_name", "model_id"):
        return [f"another model: {change.recorded!r} answered then, {change.asked!r} is asked now"]
    if setting in ("tools", "functions", "handoffs", "output"):
        return [_schema_cause(change, setting)]
    return [f"the setting {rest} changed"]


def _schema_cause(change: Change, setting: str) -> str:
    one = "handoff" if setting == "handoffs" else "output schema" if setting == "output" else "tool"
    names = [name for name in (_name_of(change.recorded), _name_of(change.asked)) if name]
    if change.recorded is MISSING:
        return f"a new {one}{''.join(f' {name}' for name in names)}"
    if change.asked is MISSING and names:
        return f"the {one} {names[0]} is gone"
    return f"the schema of a {one} changed, at {change.path}"


def _name_of(described: Any) -> str:
    """The name of a tool as providers are told it."""
    if not isinstance(described, dict):
        return ""
    told = cast("dict[str, Any]", described)
    inside: Any = told.get("function", told)
    return str(cast("dict[str, Any]", inside).get("name", "")) if isinstance(inside, dict) else ""
