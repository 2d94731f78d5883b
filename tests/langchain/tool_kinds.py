"""Tools of every kind that LangChain knows; each counts its runs."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

from langchain.agents import AgentState
from langchain.tools import InjectedState, ToolRuntime
from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool, InjectedToolCallId, StructuredTool, ToolException, tool
from langgraph.types import Command

from tests.worlds import Log


class TicketState(AgentState):
    """An agent's state with a key that tools write to."""

    ticket: str


def plain(effects: Log) -> Any:
    def act(order: int) -> str:
        """Act."""
        effects.add("ran")
        return f"plain {order}"

    return act


def structured(effects: Log) -> Any:
    @tool
    def act(order: int) -> dict[str, Any]:
        """Act."""
        effects.add("ran")
        return {"order": order, "lines": [1, 2.5, None, "zwölf"]}

    return act


def asynchronous(effects: Log) -> Any:
    @tool
    async def act(order: int) -> str:
        """Act."""
        effects.add("ran")
        return f"asynchronous {order}"

    return act


def both(effects: Log) -> Any:
    def act(order: int) -> str:
        effects.add("ran")
        return f"both {order}"

    async def act_async(order: int) -> str:
        effects.add("ran")
        return f"both {order}"

    return StructuredTool.from_function(act, act_async, description="Act.")


def with_state(effects: Log) -> Any:
    @tool
    def act(order: int, state: Annotated[dict[str, Any], InjectedState]) -> str:
        """Act."""
        effects.add("ran")
        return f"state of {len(state['messages'])} messages, order {order}"

    return act


def with_call_id(effects: Log) -> Any:
    @tool
    def act(order: int, call_id: Annotated[str, InjectedToolCallId]) -> str:
        """Act."""
        effects.add("ran")
        return f"{call_id} {order}"

    return act


def with_runtime(effects: Log) -> Any:
    @tool
    def act(order: int, runtime: ToolRuntime) -> str:
        """Act."""
        effects.add("ran")
        return f"{runtime.tool_call_id} {len(runtime.state['messages'])} {order}"

    return act


def with_artifact(effects: Log) -> Any:
    @tool(response_format="content_and_artifact")
    def act(order: int) -> tuple[str, Any]:
        """Act."""
        effects.add("ran")
        return f"see the artifact of {order}", {"raw": b"\x00\xff", "pair": (1, "two"), "set": {3}}

    return act


def content_blocks(effects: Log) -> Any:
    @tool
    def act(order: int) -> list[Any]:
        """Act."""
        effects.add("ran")
        return [
            {"type": "text", "text": f"order {order}"},
            {"type": "image_url", "image_url": {"url": "data:,"}},
        ]

    return act


def whole_message(effects: Log) -> Any:
    @tool
    def act(order: int, call_id: Annotated[str, InjectedToolCallId]) -> ToolMessage:
        """Act."""
        effects.add("ran")
        return ToolMessage(f"whole {order}", tool_call_id=call_id, status="error", artifact=[order])

    return act


def command(effects: Log) -> Any:
    @tool
    def act(order: int, call_id: Annotated[str, InjectedToolCallId]) -> Command:
        """Act."""
        effects.add("ran")
        answer = ToolMessage(f"opened {order}", tool_call_id=call_id)
        return Command(update={"messages": [answer], "ticket": f"T-{order}"})

    return act


def commands(effects: Log) -> Any:
    @tool
    def act(order: int, call_id: Annotated[str, InjectedToolCallId]) -> list[Any]:
        """Act."""
        effects.add("ran")
        return [
            Command(update={"ticket": f"T-{order}"}),
            ToolMessage(f"opened {order}", tool_call_id=call_id),
        ]

    return act


def direct(effects: Log) -> Any:
    @tool(return_direct=True)
    def act(order: int) -> str:
        """Act."""
        effects.add("ran")
        return f"direct {order}"

    return act


def error_as_text(effects: Log) -> Any:
    @tool
    def act(order: int) -> str:
        """Act."""
        effects.add("ran")
        raise ToolException(f"no order {order}")

    act.handle_tool_error = True
    return act


def error_as_function(effects: Log) -> Any:
    made = error_as_text(effects)
    made.handle_tool_error = lambda error: f"handled: {error}"
    return made


class Act(BaseTool):
    """A tool written as a class."""

    name: str = "act"
    description: str = "Act."
    effects: Any

    def _run(self, order: int) -> str:
        self.effects.add("ran")
        return f"class {order}"

    async def _arun(self, order: int) -> str:
        self.effects.add("ran")
        return f"class {order}"


def subclass(effects: Log) -> Any:
    return Act(effects=effects)


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of tool.

    Attributes:
        make: The tool, from the log that it counts its runs in.
        only_async: It has no synchronous form.
    """

    make: Callable[[Log], Any]
    only_async: bool = False


KINDS: dict[str, Kind] = {
    "function": Kind(plain),
    "structured": Kind(structured),
    "async": Kind(asynchronous, only_async=True),
    "sync-and-async": Kind(both),
    "InjectedState": Kind(with_state),
    "InjectedToolCallId": Kind(with_call_id),
    "ToolRuntime": Kind(with_runtime),
    "content_and_artifact": Kind(with_artifact),
    "content-blocks": Kind(content_blocks),
    "ToolMessage": Kind(whole_message),
    "Command": Kind(command),
    "list-of-Command-and-ToolMessage": Kind(commands),
    "return_direct": Kind(direct),
    "handle_tool_error": Kind(error_as_text),
    "handle_tool_error-function": Kind(error_as_function),
    "BaseTool": Kind(subclass),
}
