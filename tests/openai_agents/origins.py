"""Every place of user code from which an exception can come, by name: an agent whose code raises there."""

import asyncio
from collections.abc import Callable
from typing import Any

from agents import (
    Agent,
    ApplyPatchTool,
    CustomTool,
    FunctionTool,
    RunHooks,
    ShellTool,
    UserError,
    function_tool,
    handoff,
    tool_input_guardrail,
)
from agents.exceptions import AgentsException
from agents.testing import ModelStep, ScriptedModel, assistant_message, function_call
from openai.types.responses import (
    Response,
    ResponseApplyPatchToolCall,
    ResponseCompletedEvent,
    ResponseCustomToolCall,
    ResponseFunctionShellToolCall,
)

Raise = Callable[[], Any]
Wrap = Callable[[Agent[Any]], Agent[Any]]


class PlainError(Exception):
    """Of a user's program."""


class OfTheSdkError(AgentsException):
    """Of a library on top of the SDK."""


class NotAnExceptionError(BaseException):
    """What no ``except Exception`` catches."""


KINDS: dict[str, type[BaseException]] = {
    "exception": PlainError,
    "agents_exception": OfTheSdkError,
    "user_error": UserError,
    "cancelled": asyncio.CancelledError,
    "base": NotAnExceptionError,
}


def first_then_done(item: Any) -> ScriptedModel:
    """A model that asks for a call and then says that it is done."""
    return ScriptedModel([streamable([item]), [assistant_message("done")]])


def streamable(output: list[Any]) -> ModelStep:
    """A reply that can be streamed whatever it holds."""
    response = Response.construct(id="resp", output=[], usage=None, object="response")
    response.output = output
    event = ResponseCompletedEvent.construct(type="response.completed", sequence_number=0, response=response)
    return ModelStep.stream([event], output=output, response_id="resp")


def shell_call() -> Any:
    action = {"commands": ["ls"]}
    return ResponseFunctionShellToolCall.model_validate(
        {"type": "shell_call", "id": "sh1", "call_id": "c1", "action": action, "status": "completed"}
    )


def custom_call() -> Any:
    return ResponseCustomToolCall(type="custom_tool_call", name="grep", input="x", call_id="c1")


def patch_call(path: str = "a.txt", call_id: str = "c1") -> Any:
    operation = {"type": "create_file", "path": path, "diff": "+x"}
    return ResponseApplyPatchToolCall.model_validate(
        {
            "type": "apply_patch_call",
            "id": f"ap_{call_id}",
            "call_id": call_id,
            "operation": operation,
            "status": "completed",
        }
    )


def _call(name: str = "act") -> Any:
    return function_call(name, {}, call_id="c1")


def _quiet_tool(**options: Any) -> FunctionTool:
    return function_tool(lambda: "ok", name_override="act", **options)


def _raising_tool(fail: Raise, **options: Any) -> FunctionTool:
    async def body() -> str:
        fail()
        return "ok"

    return function_tool(body, name_override="act", **options)


def in_function(fail: Raise, wrap: Wrap) -> tuple[Agent[Any], Any]:
    return Agent(name="A", model=first_then_done(_call()), tools=[_raising_tool(fail)]), None


def in_invoker(fail: Raise, wrap: Wrap) -> tuple[Agent[Any], Any]:
    async def invoke(context: Any, arguments: str) -> Any:
        fail()

    tool = FunctionTool(
        name="act",
        description="",
        params_json_schema={"type": "object", "properties": {}},
        on_invoke_tool=invoke,
    )
    return Agent(name="A", model=first_then_done(_call()), tools=[tool]), None


def in_function_with_timeout(fail: Raise, wrap: Wrap) -> tuple[Agent[Any], Any]:
    return Agent(name="A", model=first_then_done(_call()), tools=[_raising_tool(fail, timeout=9)]), None


def in_function_whose_failures_are_told(fail: Raise, wrap: Wrap) -> tuple[Agent[Any], Any]:
    tool = _raising_tool(fail, failure_error_function=_told)
    return Agent(name="A", model=first_then_done(_call()), tools=[tool]), None


def _told(context: Any, error: Exception) -> str:
    return f"told: {error}"


def in_tool_guardrail(fail: Raise, wrap: Wrap) -> tuple[Agent[Any], Any]:
    @tool_input_guardrail
    def guard(data: Any) -> Any:
        fail()

    tool = _quiet_tool(tool_input_guardrails=[guard])
    return Agent(name="A", model=first_then_done(_call()), tools=[tool]), None


def in_approval(fail: Raise, wrap: Wrap) -> tuple[Agent[Any], Any]:
    async def needs(context: Any, arguments: Any, call_id: str) -> bool:
        fail()
        return False

    return Agent(name="A", model=first_then_done(_call()), tools=[_quiet_tool(needs_approval=needs)]), None


