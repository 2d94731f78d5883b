"""The other local tools: shell, custom and apply-patch tools are journalled, what cannot be is refused.

The SDK turns any exception of these tools into an answer for the model, also one of ours: there the latch speaks. The
next call of the run, and every write to its session, raises it again.
"""

import dataclasses
from collections.abc import Awaitable, Callable
from typing import Any, cast

from agents import (
    ApplyPatchEditor,
    ApplyPatchOperation,
    ApplyPatchTool,
    ComputerTool,
    CustomTool,
    LocalShellCommandRequest,
    LocalShellTool,
    ShellCommandRequest,
    ShellTool,
)
from agents.tool_context import ToolContext

from gnl_middleware import UnjournaledCallError
from gnl_middleware.adapter import OnNoRun, Policy, ToolCall

from .errors import passing
from .private import awaited
from .requests import called_name
from .runs import session_here
from .steps import perform_call, tool_call
from .values import described

_REMEDY = "This adapter cannot journal it. Give the agent a function tool that does the work, labelled with what may happen to it."


async def _performed(call: ToolCall, on_no_run: OnNoRun, body: Callable[[], Any]) -> Any:
    async def run() -> Any:
        return await awaited(body())

    session = session_here(name=call.name, on_no_run=on_no_run)
    return await (run() if session is None else perform_call(session, call, run))


class _Shell:
    """Runs the commands of a shell tool through the journal."""

    def __init__(self, tool: ShellTool | LocalShellTool, policy: Policy, on_no_run: OnNoRun) -> None:
        self._name, self._executor = tool.name, cast("Callable[[Any], Any]", tool.executor)
        self._policy = policy
        self._on_no_run: OnNoRun = on_no_run

    async def __call__(self, request: ShellCommandRequest | LocalShellCommandRequest) -> Any:
        call = tool_call(
            name=self._name,
            policy=self._policy,
            arguments=_action(request.data),
            call_id=request.data.call_id,
        )
        return await _performed(call, self._on_no_run, lambda: self._executor(request))


def _action(data: Any) -> Any:
    raw = getattr(data, "raw", None)
    action = getattr(raw, "action", None) or (raw.get("action") if isinstance(raw, dict) else None)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    return described(action if action is not None else data.action)


class _Custom:
    """Calls a custom tool through the journal."""

    def __init__(self, tool: CustomTool, policy: Policy, on_no_run: OnNoRun) -> None:
        self._tool, self._policy = tool, policy
        self._on_no_run: OnNoRun = on_no_run

    async def __call__(self, context: ToolContext[Any], given: str) -> Any:
        call = tool_call(
            name=called_name(context.tool_call) if context.tool_call is not None else self._tool.name,
            policy=self._policy,
            arguments=given,
            call_id=context.tool_call_id,
        )
        return await _performed(call, self._on_no_run, lambda: self._tool.on_invoke_tool(context, given))


class _Editor(ApplyPatchEditor):
    """Applies patches through the journal.

    An editor is not told the id of the call: it is found by its operation, and calls of one reply run one after another.
    """

    def __init__(self, tool: ApplyPatchTool, policy: Policy, on_no_run: OnNoRun) -> None:
        self._name, self._editor = tool.name, tool.editor
        self._policy = policy
        self._on_no_run: OnNoRun = on_no_run

    def create_file(self, operation: ApplyPatchOperation) -> Awaitable[Any]:
        """Create a file, once."""
        return self._apply(self._editor.create_file, operation)

    def update_file(self, operation: ApplyPatchOperation) -> Awaitable[Any]:
        """Change a file, once."""
        return self._apply(self._editor.update_file, operation)

    def delete_file(self, operation: ApplyPatchOperation) -> Awaitable[Any]:
        """Delete a file, once."""
        return self._apply(self._editor.delete_file, operation)

    async def _apply(self, edit: Callable[[ApplyPatchOperation], Any], operation: ApplyPatchOperation) -> Any:
        asked = {"type": operation.type, "path": operation.path, "diff": operation.diff}
        if operation.move_to is not None:
            asked["move_to"] = operation.move_to
        said = {name: value for name, value in asked.items() if value is not None}
        call = tool_call(name=self._name, policy=self._policy, arguments=said, call_id="")
        return await _performed(call, self._on_no_run, lambda: edit(operation))


def journaled_kind(tool: Any, policy: Policy, on_no_run: OnNoRun) -> Any:
    """A journalled copy of a shell, custom or apply-patch tool."""
    match tool:
        case ShellTool() | LocalShellTool():
            return dataclasses.replace(tool, executor=_Shell(tool, policy, on_no_run))
        case CustomTool():
            return dataclasses.replace(tool, on_invoke_tool=_Custom(tool, policy, on_no_run))
        case _:
            return dataclasses.replace(tool, editor=_Editor(tool, policy, on_no_run))


def is_local(tool: Any) -> bool:
    """Whether a tool of these kinds runs here; a provider's shell, for one, does not."""
    if isinstance(tool, ShellTool):
        return tool.executor is not None
    return isinstance(tool, LocalShellTool | CustomTool | ApplyPatchTool)


def is_journaled_kind(tool: Any) -> bool:
    """Whether a tool of these kinds is a journalled copy."""
    match tool:
        case ShellTool() | LocalShellTool():
            return isinstance(tool.executor, _Shell)
        case CustomTool():
            return isinstance(tool.on_invoke_tool, _Custom)
        case ApplyPatchTool():
            return isinstance(tool.editor, _Editor)
        case _:
            return False


def refuse_unjournalable(tool: Any) -> None:
    """Raise UnjournaledCallError for a tool whose actions cannot be journalled."""
    if isinstance(tool, ComputerTool):
        raise passing(UnjournaledCallError(kind="tool", name=str(tool.name), remedy=_REMEDY))  # pyright: ignore[reportUnknownArgumentType, reportUnknownMemberType]
