"""Function tools, those of MCP servers included, and agents as tools: journalled copies, never the user's objects."""

import warnings
from collections.abc import Mapping
from typing import Any

from agents import FunctionTool, Usage
from agents.tool_context import ToolContext
from pydantic import TypeAdapter

from gnl_middleware import safe
from gnl_middleware.adapter import OnNoRun, Policy, decode, encode

from .labels import name_of
from .models import usage_added_to
from .private import (
    agent_of,
    forget_waiting,
    invoke,
    journaled_copy,
    output_type_of,
    raising,
    runs_in_thread,
    waits_for_approval,
)
from .requests import called_name, parsed
from .runs import session_here
from .steps import NotRecordedError, perform_call, tool_call
from .values import TypedOutput, encode_output

_USAGE = TypeAdapter(Usage)


def journaled_function_tool(tool: FunctionTool, policy: Policy, on_no_run: OnNoRun) -> FunctionTool:
    """A copy of a tool whose calls go through the journal."""
    body, in_thread, passed = raising(tool), runs_in_thread(tool), _passing_values(tool)

    async def journaled(context: ToolContext[Any], arguments: str) -> Any:
        session = session_here(name=name_of(tool), on_no_run=on_no_run)
        if session is None:
            return await invoke(body, context, arguments)
        call = tool_call(
            name=_called_name(tool, context),
            policy=policy,
            arguments=parsed(arguments),
            call_id=context.tool_call_id,
            **passed,
        )
        return await perform_call(
            session, call, lambda: invoke(body, context, arguments), in_thread=in_thread
        )

    return journaled_copy(tool, journaled)


def _passing_values(tool: FunctionTool) -> dict[str, Any]:
    """How a tool's results pass through the journal, where it says of which type they are."""
    adapter = output_type_of(tool)
    if adapter is None and tool.output_json_schema is None:
        return {}
    typed = TypedOutput(adapter)
    return {"encode": typed.encode, "decode": typed.decode}


def journaled_agent_tool(tool: FunctionTool, on_no_run: OnNoRun) -> FunctionTool:
    """A copy of a tool that runs a journalled agent: entered again after a crash, its finished steps are read back."""
    return journaled_copy(tool, _AgentCalls(tool, on_no_run).call)


class _AgentCalls:
    """Calls of an agent as a tool: its result is recorded with what its models used, which belongs to the run."""

    def __init__(self, tool: FunctionTool, on_no_run: OnNoRun) -> None:
        self._tool, self._body = tool, raising(tool)
        self._on_no_run: OnNoRun = on_no_run

    async def call(self, context: ToolContext[Any], arguments: str) -> Any:
        session = session_here(name=name_of(self._tool), on_no_run=self._on_no_run)
        if session is None:
            return await invoke(self._body, context, arguments)
        used, ran = Usage(), False

        async def body() -> Any:
            nonlocal ran
            ran = True
            with usage_added_to(used):
                output = await invoke(self._body, context, arguments)
            if waits_for_approval(context):
                raise NotRecordedError(output)
            return {"output": output, "usage": used}

        call = tool_call(
            name=_called_name(self._tool, context),
            policy=safe,
            arguments=parsed(arguments),
            call_id=context.tool_call_id,
            encode=_encode_result,
            decode=_decode_result,
        )
        result = await perform_call(session, call, body)
        if not isinstance(result, _Result):
            return result
        if not ran:
            context.usage.add(result.usage)
            forget_waiting(context)
        return result.output


class _Result:
    """What an agent as a tool gave, and what its models used."""

    def __init__(self, output: Any, usage: Usage) -> None:
        self.output, self.usage = output, usage


def _encode_result(value: Mapping[str, Any]) -> bytes:
    output = decode(encode_output(value["output"]))
    return encode({"output": output, "usage": _USAGE.dump_python(value["usage"], mode="json")})


def _decode_result(recorded: Mapping[str, Any]) -> _Result:
    return _Result(recorded["output"], _USAGE.validate_python(recorded["usage"]))


def warn_of_leaf(tool: FunctionTool) -> None:
    """Say that what an agent does inside a tool is one step, since the agent is not journalled."""
    agent = agent_of(tool)
    warnings.warn(
        f"The tool {name_of(tool)!r} runs the agent {agent.name if agent else ''!r}, which is not journalled: all that it "
        f"does is one step, and repeated or blocked as a whole. Journal it: runner.wrap(agent).as_tool(...).",
        stacklevel=2,
    )


def _called_name(tool: FunctionTool, context: ToolContext[Any]) -> str:
    return called_name(context.tool_call) if context.tool_call is not None else name_of(tool)
