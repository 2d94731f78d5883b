"""Find the step that a call is: matched first, then witnessed (DESIGN 3.2)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from gnl_middleware import codec
from gnl_middleware.conversation import Request
from gnl_middleware.identity import Where, call_key, model_key, tool_key
from gnl_middleware.model import StoredStep

from .call import AnyCall, FunctionCall, ModelCall, ToolCall
from .record import Record

Drift = Literal["arguments", "messages", "setup"]


@dataclass(frozen=True, slots=True)
class Placement:
    """The step that a call is.

    Attributes:
        key: Its key.
        fingerprint: Digest of what is asked now.
        step: What is recorded under the key, or None.
        reply: For a tool call, the key of the reply that carries it.
        position: For a tool call, its place in that reply.
        drift: What differs from the record, or None.
    """

    key: str
    fingerprint: str
    step: StoredStep | None
    reply: str | None = None
    position: int | None = None
    drift: Drift | None = None


def place(record: Record, where: Where, call: AnyCall) -> Placement:
    """The step that a call is; the step counts as reached from here on. The caller holds the record's lock."""
    record.enter(where)
    match call:
        case ModelCall():
            placement = _place_model(record, where, call)
        case ToolCall():
            placement = _place_tool(record, where, call)
        case FunctionCall():
            placement = _place_function(record, where, call)
    record.consume(placement.key)
    record.unheard.discard(placement.key)
    if isinstance(call, ModelCall):
        witness(record, where.scope, call.request, besides=placement.key)
    return placement


def _place_model(record: Record, where: Where, call: ModelCall) -> Placement:
    scope, request = where.scope, call.request
    record.histories.follow(scope, request)
    # A resume in the middle skips turns; where a polling loop asked the same each time, the round tells them apart.
    if asked := record.of_this_turn(record.asked(scope, request), where):
        step = next((step for step in asked if _fits(request, step)), asked[0])
        drift = None if _fits(request, step) else "setup"
        return Placement(step.key, request.fingerprint, step, drift=drift)
    unreached = record.has_unreached_models(scope)
    shaped = record.shaped(scope, request.shape(record.our_replies(scope))) if unreached else []
    # Only where exactly one step fits: a guess between two would serve one question's reply to another.
    if len(shaped) == 1:
        return Placement(shaped[0].key, request.fingerprint, shaped[0], drift="messages")
    occurrence = 1
    while (
        key := model_key(scope, request.fingerprint, occurrence)
    ) in record.steps or key in record.consumed:
        occurrence += 1
    return Placement(key, request.fingerprint, None)


def _fits(request: Request, step: StoredStep) -> bool:
    """Whether a recorded step was asked with this setup; who only watches a call cannot know it."""
    return not request.setup or request.setup in step.setups or "" in step.setups


def witness(record: Record, scope: str, request: Request, *, besides: str = "") -> None:
    """Count as reached what a resume in the middle skipped: it stands in the request's history.

    A reply that stands k times witnesses the first k such records; a tool step is witnessed only by its answer.
    """
    if not record.has_left(scope):
        return
    seen = record.histories.seen("witnessed", scope, request)
    for standing in request.standings[seen:]:
        reply = record.standing(scope, standing.reply, standing.occurrence)
        if reply is not None and reply == besides:
            break  # looked at again, where it stands in the history of another request
        seen += 1
        if reply is not None:
            record.consume(reply)
            for key in record.calls_of[reply]:
                if record.steps[key].position in standing.answered:
                    record.consume(key)
    record.histories.note_seen("witnessed", scope, request, seen)


def answered_steps(record: Record, scope: str, request: Request) -> frozenset[str]:
    """Keys of the tool steps whose answers the request brings to the model and no recorded request has brought yet."""
    found: set[str] = set()
    seen, certain = record.histories.seen("answered", scope, request), True
    for standing in request.standings[seen:]:
        reply = record.standing(scope, standing.reply, standing.occurrence)
        keys = () if reply is None else record.calls_of[reply]
        found |= record.newly_answered(key for key in keys if record.steps[key].position in standing.answered)
        # A reply that is not ours yet can become so; what is found is brought when the request is recorded.
        certain = certain and reply is not None and not found
        seen += certain
    record.histories.note_seen("answered", scope, request, seen)
    return frozenset(found)


def dangling_effect(record: Record, scope: str, request: Request) -> StoredStep | None:
    """A recorded side effect whose reply stands in the history without the answer to it."""
    seen, certain = record.histories.seen("dangling", scope, request), True
    for standing in request.standings[seen:]:
        reply = record.standing(scope, standing.reply, standing.occurrence)
        for key in record.calls_of.get(reply or "", ()):
            step = record.steps[key]
            left = key in record.loaded and key not in record.consumed and step.policy in ("never", "keyed")
            if left and step.position not in standing.answered:
                if step.status in ("done", "failed"):
                    return step
                certain = False  # until it has ended
        seen += certain
    record.histories.note_seen("dangling", scope, request, seen)
    return None


def _place_tool(record: Record, where: Where, call: ToolCall) -> Placement:
    fingerprint = codec.digest(call.arguments)
    reply = _carrying_reply(record, where.scope, call, fingerprint)
    if reply is None:
        return _place_counted(record, where, call.name, fingerprint, call_id=call.call_id)
    position = _position(record, reply, call, fingerprint)
    key = tool_key(reply.key, position, call.call_id)
    step = record.steps.get(key)
    record.callers.setdefault(key, where.scope)
    drift = "arguments" if step is not None and step.fingerprint != fingerprint else None
    return Placement(key, fingerprint, step, reply=reply.key, position=position, drift=drift)


