"""What makes two calls the same: keys and digests (the rules of DESIGN 3.2 are here, and for requests in ``conversation``).

A *model* call is known by its conversation, a *tool* call by the recorded reply that asks for it, and anything else by
scope, name, arguments and how often the same was called before. No identity lives in memory only: a second process
computes the same one.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, cast

MAX_RUN_ID_LENGTH = 512
"""Longest run id, in characters."""

_UNSAFE = re.compile(r"[^A-Za-z0-9_.-]")
_SECRET = re.compile(
    r"api[_-]?key|secret|passw|authorization|credential|cookie|(?:access|auth|bearer|session|refresh|id)[_-]?token",
    re.IGNORECASE,
)
_HEADERS = re.compile(r"headers$", re.IGNORECASE)
_SCHEMAS = re.compile(r"schema|format|properties|\$defs", re.IGNORECASE)
_DIGEST_IN_KEY = 16
_DIGEST_IN_PART = 8


def digest_of(*parts: str) -> str:
    """SHA-256, in hexadecimal, of texts that cannot run into each other."""
    return hashed(parts).hexdigest()


class Hasher(Protocol):
    """A hash that is still open."""

    def update(self, data: bytes, /) -> None:
        """Go on with these bytes."""
        ...

    def copy(self) -> "Hasher":
        """The same hash, to go on with apart from this one."""
        ...

    def hexdigest(self) -> str:
        """The hash of all so far, in hexadecimal."""
        ...


def hashed(parts: Iterable[str], onto: Hasher | None = None) -> Hasher:
    """The hash of ``digest_of``, still open; goes on from a copy of ``onto``, so that nothing is hashed twice."""
    hasher: Hasher = hashlib.sha256() if onto is None else onto.copy()
    for part in parts:
        encoded = part.encode("utf-8", "surrogatepass")
        hasher.update(b"%d:" % len(encoded))
        hasher.update(encoded)
    return hasher


def checked_run_id(run_id: object) -> str:
    """The run id, if it can name a run.

    Raises:
        TypeError: It is not a string.
        ValueError: It is empty, too long, or holds a NUL or a lone surrogate.

    Example:
        >>> checked_run_id("order-4471")
        'order-4471'
    """
    if not isinstance(run_id, str):
        raise TypeError(f"a run id is a string that names one job, not {type(run_id).__name__}")
    if not run_id.strip() or len(run_id) > MAX_RUN_ID_LENGTH:
        raise ValueError(f"a run id has 1 to {MAX_RUN_ID_LENGTH} characters; this one has {len(run_id)}")
    if "\x00" in run_id:
        raise ValueError("a run id cannot hold a NUL character")
    try:
        run_id.encode()
    except UnicodeEncodeError as error:
        raise ValueError("a run id cannot hold a lone surrogate") from error
    return run_id


def without_secrets(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings as they may be compared and shown: of headers only the names, and nothing that is named like a secret.

    Whoever has a new key asks the same, and a journal must not hold it.

    Example:
        >>> without_secrets({"model": "m", "api_key": "k-1", "extra_headers": {"X-Team": "red"}, "max_tokens": 9})
        {'model': 'm', 'extra_headers': ['X-Team'], 'max_tokens': 9}
    """
    return {
        name: _header_names(value) if _HEADERS.search(name) else _secretless(name, value)
        for name, value in settings.items()
        if not _SECRET.search(name)
    }


def _secretless(name: str, value: Any) -> Any:
    as_it_is: Any = value
    # What a schema calls "password" is a field to be filled in, and no secret.
    if isinstance(value, dict) and not _SCHEMAS.search(name):
        inner = cast("dict[Any, Any]", value)
        return without_secrets({str(key): item for key, item in inner.items()})
    return as_it_is


def _header_names(headers: Any) -> Any:
    if not isinstance(headers, Mapping):
        return None
    return sorted(str(name) for name in cast("Mapping[Any, Any]", headers))


def key_part(name: str) -> str:
    """A name as part of a step key: ASCII letters, digits and ``_.-`` only, and never another name's part.

    What had to be replaced is told apart by a digest behind a colon, which stands in no plain name.

    Example:
        >>> key_part("call_1"), key_part("call 1/ä")
        ('call_1', 'call_1__:9effd996')
    """
    plain = _UNSAFE.sub("_", name)
    return plain if plain and plain == name else f"{plain}:{digest_of(name)[:_DIGEST_IN_PART]}"


def inner_scope(step_key: str) -> str:
    """The scope of what happens inside a step."""
    return f"{step_key}/"


def branch_scope(scope: str, name: str) -> str:
    """The scope of a concurrent branch that the caller named with ``run.scope(name)``."""
    return f"{scope}{key_part(name)}/"


