"""Details of the Agents SDK and of the OpenAI client that are not promised to anybody, and that this adapter relies on.

Each has a contract test (``tests/openai_agents/test_private_details.py``) that says what breaks when it changes.
"""

import copy
import inspect
import weakref
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, cast, get_args
from uuid import uuid4

from agents import (
    Agent,
    FunctionTool,
    Handoff,
    ItemHelpers,
    Model,
    ModelResponse,
    RunContextWrapper,
    RunResultStreaming,
    RunState,
    Session,
    ToolTimeoutError,
)
from agents._tool_identity import get_function_tool_lookup_key_for_tool
from agents.agent_tool_state import (
    drop_agent_tool_run_result,
    get_agent_tool_resume_state,
    get_agent_tool_state_scope,
    peek_agent_tool_run_result,
    set_agent_tool_state_scope,
)
from agents.items import RunItem, ToolCallOutputItem
from agents.memory.session import (
    _session_accepts_wrapper,  # pyright: ignore[reportPrivateUsage]
    is_openai_responses_compaction_aware_session,
)
from agents.run import DEFAULT_MAX_TURNS
from agents.run_internal.run_steps import NextStepRunAgain, ToolRunFunction
from agents.run_internal.turn_preparation import get_output_schema
from agents.run_internal.turn_resolution import process_model_response
from agents.tool import (
    _DEFAULT_FAILURE_HANDLED_ATTR,  # pyright: ignore[reportPrivateUsage]
    _SYNC_FUNCTION_TOOL_MARKER,  # pyright: ignore[reportPrivateUsage]
    _FailureHandlingFunctionToolInvoker,  # pyright: ignore[reportPrivateUsage]
    default_tool_timeout_error_message,
    get_function_tool_origin,
    invoke_function_tool,
    maybe_invoke_function_tool_failure_error_function,
    set_function_tool_failure_error_function,
)
from agents.tool_context import ToolContext
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import BaseModel, TypeAdapter

from .errors import is_ours

REQUEST_ID = "_request_id"
RAW_USAGE = "_agents_sdk_raw_usage"
"""Attributes that the client and the SDK put on a response, beside its fields."""

Invoke = Callable[[ToolContext[Any], str], Awaitable[Any]]
"""How a function tool is called: with its context and the arguments as the model wrote them."""


class JournaledInvoker(_FailureHandlingFunctionToolInvoker):
    """Calls a tool through the journal; the SDK's own answers to failures and timeouts stand around it.

    It is the SDK's own kind of invoker, by which approvals know that they may look at the arguments beforehand.

    Args:
        original: The user's tool.
        journaled: Calls it through the journal; failures and timeouts raise.
    """

    def __init__(
        self, original: FunctionTool, journaled: Invoke, *, function_tool: FunctionTool | None = None
    ) -> None:
        invoker: Any = original.on_invoke_tool
        self._answers_failures = isinstance(invoker, _FailureHandlingFunctionToolInvoker)
        implementation = invoker._invoke_tool_impl if self._answers_failures else invoker
        report = invoker._on_handled_error if self._answers_failures else _report_nothing
        super().__init__(implementation, report, function_tool=function_tool)
        self._original, self._journaled = original, journaled
        if runs_in_thread(original):
            setattr(self, _SYNC_FUNCTION_TOOL_MARKER, True)

    def __agents_bind_function_tool__(self, function_tool: FunctionTool) -> "JournaledInvoker":
        """The invoker of a copy of the tool."""
        if self._function_tool is function_tool:
            return self
        return JournaledInvoker(self._original, self._journaled, function_tool=function_tool)

    async def __call__(self, ctx: ToolContext[Any], input: str) -> Any:  # noqa: A002 - the SDK's name
        """Call the tool; what stops the run is never an answer for the model."""
        try:
            return await self._journaled(ctx, input)
        except Exception as error:
            if is_ours(error):
                raise
            if isinstance(error, ToolTimeoutError) and self._original.timeout_seconds is not None:
                return await self._timed_out(ctx, error)
            return await self._failed(ctx, input, error)

    async def _failed(self, ctx: ToolContext[Any], given: str, error: Exception) -> Any:
        tool = self._function_tool
        if tool is None or not self._answers_failures:
            raise error
        told = await maybe_invoke_function_tool_failure_error_function(
            function_tool=tool, context=ctx, error=error
        )
        if told is None:
            raise error
        self._on_handled_error(tool, error, given, ctx)
        return told

    async def _timed_out(self, ctx: ToolContext[Any], error: ToolTimeoutError) -> Any:
        tool = self._original
        if tool.timeout_behavior == "raise_exception":
            raise error
        if tool.timeout_error_function is not None:
            return await awaited(tool.timeout_error_function(ctx, error))
        setattr(ctx, _DEFAULT_FAILURE_HANDLED_ATTR, True)
        return default_tool_timeout_error_message(
            tool_name=tool.name, timeout_seconds=tool.timeout_seconds or error.timeout_seconds
        )