def _carrying_reply(record: Record, scope: str, call: ToolCall, fingerprint: str) -> StoredStep | None:
    """The reply that carries the call: given in this attempt, else (a checkpoint skipped it) found by its digest.

    In a graph another node may have given it; a node that asks and calls its tools itself knows its own.
    """
    carriers = record.given(scope, call.call_id, call.name)
    if same := [step for step in carriers if step.reply_digest == call.carrier] or carriers:
        return _of_this_node(record, scope, call, fingerprint, same)
    if call.carrier is not None and (
        reply := record.standing(scope, call.carrier, call.of_equals, last=True)
    ):
        return record.steps[reply]
    # A person may have edited the carrying message; the last reply that asked for this call is the one that led here.
    asking = (
        step
        for step in record.models(scope)
        if any(_is(call, item.call_id, item.name) for item in step.calls)
    )
    return max(asking, key=lambda step: step.number, default=None)


def _of_this_node(
    record: Record, scope: str, call: ToolCall, fingerprint: str, same: Sequence[StoredStep]
) -> StoredStep:
    """Of equal replies of several nodes, side by side, the one whose call this node made, or that no node made yet."""
    if len({step.scope for step in same}) == 1:
        return same[0]
    made_by = [(step, record.caller_of(_key(record, step, call, fingerprint))) for step in same]
    here = [step for step, caller in made_by if caller == scope]
    free = [step for step, caller in made_by if caller is None]
    return (here or free or same)[0]


def _key(record: Record, reply: StoredStep, call: ToolCall, fingerprint: str) -> str:
    return tool_key(reply.key, _position(record, reply, call, fingerprint), call.call_id)


def _position(record: Record, reply: StoredStep, call: ToolCall, fingerprint: str) -> int:
    """The call's place in the reply; providers reuse and omit ids, so arguments and order decide among equals.

    Where the framework does not show the place, equal calls of one reply cannot be told from a call that is made again.
    The safe reading is that it is made again: it is settled, where a fresh one would run.
    """
    fitting = [place for place, item in enumerate(reply.calls) if _is(call, item.call_id, item.name)]
    if call.place in fitting:
        return call.place
    fitting = fitting or list(range(len(reply.calls))) or [0]
    exact = [
        place
        for place in fitting
        if place < len(reply.calls) and reply.calls[place].arguments_digest == fingerprint
    ]
    among = exact or fitting
    keys = {place: tool_key(reply.key, place, call.call_id) for place in among}
    again = [place for place in among if _is_open(record, keys[place])]
    fresh = [place for place in among if keys[place] not in record.consumed]
    return (again or fresh or among)[0]


def _is(call: ToolCall, call_id: str, name: str) -> bool:
    return call.call_id == call_id and call.name == name


def _place_function(record: Record, where: Where, call: FunctionCall) -> Placement:
    # A value is no call: one of the same name and arguments must not get its record.
    described = call.arguments if call.kind == "tool" else {"value of": call.name}
    return _place_counted(record, where, call.name, codec.digest(described))


def _place_counted(
    record: Record, where: Where, name: str, fingerprint: str, call_id: str | None = None
) -> Placement:
    """The n-th call of its kind; calling again after a failure that nobody handled is the same call."""

    def nth(count: int, rounds: tuple[int, ...] = where.rounds) -> str:
        return call_key(where.scope, name, fingerprint, count, call_id=call_id, rounds=rounds)

    counted = (where.scope, where.rounds, nth(0))
    occurrence, key = record.counts.get(counted, (1, nth(1)))
    if record.unheard and (again := _unheard(record, [key, *map(nth, range(1, occurrence))])):
        return Placement(again, fingerprint, record.steps.get(again))
    if counted in record.counts and _is_past(record, key):
        occurrence += 1
        key = nth(occurrence)
    if key == nth(occurrence):
        step = _recorded(record, [nth(occurrence, rounds) for rounds in record.recorded_rounds(where)])
        step = step or record.cut_off(where, name, fingerprint, call_id)
        key = key if step is None else step.key
    record.counts[counted] = occurrence, key
    return Placement(key, fingerprint, record.steps.get(key))


def _recorded(record: Record, keys: Sequence[str]) -> StoredStep | None:
    """The step of the first key that is recorded; of a round that others have shifted into, only what nobody came to yet."""
    *shifted, own = keys
    free = (key for key in shifted if key in record.steps and key not in record.consumed)
    return record.steps.get(next(free, own))


def _unheard(record: Record, keys: Sequence[str]) -> str | None:
    """The first of the calls that went without their answers: one that is made again is that one."""
    return next((key for key in keys if key in record.unheard), None)


def _is_open(record: Record, key: str) -> bool:
    """Whether this attempt came to the step and has no value of it: its last try gave none, or its call has gone."""
    step = record.steps.get(key)
    if key in record.unheard:
        return True
    if step is None or key not in record.consumed or _is_under_way(record, key):
        return False
    return step.status != "done"


def _is_under_way(record: Record, key: str) -> bool:
    """Whether a call of the step runs, or is on its way: being settled, or about to write its intent."""
    return key in record.running or record.arriving[key] > 0


def _is_past(record: Record, key: str) -> bool:
    step = record.steps.get(key)
    if _is_under_way(record, key):
        return True
    return step is not None and (step.status == "done" or record.is_handled(step))