def node_part(name: str, index: int | None = None) -> str:
    """The part of a scope that is a node of a graph; ``index`` tells the parallel tasks of one node apart.

    A plain name never looks like it: where one holds a colon, something in front of that was replaced.

    Example:
        >>> node_part("plan"), node_part("worker", 2)
        ('node:plan', 'node:2:worker')
    """
    return f"node:{key_part(name)}" if index is None else f"node:{index}:{key_part(name)}"


def call_part(name: str, index: int) -> str:
    """The part of a scope that is a task which a node of the same graph calls, the index-th that it called.

    Example:
        >>> call_part("pay", 0)
        'call:0:pay'
    """
    return f"call:{index}:{key_part(name)}"


def graph_scope(scope: str) -> str:
    """The scope of the graph whose node a scope is; of any other scope, itself.

    Example:
        >>> graph_scope("node:agent/node:tools/"), graph_scope("node:main/call:0:pay/"), graph_scope("billing/")
        ('node:agent/', '', 'billing/')
    """
    parts = scope.split("/")[:-1]
    while parts and parts[-1].startswith("call:"):
        parts.pop()
    if not parts or not parts[-1].startswith("node:"):
        return scope
    return "".join(f"{part}/" for part in parts[:-1])


@dataclass(frozen=True, slots=True)
class Place:
    """One level of a framework's own structure around the running code: a node of a graph.

    Attributes:
        part: Its part of the scope.
        task: Names what is executed there, in this process: the same again when it is retried or resumed.
        entry: Names this execution of it.
        round: The graph's superstep; it grows also over a resume from a checkpoint.
    """

    part: str
    task: str
    entry: str
    round: int


@dataclass(frozen=True, slots=True)
class Level:
    """A place, and the scope that begins there."""

    scope: str
    place: Place


@dataclass(frozen=True, slots=True)
class Where:
    """Where code is running.

    Attributes:
        scope: The run itself (empty), a step, a named branch, or a node of a graph inside of these.
        levels: The places since the last step around, the outermost first.
    """

    scope: str = ""
    levels: tuple[Level, ...] = ()

    @property
    def rounds(self) -> tuple[int, ...]:
        """The round of each level. It is no part of the scope: a person who updates a graph's state shifts it."""
        return tuple(level.place.round for level in self.levels)

    def earlier(self, rounds: int) -> "Where":
        """The same place so many rounds of the outermost graph ago."""
        if not self.levels or not rounds:
            return self
        first = self.levels[0]
        moved = Level(first.scope, replace(first.place, round=first.place.round - rounds))
        return Where(self.scope, (moved, *self.levels[1:]))

    def inside(self, places: Iterable["Place"]) -> "Where":
        """Where code is that runs this much further inside."""
        scope, levels = self.scope, list(self.levels)
        for place in places:
            scope = f"{scope}{place.part}/"
            levels.append(Level(scope, place))
        return Where(scope, tuple(levels))


def model_key(scope: str, fingerprint: str, occurrence: int) -> str:
    """Key of a model step: the conversation, and how often this scope asked it before."""
    return f"{scope}model/{fingerprint[:_DIGEST_IN_KEY]}/{occurrence}"


def tool_key(reply: str, position: int, call_id: str) -> str:
    """Key of a tool step that a recorded reply asks for; it needs no scope of its own."""
    return f"{reply}/{position}/{key_part(call_id)}"


def call_key(
    scope: str,
    name: str,
    fingerprint: str,
    occurrence: int,
    *,
    call_id: str | None = None,
    rounds: Sequence[int] = (),
) -> str:
    """Key of a plain function, of a value, or of a tool call without a journalled reply (which has a call id).

    In a graph the rounds are part of it: what a later turn takes is another value than what an earlier one took.
    """
    middle = "" if call_id is None else f"{key_part(call_id)}/"
    turn = "".join(f"{number}:" for number in rounds)
    return f"{scope}{key_part(name)}/{middle}{fingerprint[:_DIGEST_IN_KEY]}/{turn}{occurrence}"


def idempotency_key(run_id: str, step_key: str) -> str:
    """The key a call can hand to the outside world: the same on every attempt, different for every step."""
    return digest_of(run_id, step_key)[:32]


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a request, as far as identity goes.

    Attributes:
        role: ``system``, ``user``, ``assistant``, ``tool`` or what else the provider knows.
        digest: Digest of what the provider is told, without what frameworks invent.
        call_ids: For an assistant message, the ids of the tool calls that it asks for, in order.
        answers: For a tool message, the call id that it answers.
        reply: For an assistant message, digest of its text and calls alone, by which a reply of ours is recognised
            whatever shape a framework gave it meanwhile.
    """

    role: str
    digest: str
    call_ids: tuple[str, ...] = ()
    answers: str | None = None
    reply: str | None = None
