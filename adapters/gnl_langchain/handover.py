"""``resume="handover"``: an agent of ``create_agent`` is given the turns that are over, instead of replaying its loop.

The agent's first model call is read back as ever. If the record goes on from there, JournalMiddleware answers with more
than that reply: with all the turns that are proven to be over, and with the last recorded reply, for which it asks the model
as the agent would have. The agent goes on from there: at the calls of that reply which are not done, or at the next request.
"""

import contextlib
from collections.abc import Generator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, cast
from uuid import uuid4

from langchain.agents.middleware.types import ModelRequest, ModelResponse
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, ToolMessage
from langchain_core.utils.utils import LC_ID_PREFIX

from gnl_middleware.adapter import FinishedCall, FinishedTurn, History, Session, current_scope

from .answering import Answering
from .labels import Labels, name_of
from .private import recursion_limit, tool_result
from .requests import identified, normalised

_UNFIT = (AttributeError, LookupError, TypeError, ValueError)
"""What a record raises that is none of this adapter's: the replay comes to it, and says so."""


@dataclass(slots=True, eq=False)
class _Wanted:
    """An agent that is to be handed its history, once.

    Attributes:
        journalled_by: The agent's only middleware.
        agent_name: What the agent calls itself in its replies, or None.
    """

    session: Session
    journalled_by: Any
    agent_name: str | None
    taken: bool = False


_wanted: ContextVar[_Wanted | None] = ContextVar("gnl_langchain_handover", default=None)


@contextlib.contextmanager
def handed_over(session: Session, journalled_by: Any, agent_name: str | None) -> Generator[None]:
    """Let the agent of this middleware, when it begins, be handed what is over."""
    token = _wanted.set(_Wanted(session, journalled_by, agent_name))
    try:
        yield
    finally:
        _wanted.reset(token)


@dataclass(slots=True)
class Handover:
    """What one agent can be handed, known when its first model call is about to be made.

    Args:
        history: The finished turns.
        request: The first model call.
        labels: The policies of the agent's tools.
        agent_name: What the agent calls itself in its replies, or None.
    """

    history: History
    request: ModelRequest[Any]
    labels: Labels
    agent_name: str | None
    _tools: Mapping[str, Any] = field(init=False)
    _answering: Answering = field(init=False)

    @classmethod
    def of(cls, middleware: Any, request: ModelRequest[Any], labels: Labels) -> "Handover | None":
        """What is to be handed over at this call; None where nothing is."""
        wanted = _wanted.get()
        if wanted is None or wanted.taken or wanted.journalled_by is not middleware:
            return None
        wanted.taken = True
        history = History(wanted.session, current_scope())
        # A loop that has come to its limit fails again, as in any replay.
        if (
            not isinstance(cast("Any", request.model), BaseChatModel)
            or history.round + 1 >= recursion_limit()
        ):
            return None
        return cls(history, request, labels, wanted.agent_name)

    def __post_init__(self) -> None:
        self._tools = {name_of(tool): tool for tool in self.request.tools if not isinstance(tool, Mapping)}
        self._answering = Answering(self.request.model)

    def messages_after(self, first: ModelResponse[Any]) -> list[AnyMessage]:
        """The turns that are handed over, as messages; empty where the agent's own loop goes on from the first reply.

        Args:
            first: What the first model call has given.
        """
        handed: list[AnyMessage] = []
        for turn in self.history.turns():
            rebuilt = self._rebuilt(turn)
            if not rebuilt or not (handed or self._began_with(first, rebuilt[0])):
                break
            if not handed:
                rebuilt[0] = cast("AIMessage", first.result[0])
            told = [normalised(message) for message in rebuilt]
            parts = [identified(message, each) for message, each in zip(rebuilt, told, strict=True)]
            if not self.history.proves(told, parts):
                break
            handed += rebuilt
        if handed:
            self.history.hand_over()
        return handed

    def _began_with(self, first: ModelResponse[Any], rebuilt: BaseMessage) -> bool:
        """Whether the first reply was read back, and what we make of its record is what LangChain has made of it."""
        if not self.history.has_begun or len(first.result) != 1:
            return False
        fields = ("id",) if _is_made_up(rebuilt.id) else ()
        given, ours = first.result[0].model_dump(), rebuilt.model_dump()
        return all(given[name] == ours[name] for name in given if name not in fields)

    def _rebuilt(self, turn: FinishedTurn) -> list[AnyMessage]:
        """The messages of a turn; none where only the agent's own loop can tell what it makes of it."""
        try:
            reply = self._answering.message(turn.reply)
        except _UNFIT:
            return []
        if not isinstance(reply, AIMessage) or reply.invalid_tool_calls:
            return []
        if reply.id is None:
            reply.id = f"{LC_ID_PREFIX}-{uuid4()}-0"
        if self.agent_name:
            reply.name = self.agent_name
        results = [
            self._result(call, asked) for call, asked in zip(turn.calls, reply.tool_calls, strict=True)
        ]
        answers = [result for result in results if result is not None]
        return [reply, *answers] if len(answers) == len(results) else []

    def _result(self, call: FinishedCall, asked: Mapping[str, Any]) -> ToolMessage | None:
        tool = self._tools.get(call.name)
        # A tool that ends the loop, and a structured reply, which the agent takes for a call of a tool that it has not.
        ends = getattr(tool, "return_direct", False) or (tool is None and self.request.response_format)
        if ends or call.failed or self.labels.find(call.name, tool) is None:
            return None
        result = call.value
        if call.raw:
            with_artifact = getattr(tool, "response_format", "content") == "content_and_artifact"
            result = tool_result(
                call.value, call_id=asked.get("id"), name=call.name, with_artifact=with_artifact
            )
        fits = isinstance(result, ToolMessage) and result.tool_call_id == asked.get("id")
        return result if fits else None


def continued(first: Sequence[AnyMessage], last: ModelResponse[Any]) -> ModelResponse[Any]:
    """A reply, with all that was handed over before it."""
    return ModelResponse(result=[*first, *last.result], structured_response=last.structured_response)


def _is_made_up(message_id: str | None) -> bool:
    return message_id is None or message_id.startswith(LC_ID_PREFIX)