def _report_nothing(*_given: Any) -> None: ...


async def awaited(value: Any) -> Any:
    """A value, or what an awaitable gives."""
    return await value if inspect.isawaitable(value) else value


def raising(tool: FunctionTool) -> FunctionTool:
    """A copy of a tool whose failures and timeouts raise, instead of becoming a text for the model."""
    copied = set_function_tool_failure_error_function(copy.copy(tool), None)
    copied.timeout_behavior = "raise_exception"
    return copied


async def invoke(tool: FunctionTool, context: ToolContext[Any], arguments: str) -> Any:
    """Call a tool as the SDK does, its timeout included."""
    return await invoke_function_tool(function_tool=tool, context=context, arguments=arguments)


def journaled_copy(tool: FunctionTool, journaled: Invoke) -> FunctionTool:
    """A copy of a tool that is called through the journal, its timeout with it."""
    copied = copy.copy(tool)
    copied.on_invoke_tool = JournaledInvoker(tool, journaled).__agents_bind_function_tool__(copied)
    # The SDK's timeout stands outside the invoker: the journal would see a cancellation, the model a timeout.
    copied.timeout_seconds = None
    return copied


def runs_in_thread(tool: FunctionTool) -> bool:
    """Whether the SDK runs the tool's body in a thread, which no cancellation stops."""
    return bool(getattr(tool.on_invoke_tool, _SYNC_FUNCTION_TOOL_MARKER, False))


def function_of(tool: FunctionTool) -> Any:
    """The function that a tool was made of, or None."""
    return getattr(tool, "__wrapped__", None)


def output_type_of(tool: FunctionTool) -> TypeAdapter[Any] | None:
    """What reads and writes a tool's output, where it has a declared type."""
    return tool._output_type_adapter  # pyright: ignore[reportPrivateUsage]


def agent_of(tool: FunctionTool) -> Agent[Any] | None:
    """The agent that a tool runs, where ``Agent.as_tool`` made it."""
    agent = cast("Any", tool)._agent_instance
    return agent if tool._is_agent_tool else None  # pyright: ignore[reportPrivateUsage]


def waits_for_approval(context: ToolContext[Any]) -> bool:
    """Whether the agent that a tool call runs has stopped at an approval: its result is none yet."""
    if context.tool_call is None:
        return False
    result = peek_agent_tool_run_result(context.tool_call, scope_id=get_agent_tool_state_scope(context))
    return get_agent_tool_resume_state(result) is None and bool(getattr(result, "interruptions", None))


def forget_waiting(context: ToolContext[Any]) -> None:
    """Forget that the agent of a tool call has stopped at an approval: its result was read back."""
    if context.tool_call is not None:
        drop_agent_tool_run_result(context.tool_call, scope_id=get_agent_tool_state_scope(context))


def target_of(handoff: Handoff[Any, Any]) -> Any:
    """The agent that a handoff leads to, where it is known beforehand."""
    reference = handoff._agent_ref  # pyright: ignore[reportPrivateUsage]
    return None if reference is None else reference()


def aim(handoff: Handoff[Any, Any], target: Agent[Any]) -> None:
    """Let a handoff, a copy of ours, name another agent as its target; a saved state finds its agents by it."""
    handoff._agent_ref = weakref.ref(target)  # pyright: ignore[reportPrivateUsage]


def agents_in(state: RunState[Any, Any]) -> tuple[Agent[Any] | None, Agent[Any] | None]:
    """The agent that a state began with, and the one that goes on."""
    return state._starting_agent, state._current_agent  # pyright: ignore[reportPrivateUsage, reportUnknownMemberType]


def replies_in(state: RunState[Any, Any]) -> int:
    """How many replies of models a state holds."""
    return len(state._model_responses)  # pyright: ignore[reportPrivateUsage]


def not_begun(agent: Agent[Any], given: Any, context: Any, max_turns: int | None) -> RunResultStreaming:
    """What a streamed run shows before it has begun."""
    wrapper = cast("RunContextWrapper[Any]", context)
    if not isinstance(context, RunContextWrapper):
        wrapper = RunContextWrapper[Any](context)
    return RunResultStreaming(
        input=given,
        new_items=[],
        raw_responses=[],
        final_output=None,
        input_guardrail_results=[],
        output_guardrail_results=[],
        tool_input_guardrail_results=[],
        tool_output_guardrail_results=[],
        context_wrapper=wrapper,
        current_agent=agent,
        current_turn=0,
        max_turns=max_turns,
        _current_agent_output_schema=None,
        trace=None,
    )


