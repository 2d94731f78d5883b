"""When two requests are the same: method, host, path, query, and the values in the body.

A JSON body is compared by its values: not by key order or spacing, but ``1`` is neither ``1.0`` nor ``true``. What SDKs
make up anew for each run is left out.
"""

import difflib
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast
from urllib.parse import parse_qsl, urlsplit

from .conversations import turns_asked
from .interaction import Request, is_json

INVENTED = frozenset({"prompt_cache_key"})
"""Fields that SDKs make up anew for each run, and that say nothing: compared by nobody."""

_LINES = 20
_WIDTH = 160
_BOUNDARY = re.compile(r'boundary="?([^";]+)"?')


@dataclass(frozen=True)
class Asked:
    """A request as it is compared.

    Attributes:
        request: The request, without secrets.
        ignored: Fields of a JSON body to leave out, with dots between the names of nested ones; lists are looked into.
        by_conversation: Requests to models are compared by what the model is told, wherever and however it is asked.
    """

    request: Request
    ignored: frozenset[str] = INVENTED
    by_conversation: bool = False

    @cached_property
    def parts(self) -> dict[str, Any]:
        """What is compared, by name."""
        if self.by_conversation and turns_asked(self.request) is not None:
            return {"method": "POST", "host": "", "path": "", "query": [], "body": self.lines}
        address = urlsplit(self.request.uri)
        return {
            "method": self.request.method.upper(),
            "host": (address.hostname or "").lower(),
            "path": address.path or "/",
            "query": sorted(parse_qsl(address.query, keep_blank_values=True)),
            "body": self.lines,
        }

    @cached_property
    def lines(self) -> tuple[str, ...]:
        """The body in canonical lines."""
        turns = turns_asked(self.request) if self.by_conversation else None
        if turns is not None:
            return tuple(json.dumps(turns, indent=1, sort_keys=True, ensure_ascii=False).splitlines())
        return tuple(_canonical(self.request, self.ignored).splitlines())

    def same(self, other: "Asked") -> bool:
        """Whether both ask the same."""
        return self.parts == other.parts

    def differs(self, other: "Asked") -> list[str]:
        """The names of the parts that differ."""
        return [name for name, value in self.parts.items() if value != other.parts[name]]

    def likeness(self, other: "Asked") -> tuple[bool, int, int]:
        """How similar another request is; the greater the more."""
        differs = self.differs(other)
        address = not {"host", "path", "method"} & set(differs)
        common = len(set(self.lines) & set(other.lines))
        return address, common - len(set(self.lines) ^ set(other.lines)), -len(differs)


def difference(recorded: Asked, asked: Asked) -> str:
    """The difference of two requests in a few short lines."""
    lines: list[str] = []
    for name in asked.differs(recorded):
        if name == "body":
            lines += _body_difference(recorded.lines, asked.lines)
        else:
            lines += [f"-{name}: {recorded.parts[name]}", f"+{name}: {asked.parts[name]}"]
    if len(lines) > _LINES:
        lines[_LINES:] = [f"… ({len(lines) - _LINES} more lines)"]
    return "\n".join(lines)


def brief(request: Request) -> str:
    """The body of a request in one line, cut where it is long."""
    text = _as_text(request.body)
    return text if len(text) <= 2 * _WIDTH else f"{text[: 2 * _WIDTH]}… ({len(text)} characters)"


def _body_difference(recorded: Sequence[str], asked: Sequence[str]) -> list[str]:
    found = list(difflib.unified_diff(recorded, asked, "recorded", "asked", n=1, lineterm=""))
    return list(_excerpts(found))


def _excerpts(lines: Sequence[str]) -> Iterable[str]:
    """The lines of a difference, long ones cut to where they begin to differ from their counterparts."""
    removed = [line for line in lines if line.startswith("-") and not line.startswith("---")]
    added = [line for line in lines if line.startswith("+") and not line.startswith("+++")]
    starts = {
        line: _common(line[1:], other[1:])
        for one, another in ((removed, added), (added, removed))
        for line, other in zip(one, another, strict=False)
    }
    return [_cut(line, starts.get(line, 0)) for line in lines]


def _common(one: str, another: str) -> int:
    pairs = enumerate(zip(one, another, strict=False))
    return next((place for place, (left, right) in pairs if left != right), min(len(one), len(another)))


def _cut(line: str, start: int) -> str:
    if len(line) <= _WIDTH:
        return line
    begin = max(1, start - _WIDTH // 3)
    before = "…" if begin > 1 else ""
    after = "…" if len(line) > begin + _WIDTH else ""
    return f"{line[0]}{before}{line[begin : begin + _WIDTH]}{after}"


def _canonical(request: Request, ignored: frozenset[str]) -> str:
    content_type, body = request.content_type, request.body
    if is_json(content_type) or body[:1] in {b"{", b"["}:
        try:
            value = json.loads(body)
        except ValueError:
            pass
        else:
            return json.dumps(_without(value, ignored), sort_keys=True, indent=1, ensure_ascii=False)
    if content_type.startswith("application/x-www-form-urlencoded"):
        pairs = sorted(parse_qsl(_as_text(body), keep_blank_values=True))
        return "\n".join(f"{name}={value}" for name, value in pairs)
    if content_type.startswith("multipart/") and (found := _BOUNDARY.search(content_type)):
        # Clients make the boundary up anew for each request.
        return _as_text(body.replace(found[1].encode(), b"boundary"))
    return _as_text(body)


def _without(value: Any, ignored: frozenset[str], path: str = "") -> Any:
    if isinstance(value, list):
        return [_without(item, ignored, path) for item in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    fields = cast("dict[str, Any]", value)
    return {
        name: _without(item, ignored, f"{path}{name}.")
        for name, item in fields.items()
        if f"{path}{name}" not in ignored
    }


def _as_text(body: bytes) -> str:
    return body.decode("utf-8", "backslashreplace")