def in_tool_hook(fail: Raise, wrap: Wrap) -> tuple[Agent[Any], Any]:
    class Hooks(RunHooks[Any]):
        async def on_tool_start(self, context: Any, agent: Any, tool: Any) -> None:
            fail()

    return Agent(name="A", model=first_then_done(_call()), tools=[_quiet_tool()]), Hooks()


def in_model_hook(fail: Raise, wrap: Wrap) -> tuple[Agent[Any], Any]:
    class Hooks(RunHooks[Any]):
        async def on_llm_start(self, *given: Any) -> None:
            fail()

    return Agent(name="A", model=first_then_done(_call()), tools=[_quiet_tool()]), Hooks()


def _nested(fail: Raise, wrap: Wrap, **options: Any) -> Agent[Any]:
    async def body() -> str:
        fail()
        return "ok"

    tool = function_tool(body, name_override="inner_act", failure_error_function=None)
    model = ScriptedModel([[function_call("inner_act", {}, call_id="i1")], [assistant_message("sub done")]])
    inner = wrap(Agent(name="Inner", model=model, tools=[tool]))
    as_tool = inner.as_tool("act", "Acts.", **options)
    outer = first_then_done(function_call("act", {"input": "x"}, call_id="c1"))
    return Agent(name="A", model=outer, tools=[as_tool])


def in_nested_agent(fail: Raise, wrap: Wrap) -> tuple[Agent[Any], Any]:
    return _nested(fail, wrap), None


def in_nested_agent_that_fails(fail: Raise, wrap: Wrap) -> tuple[Agent[Any], Any]:
    return _nested(fail, wrap, failure_error_function=None), None


def in_nested_agent_whose_failures_are_told(fail: Raise, wrap: Wrap) -> tuple[Agent[Any], Any]:
    return _nested(fail, wrap, failure_error_function=_told), None


def in_shell(fail: Raise, wrap: Wrap) -> tuple[Agent[Any], Any]:
    async def execute(request: Any) -> str:
        fail()
        return "ok"

    tool = ShellTool(executor=execute)
    return Agent(name="A", model=first_then_done(shell_call()), tools=[tool]), None


def in_shell_approval(fail: Raise, wrap: Wrap) -> tuple[Agent[Any], Any]:
    async def needs(context: Any, action: Any, call_id: str) -> bool:
        fail()
        return False

    tool = ShellTool(executor=lambda request: "ok", needs_approval=needs)
    return Agent(name="A", model=first_then_done(shell_call()), tools=[tool]), None


def in_custom(fail: Raise, wrap: Wrap) -> tuple[Agent[Any], Any]:
    async def invoke(context: Any, given: str) -> str:
        fail()
        return "ok"

    tool = CustomTool(name="grep", description="", on_invoke_tool=invoke)
    return Agent(name="A", model=first_then_done(custom_call()), tools=[tool]), None


class Editor:
    """An editor whose operations are one function."""

    def __init__(self, edit: Callable[[Any], Any]) -> None:
        self.create_file = self.update_file = self.delete_file = edit


def in_patch(fail: Raise, wrap: Wrap) -> tuple[Agent[Any], Any]:
    async def edit(operation: Any) -> str:
        fail()
        return "ok"

    tool = ApplyPatchTool(editor=Editor(edit))
    return Agent(name="A", model=first_then_done(patch_call()), tools=[tool]), None


def in_model(fail: Raise, wrap: Wrap) -> tuple[Agent[Any], Any]:
    async def respond(call: Any) -> Any:
        fail()

    return Agent(name="A", model=ScriptedModel([ModelStep.respond(respond)] * 2)), None


def in_handoff(fail: Raise, wrap: Wrap) -> tuple[Agent[Any], Any]:
    async def on_handoff(context: Any) -> None:
        fail()

    target = Agent(name="B", model=ScriptedModel([[assistant_message("done")]]))
    given = handoff(target, on_handoff=on_handoff)
    return Agent(name="A", model=first_then_done(_call("transfer_to_b")), handoffs=[given]), None


ORIGINS: dict[str, Callable[[Raise, Wrap], tuple[Agent[Any], Any]]] = {
    made.__name__: made
    for made in (
        in_function,
        in_invoker,
        in_function_with_timeout,
        in_function_whose_failures_are_told,
        in_tool_guardrail,
        in_approval,
        in_tool_hook,
        in_model_hook,
        in_nested_agent,
        in_nested_agent_that_fails,
        in_nested_agent_whose_failures_are_told,
        in_shell,
        in_shell_approval,
        in_custom,
        in_patch,
        in_model,
        in_handoff,
    )
}