class Begun:
    """A run of the SDK that has come some turns far.

    Args:
        agent: The agent.
        given: Its input.
        options: Those of ``Runner.run``.
    """

    def __init__(self, agent: Agent[Any], given: Any, options: Mapping[str, Any]) -> None:
        self._agent, self._given, self._schema = agent, given, get_output_schema(agent)
        context: Any = options.get("context")
        own = isinstance(context, RunContextWrapper)
        self._context = cast("RunContextWrapper[Any]", context) if own else RunContextWrapper[Any](context)
        self.max_turns: int | None = options.get("max_turns", DEFAULT_MAX_TURNS)
        self._items: list[RunItem] = []
        self._responses: list[ModelResponse] = []
        self._called: list[ToolRunFunction] = []

    @property
    def turns(self) -> int:
        """How many turns are over."""
        return len(self._responses)

    def items_of(self, response: ModelResponse) -> tuple[list[RunItem], list[ToolRunFunction]]:
        """The items that a reply brings, and the calls of functions that it asks for.

        Raises:
            ModelBehaviorError: It asks for a tool that the agent does not have.
        """
        found = process_model_response(
            agent=self._agent,
            all_tools=self._agent.tools,
            response=response,
            output_schema=self._schema,
            handoffs=[],
        )
        return found.new_items, found.functions

    def result(self, called: ToolRunFunction, result: Any) -> RunItem:
        """The item that the result of a function's call becomes.

        Raises:
            UserError: The result is not of the type that the tool declares.
        """
        tool = called.function_tool
        raw = ItemHelpers.tool_call_output_item(
            called.tool_call,
            result,
            output_json_schema=tool.output_json_schema,
            output_type_adapter=output_type_of(tool),
        )
        origin = get_function_tool_origin(tool)
        return ToolCallOutputItem(output=result, raw_item=raw, agent=self._agent, tool_origin=origin)

    def add(self, response: ModelResponse, items: list[RunItem], called: list[ToolRunFunction]) -> None:
        """One more turn is over: this reply, and the items that it has brought with the results of its calls."""
        self._responses.append(response)
        self._items += items
        self._called += called

    def state(self) -> RunState[Any, Any]:
        """The state from which the SDK goes on."""
        context: Any = self._context
        for response in self._responses:
            context.usage.add(response.usage)
        # The SDK refuses a call id that a model uses again for another call.
        for each in self._called:
            key = get_function_tool_lookup_key_for_tool(each.function_tool)
            context._mark_tool_invocation_executed(each.tool_call, tool_lookup_key=key)
        for item in self._items:
            if isinstance(item, ToolCallOutputItem):
                context._mark_tool_call_completed(item.raw_item)
        set_agent_tool_state_scope(context, uuid4().hex)
        state: Any = RunState(
            context=context,
            original_input=self._given,
            starting_agent=self._agent,
            max_turns=self.max_turns,
        )
        state._generated_items, state._session_items = list(self._items), list(self._items)
        state._model_responses, state._current_turn = list(self._responses), self.turns
        state._current_step = NextStepRunAgain()
        # By it the SDK knows that it need not force the model to call a tool once more.
        used = [each.function_tool.qualified_name for each in self._called]
        state.set_tool_use_tracker_snapshot({self._agent.name: used})
        return state


async def clean_up(model: Model, owner: object) -> None:
    """Let a model release what it holds for a run that has ended."""
    await model._cleanup_on_run_end(owner)  # pyright: ignore[reportPrivateUsage]


def takes_wrapper(session: Session) -> bool:
    """Whether a session wants the context of the run with each of its calls."""
    return _session_accepts_wrapper(session)


def compacts(session: Session) -> bool:
    """Whether a session lets a model rewrite its history."""
    return is_openai_responses_compaction_aware_session(session)


def event_types() -> Mapping[str, type[Any]]:
    """The classes of the events of a stream, by their type."""
    union = get_args(ResponseStreamEvent)[0]
    found: dict[str, type[Any]] = {}
    for kind in cast("tuple[type[BaseModel], ...]", get_args(union)):
        found[get_args(kind.model_fields["type"].annotation)[0]] = kind
    return found


def noted_on_response(response: Response) -> dict[str, Any]:
    """What the client and the SDK put on a response beside its fields."""
    notes = {name: getattr(response, name, None) for name in (REQUEST_ID, RAW_USAGE)}
    return {name: note for name, note in notes.items() if note is not None}


def put_notes(response: Response, notes: Mapping[str, Any]) -> None:
    """Put back what ``noted_on_response`` has found."""
    for name, note in notes.items():
        object.__setattr__(response, name, note)
