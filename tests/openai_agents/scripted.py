"""A model that answers from a script and remembers every request, and what tests count with."""

import json
from collections.abc import Callable, Sequence
from typing import Any

from agents import Agent, FunctionTool, RunConfig, function_tool
from agents.testing import ModelStep, ScriptedModel, assistant_message, function_call

from tests.worlds import Log

QUIET = RunConfig(tracing_disabled=True)
QUESTION = "please refund order 7"

Script = Callable[[list[dict[str, Any]]], Any]


def items(call: Any) -> list[dict[str, Any]]:
    """The items of a recorded request."""
    if isinstance(call.input, str):
        return [{"role": "user", "content": call.input}]
    return [item if isinstance(item, dict) else item.model_dump() for item in call.input]


def model(script: Script, *, bill: Log | None = None, times: int = 60) -> ScriptedModel:
    """A model whose replies follow from the items that it is given."""

    def respond(call: Any) -> Any:
        given = items(call)
        if bill is not None:
            bill.add(f"model {len(given)}")
        return script(given)

    return ScriptedModel([ModelStep.respond(respond)] * times)


def turns(*replies: Any) -> Script:
    """The n-th reply after n answers of tools."""

    def script(given: Sequence[dict[str, Any]]) -> Any:
        answered = len([item for item in given if str(item.get("type", "")).endswith("_output")])
        before = 0
        for reply in replies:
            size = len([item for item in reply if getattr(item, "call_id", None)])
            if answered <= before:
                return reply
            before += size
        return replies[-1]

    return script


def call(name: str, call_id: str | None = None, **arguments: Any) -> Any:
    return function_call(name, arguments, call_id=call_id or f"call_{name}")


def said(text: str = "Done.") -> Any:
    return assistant_message(text)


def effect_tool(log: Log, name: str = "refund", **options: Any) -> FunctionTool:
    """A tool with a side effect."""

    def body(order: str) -> str:
        log.add(f"{name} {order}")
        return f"{name} ok {order}"

    return function_tool(body, name_override=name, **options)


def agent(script: Script, *tools: Any, name: str = "A", **options: Any) -> Agent[Any]:
    return Agent(name=name, model=model(script), tools=list(tools), **options)


def outputs(result: Any) -> list[str]:
    """What happened, in short: the texts and calls of a result."""
    found: list[str] = []
    for item in result.to_input_list():
        kind = item.get("type", "message")
        if kind == "function_call":
            found.append(f"call {item['name']} {json.loads(item['arguments'])}")
        elif kind == "function_call_output":
            found.append(f"output {item['output']}")
        else:
            content = item.get("content")
            found.append(content if isinstance(content, str) else "".join(part["text"] for part in content))
    return found
