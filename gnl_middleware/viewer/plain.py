"""Answers as text and JSON, without any terminal library: safe to print, to copy and to parse.

What a model or a tool wrote may hold anything. Here it becomes characters that no terminal acts on.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, cast

from gnl_middleware import codec
from gnl_middleware.errors.commands import command
from gnl_middleware.model import WITHHELD, RunDifference, RunRecord, Step
from gnl_middleware.records import Attempt, Removal, RemovedRun, Resolution

_TAG, _PAYLOAD = "$gnl", "value"


def visible(text: str) -> str:
    r"""Text with every character that a terminal would act on, or not show, written as its escape.

    Example:
        >>> print(visible("sent\x1b[2J\n"))
        sent\x1b[2J\n
    """
    return text if text.isprintable() else "".join(_visible(character) for character in text)


def _visible(character: str) -> str:
    return character if character.isprintable() else character.encode("unicode_escape").decode("ascii")


@dataclass(frozen=True, slots=True)
class Place:
    """A journal as commands to copy name it.

    Attributes:
        option: The words that choose the journal; none where the environment or the default does.
    """

    option: tuple[str, ...] = ()

    def command(self, name: str, *positional: str, options: Sequence[str] = ()) -> str:
        r"""A command to copy into a shell, safe to print; ``$'…'`` (bash, zsh, ksh) carries what cannot be printed.

        Example:
            >>> Place(("--journal", "my runs.db")).command("show", "order-7")
            "gnl show order-7 --journal 'my runs.db'"
        """
        return command(name, *positional, options=(*options, *self.option))


def tree_of(value: Any) -> Any:
    """A journalled value as JSON has it: what JSON cannot hold is ``{"$gnl": TYPE, "value": …}``, as in the journal.

    Example:
        >>> tree_of({"to": ("ann", "bob")})
        {'to': {'$gnl': 'tuple', 'value': ['ann', 'bob']}}
    """
    return _unwrapped(json.loads(codec.encode(value)))


def _unwrapped(tree: Any) -> Any:
    """A tree in which the types that this process does not know stand as they are stored.

    They were read as dictionaries that look like a tag, which the codec writes as pairs: nothing of a user's may pass for
    a tag. Here nobody reads the tree back, so they may.
    """
    match tree:
        case {"$gnl": "map", "value": [["$gnl", str(tag)], ["value", payload]]}:
            return {_TAG: tag, _PAYLOAD: _unwrapped(payload)}
        case dict():
            return {name: _unwrapped(item) for name, item in cast("dict[str, Any]", tree).items()}
        case list():
            return [_unwrapped(item) for item in cast("list[Any]", tree)]
        case _:
            return tree


def compact(value: Any) -> str:
    """A journalled value on one line, safe to print.

    Example:
        >>> compact({"to": ("ann", "bob")})
        '{"to": tuple(["ann", "bob"])}'
    """
    return visible(_compact(tree_of(value)))


def _compact(tree: Any) -> str:
    if isinstance(tree, list):
        return f"[{', '.join(_compact(item) for item in cast('list[Any]', tree))}]"
    if isinstance(tree, dict):
        tree = cast("dict[str, Any]", tree)
        if tree.keys() == {_TAG, _PAYLOAD}:
            return f"{tree[_TAG]}({_compact(tree[_PAYLOAD])})"
        return f"{{{', '.join(f'{_compact(name)}: {_compact(item)}' for name, item in tree.items())}}}"
    return json.dumps(tree, ensure_ascii=False)


def summary(value: Any) -> str:
    """What a person looks for in a journalled value, on one line, safe to print.

    Chat messages, which every framework wraps in fields of its own, are reduced to their text and the calls that they ask
    for; any other value is as ``compact`` gives it.
    """
    tree = tree_of(value)
    messages = list(_messages(tree))
    text = "".join(_said(message.get("content")) for message in messages)
    calls = [_call(call) for message in messages for call in message.get("tool_calls") or ()]
    told = ([_compact(text)] if text else []) + calls
    return visible(" ".join(told) if told else _compact(tree))


def _messages(tree: Any) -> Iterator[dict[str, Any]]:
    """The chat messages in a tree: objects of a registered type with a content."""
    if isinstance(tree, list):
        for item in cast("list[Any]", tree):
            yield from _messages(item)
    elif isinstance(tree, dict):
        tree = cast("dict[str, Any]", tree)
        payload = tree.get(_PAYLOAD)
        if _TAG in tree and isinstance(payload, dict) and "content" in payload:
            yield cast("dict[str, Any]", payload)
        else:
            yield from _messages(list(tree.values()))


def _said(content: Any) -> str:
    if isinstance(content, list):
        return "".join(_said(block) for block in cast("list[Any]", content))
    if isinstance(content, dict):
        return _said(cast("dict[str, Any]", content).get("text"))
    return content if isinstance(content, str) else ""


def _call(call: Any) -> str:
    known = isinstance(call, dict) and {"name", "args"} <= cast("dict[str, Any]", call).keys()
    return f"{call['name']}({_compact(call['args'])})" if known else _compact(call)


@dataclass(frozen=True, slots=True)
class WaitingStep:
    """A side effect that began, left no outcome, and may have happened.

    Attributes:
        step: The step.
        reason: Why nothing has settled it.
        idempotency_key: The key that the call was given.
        happened: The command that says that it happened; None for a model call, whose reply nobody can say.
        did_not_happen: The command that says that it did not, and no longer can.
        failed: The command that gives the agent an error instead.
    """

    step: Step
    reason: str
    idempotency_key: str
    happened: str | None
    did_not_happen: str
    failed: str

    @property
    def blocked(self) -> bool:
        """Whether an attempt has stopped at it; else the next one may still settle it."""
        return self.step.blocked is not None

    @property
    def withheld(self) -> bool:
        """Whether it has not run, because its run is a fork that performs no side effects."""
        return self.step.blocked == WITHHELD


def waiting_steps(record: RunRecord, steps: Sequence[Step], place: Place) -> list[WaitingStep]:
    """The steps of a run that a person can decide, with the commands that do it."""
    found: list[WaitingStep] = []
    for step in steps:
        reason = step.blocked
        if reason is None and _is_interrupted(record, step):
            reason = "the next attempt asks its recover=, or stops"
        if reason is not None:
            found.append(_waiting(step, reason, place))
    return found


def _is_interrupted(record: RunRecord, step: Step) -> bool:
    undecided = step.status == "started" and step.resolution is None
    # A paused run holds calls that wait for an approval: they have not begun.
    return undecided and step.policy == "never" and record.holder is None and record.status != "paused"


def _waiting(step: Step, reason: str, place: Place) -> WaitingStep:
    def command(*decision: str) -> str:
        return place.command("resolve", step.run_id, str(step.number), options=[*decision, "--by", "YOU"])

    return WaitingStep(
        step=step,
        reason=reason,
        idempotency_key=step.idempotency_key,
        happened=None if step.kind == "model" else command("--happened"),
        did_not_happen=command("--did-not-happen"),
        failed=command("--failed", "TEXT"),
    )


def run_object(record: RunRecord) -> dict[str, Any]:
    """RUN, as ``--json`` prints it: the attributes of ``RunRecord``.

    ``run_id, status, attempts, created_at, updated_at, holder, lease_ends_at, metadata, tags, forked_from, effects``. Times
    are seconds since the epoch; ``metadata`` is as ``tree_of`` gives it; ``tags`` is a list of texts.
    """
    kept = {item.name: getattr(record, item.name) for item in fields(record)}
    return kept | {"metadata": tree_of(dict(record.metadata)), "tags": list(record.tags)}


def step_object(step: Step) -> dict[str, Any]:
    """STEP, as ``--json`` prints it.

    ``run_id, key, number, scope, kind, name, policy, status, blocked, attempts, started_at, finished_at, arguments, value,
    error, drifted, resolution, origin``: the attributes of ``Step``. ``arguments`` and ``value`` are as ``tree_of`` gives them.
    """
    kept = {item.name: getattr(step, item.name) for item in fields(step)}
    return kept | {"arguments": tree_of(step.arguments), "value": tree_of(step.value)}


def waiting_object(item: WaitingStep) -> dict[str, Any]:
    """WAITING, as ``--json`` prints it: ``key, number, name, blocked, reason, idempotency_key, commands``.

    ``blocked`` is false for a call that no attempt has stopped at yet. ``commands`` holds one command for each of
    ``happened, did_not_happen, failed``; ``happened`` is null for a model call.
    """
    return {
        "key": item.step.key,
        "number": item.step.number,
        "name": item.step.name,
        "blocked": item.blocked,
        "reason": item.reason,
        "idempotency_key": item.idempotency_key,
        "commands": {
            "happened": item.happened,
            "did_not_happen": item.did_not_happen,
            "failed": item.failed,
        },
    }


def runs_object(records: Sequence[RunRecord]) -> dict[str, Any]:
    """What ``gnl runs --json`` prints: ``{"runs": [RUN, …]}``, the latest first."""
    return {"runs": [run_object(record) for record in records]}


@dataclass(frozen=True, slots=True)
class History:
    """What a run holds besides its steps.

    Attributes:
        attempts: Its attempts, in order.
        resolutions: What persons decided.
        removals: Proofs of what was removed.
    """

    attempts: Sequence[Attempt] = ()
    resolutions: Sequence[Resolution] = ()
    removals: Sequence[RemovedRun] = ()


def show_object(
    record: RunRecord, steps: Sequence[Step], waiting: Sequence[WaitingStep], history: History
) -> dict[str, Any]:
    """What ``gnl show --json`` prints.

    ``{"run": RUN, "steps": [STEP, …], "waiting": [WAITING, …], "attempts": [ATTEMPT, …], "resolutions": [RESOLUTION, …],
    "removals": [REMOVAL, …]}``; the last three have the attributes of ``Attempt``, ``Resolution`` and ``RemovedRun``.
    """
    return {
        "run": run_object(record),
        "steps": [step_object(step) for step in steps],
        "waiting": [waiting_object(item) for item in waiting],
        "attempts": [asdict(attempt) for attempt in history.attempts],
        "resolutions": [asdict(resolution) for resolution in history.resolutions],
        "removals": [asdict(removal) for removal in history.removals],
    }


def removal_object(removal: Removal, *, dry_run: bool) -> dict[str, Any]:
    """What ``gnl prune --json`` and ``gnl erase --json`` print.

    ``{"dry_run": …, "runs": [REMOVAL, …], "busy": [RUN_ID, …], "bytes": …, "rewritten": …}``.
    """
    return {
        "dry_run": dry_run,
        "runs": [asdict(run) for run in removal.runs],
        "busy": list(removal.busy),
        "bytes": removal.bytes,
        "rewritten": removal.rewritten,
    }


def resolve_object(step: Step) -> dict[str, Any]:
    """What ``gnl resolve --json`` prints: ``{"step": STEP}``, the step as it stands now."""
    return {"step": step_object(step)}


def run_object_only(record: RunRecord) -> dict[str, Any]:
    """What ``gnl fork --json`` prints: ``{"run": RUN}``, the new run."""
    return {"run": run_object(record)}


def difference_object(found: RunDifference) -> dict[str, Any]:
    """What ``gnl diff --json`` prints: the attributes of ``RunDifference``; each step is a STEP, or null."""
    steps = {"step_a": found.step_a, "step_b": found.step_b}
    kept = {item.name: getattr(found, item.name) for item in fields(found)}
    return kept | {name: None if step is None else step_object(step) for name, step in steps.items()}


def json_text(answer: dict[str, Any]) -> str:
    """One JSON object on one line, in ASCII: no value in it can reach a terminal as a control character."""
    return json.dumps(answer)
