"""``resume="handover"``: an agent is given the turns that are over, as the SDK's own state, instead of replaying its loop.

The state holds what the SDK would hold before it asks for the last recorded reply: items, responses, usage, the number of
turns. It asks for that reply as ever, and goes on from there.
"""

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from agents import Agent, FunctionTool, ModelBehaviorError, ModelResponse, RunConfig, RunState, UserError

from gnl_middleware.adapter import FinishedCall, FinishedTurn, History, Session, current_scope

from .private import Begun, ToolRunFunction, agent_of, output_type_of
from .replies import as_response
from .requests import as_messages, first_request, items_of
from .values import TypedOutput

_logger = logging.getLogger("gnl_middleware")
_ITEMS = frozenset({"message", "reasoning", "function_call"})
_UNFIT = (AttributeError, LookupError, TypeError, ValueError)
"""What a record raises that is none of this adapter's: the replay comes to it, and says so."""
_OPTIONS = frozenset({"context", "max_turns", "run_config"})


@dataclass(frozen=True, slots=True)
class Handover:
    """What an agent is run with.

    Attributes:
        agent: The journalled agent.
        given: Its input.
        options: Those that are given to the SDK.
        config: The run's configuration.
    """

    agent: Agent[Any]
    given: Any
    options: Mapping[str, Any]
    config: RunConfig

    def begin(self, session: Session, run_id: str | None) -> Any:
        """What the SDK is to begin with: a state with all that is over, or the input where nothing is handed over."""
        if (reason := self.why_replayed(session, run_id)) is not None:
            told = "Run %r was asked to resume by hand-over, but %s: the agent's loop is replayed, which takes longer"
            _logger.warning(told, session.run_id, reason)
            return self.given
        history = History(session, current_scope())
        begun = Begun(self.agent, self.given, self.options)
        # Where the loop ends at its limit, its error tells of every turn.
        if not history.began_with(first_request(self.agent.instructions, self.given)) or (
            begun.max_turns is not None and history.length > begun.max_turns
        ):
            return self.given
        for turn in history.turns():
            response, items, called = _rebuilt(begun, turn)
            if response is None or not history.proves(*as_messages([item.to_input_item() for item in items])):
                break
            begun.add(response, items, called)
        if not begun.turns:
            return self.given
        history.hand_over()
        return begun.state()

    def why_replayed(self, session: Session, run_id: str | None) -> str | None:
        """Why the agent cannot be handed its history; None where it can."""
        if run_id is None:
            return "it works in a run that is open around it (no run_id=)"
        if not session.locked:
            return "other workers may be at the run (lock=False)"
        if isinstance(self.given, RunState):
            return "it goes on from a saved state"
        return next(self._reasons(), None)

    def _reasons(self) -> Iterator[str]:
        agent, config = self.agent, self.config
        if not all(_is_said(item) for item in items_of(self.given)):
            yield "its input holds more than what was said"
        if more := sorted(name for name, option in self.options.items() if option and name not in _OPTIONS):
            yield f"it is run with {', '.join(more)}"
        if agent.handoffs or agent.mcp_servers or type(agent).__bases__[-1] is not Agent:
            yield "its handoffs, MCP servers or class decide each turn what it can do"
        guardrails = (agent.input_guardrails, agent.output_guardrails)
        if any((*guardrails, agent.hooks, config.input_guardrails, config.output_guardrails)):
            yield "its hooks or guardrails see its turns"
        if (
            callable(agent.instructions)
            or callable(agent.prompt)
            or config.call_model_input_filter is not None
        ):
            yield "its instructions or input are made anew each turn"
        if agent.tool_use_behavior != "run_llm_again" or not all(map(_is_plain, agent.tools)):
            yield "some of its tools are not functions that simply run"


def _rebuilt(begun: Begun, turn: FinishedTurn) -> tuple[ModelResponse | None, list[Any], list[Any]]:
    """A turn's response, items and calls; no response where only the SDK's own loop can tell what it makes of it."""
    try:
        response = as_response(turn.reply)
        if not all(map(_is_plain_item, response.output)):
            return None, [], []
        items, called = begun.items_of(response)
        if len(called) != len(turn.calls):
            return None, [], []
        pairs = zip(called, turn.calls, strict=True)
        results = [begun.result(each, _result(each, call, turn)) for each, call in pairs]
    except (*_UNFIT, ModelBehaviorError, UserError):
        return None, [], []
    return response, [*items, *results], called


def _is_plain_item(item: Any) -> bool:
    return getattr(item, "type", None) in _ITEMS


def _is_said(item: Mapping[str, Any]) -> bool:
    """Whether an item of the input is a message; of calls the SDK sorts some out, when it goes on from a state."""
    return item.get("type", "message") == "message" and "role" in item


def _is_plain(tool: Any) -> bool:
    """Whether a tool is a function that nothing stands around, and nobody else answers for."""
    if not isinstance(tool, FunctionTool) or agent_of(tool) is not None:
        return False
    around = (tool.tool_input_guardrails, tool.tool_output_guardrails, tool.custom_data_extractor)
    always = tool.is_enabled is True and tool.needs_approval is False and not tool.defer_loading
    return always and not any(around)


def _result(called: ToolRunFunction, call: FinishedCall, turn: FinishedTurn) -> Any:
    """What a call gave, or what the model was told of its failure.

    Raises:
        LookupError: The next request does not tell.
    """
    tool = called.function_tool
    adapter = output_type_of(tool)
    if call.failed:
        if tool.output_json_schema is not None:
            raise LookupError(call.name)  # in such a tool's answer, a failure has a form of its own
        return _told_of(called, turn)
    if call.raw or (adapter is None and tool.output_json_schema is None):
        return call.value
    return TypedOutput(adapter).decode(call.value)


def _told_of(called: ToolRunFunction, turn: FinishedTurn) -> str:
    answers = [
        message["output"]
        for message in turn.asked_next
        if message.get("type") == "function_call_output"
        and message.get("call_id") == called.tool_call.call_id
    ]
    return str(answers[-1])
