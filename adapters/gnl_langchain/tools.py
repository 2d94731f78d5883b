"""A tool call as the journal sees it: what the agent hands on is what is recorded."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, cast

from langchain.agents.middleware.types import ToolCallRequest
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langgraph.errors import GraphBubbleUp, ParentCommand
from langgraph.types import Command

from gnl_middleware.adapter import Ending, Policy, ToolCall, digest, judge_endings_with

from .errors import passing
from .private import running_place, tool_result
from .requests import normalised, reply_digest
from .values import raised_or_given


def tool_call(request: ToolCallRequest, policy: Policy, *, messages_key: str = "messages") -> ToolCall:
    """The call that a request asks for, as the journal sees it."""
    call = request.tool_call
    messages = _messages(request.state, messages_key)
    carrier = _carrier(messages, call)
    with_artifact = getattr(request.tool, "response_format", "content") == "content_and_artifact"
    return ToolCall(
        name=call["name"],
        policy=policy,
        arguments=call["args"],
        call_id=call.get("id") or "",
        carrier=None if carrier is None else reply_digest(carrier),
        # Asked only of a run that goes on from a checkpoint: it takes to go through the whole history.
        occurrence=lambda: 1 if carrier is None else _occurrence(messages, carrier),
        place=None if carrier is None else _place(messages, carrier, call),
        decode=lambda value: raised_or_given(_with_ids_of(value, messages)),
        present=lambda raw: tool_result(
            raw, call_id=call.get("id"), name=call["name"], with_artifact=with_artifact
        ),
        adopt=lambda value: _readdressed(value, call.get("id") or ""),
        ending=ending,
        as_control=passing,
    )


def _with_ids_of(value: Any, messages: Sequence[Any]) -> Any:
    """A recorded command that hands messages of the state on, with the ids that they have now.

    LangGraph makes ids up anew in each attempt, and takes a message with another id for another message.
    """
    if isinstance(value, ParentCommand):
        return ParentCommand(_with_ids_of(cast("Any", value).args[0], messages))
    if isinstance(value, list):
        return [_with_ids_of(item, messages) for item in value]  # pyright: ignore[reportUnknownVariableType]
    update: Any = cast("Command[Any]", value).update if isinstance(value, Command) else None
    if not isinstance(update, dict):
        return cast("Any", value)
    lists = [
        cast("list[Any]", item) for item in cast("dict[Any, Any]", update).values() if isinstance(item, list)
    ]
    handed = [item for item in chain.from_iterable(lists) if isinstance(item, BaseMessage)]
    ids = _ids_of(handed, messages)
    renamed = {name: _renamed(item, ids) for name, item in cast("dict[Any, Any]", update).items()}
    return replace(cast("Any", value), update=renamed)


def _ids_of(handed: Sequence[BaseMessage], messages: Sequence[Any]) -> dict[str, list[str | None]]:
    """The ids of the messages of the state that may be those that are handed on, by what each of them tells."""
    # Most are told apart by what they answer or call for, without being described.
    at_a_glance = {_at_a_glance(message) for message in handed}
    ids: dict[str, list[str | None]] = {}
    for message in messages if handed else ():
        if isinstance(message, BaseMessage) and _at_a_glance(message) in at_a_glance:
            ids.setdefault(digest(normalised(message)), []).append(message.id)
    return ids


def _at_a_glance(message: BaseMessage) -> tuple[str, ...]:
    if isinstance(message, ToolMessage):
        return ("answers", message.tool_call_id)
    return tuple(call_id or "" for call_id in _call_ids(message)) if isinstance(message, AIMessage) else ()


def _renamed(update: Any, ids: Mapping[str, list[str | None]]) -> Any:
    if not isinstance(update, list):
        return update
    renamed: list[Any] = []
    for item in cast("list[Any]", update):
        known = ids.get(digest(normalised(item))) if isinstance(item, BaseMessage) else None
        renamed.append(item.model_copy(update={"id": known.pop(0)}) if known else item)
    return renamed


def _readdressed(value: Any, call_id: str) -> Any:
    """Another call's result as this call's: it answers this call's id."""
    if isinstance(value, ToolMessage):
        return value.model_copy(update={"tool_call_id": call_id, "id": None})
    if isinstance(value, list):
        return [_readdressed(item, call_id) for item in value]  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, Command):
        command = cast("Command[Any]", value)
        return replace(command, update=_readdressed(command.update, call_id))
    if isinstance(value, ParentCommand):
        return ParentCommand(_readdressed(cast("Any", value).args[0], call_id))
    if isinstance(value, dict):
        named = cast("dict[Any, Any]", value)
        return {name: _readdressed(item, call_id) for name, item in named.items()}
    return value


def ending(error: Exception) -> Ending:
    """What an exception from a tool means: an answer to the parent graph is its outcome, an interrupt is a pause."""
    if isinstance(error, ParentCommand):
        return "outcome"
    return "pause" if isinstance(error, GraphBubbleUp) else "failure"


def _carrier(messages: Sequence[Any], call: Mapping[str, Any]) -> AIMessage | None:
    """The message that carries the call: the last one that holds its id."""
    for message in reversed(messages):
        if isinstance(message, AIMessage) and call.get("id") in _call_ids(message):
            return message
    return None


def _occurrence(messages: Sequence[Any], carrier: AIMessage) -> int:
    """Which of its equals the carrying message is, from 1."""
    told, call_ids = reply_digest(carrier), _call_ids(carrier)
    before = messages[: _index(messages, carrier)]
    # Only a message with the same call ids can be an equal; most are told apart without a digest.
    alike = (reply for reply in before if isinstance(reply, AIMessage) and _call_ids(reply) == call_ids)
    return 1 + sum(reply_digest(reply) == told for reply in alike)


def _place(messages: Sequence[Any], carrier: AIMessage, call: Mapping[str, Any]) -> int | None:
    """The call itself, where the message still holds it; else, after a checkpoint, its place among those sent out."""
    if held := [place for place, item in enumerate(carrier.tool_calls) if item is call]:
        return held[0]
    after = messages[_index(messages, carrier) + 1 :]
    answered = {message.tool_call_id for message in after if isinstance(message, ToolMessage)}
    sent = [place for place, call_id in enumerate(_call_ids(carrier)) if call_id not in answered]
    place = running_place()
    return sent[place] if place is not None and place < len(sent) else None


def _index(messages: Sequence[Any], message: BaseMessage) -> int:
    return next(place for place in range(len(messages) - 1, -1, -1) if messages[place] is message)


def _call_ids(reply: AIMessage) -> list[str | None]:
    return [call.get("id") for call in reply.tool_calls]


def _messages(state: Any, key: str) -> Sequence[Any]:
    """The messages of a state, among whatever else stands there; a copy, since the state goes on."""
    if isinstance(state, Mapping):
        return list(cast("Mapping[str, Any]", state).get(key, ()))
    return list(cast("Any", state) if isinstance(state, list) else getattr(state, key, ()))


def _of_plain_function(error: Exception) -> Ending:
    # Where a plain function ends a node by a command to the parent graph, its value would be an exception: it is none.
    return "pause" if isinstance(error, GraphBubbleUp) and not isinstance(error, ParentCommand) else "failure"


judge_endings_with(_of_plain_function)
