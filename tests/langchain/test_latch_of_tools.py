"""Control errors inside tools: whatever swallows them, the model never hears of it and the caller gets them (DESIGN 3.6)."""

from collections.abc import Callable
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, ToolRetryMiddleware
from langchain.agents.middleware.tool_error import ToolErrorMiddleware
from langchain_core.messages import ToolMessage
from langchain_core.tools import StructuredTool
from langgraph.errors import GraphBubbleUp, NodeError
from langgraph.func import entrypoint, task
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import RetryPolicy

from gnl_langchain import JournalMiddleware, journaled_model
from tests.langchain.driving import WAYS, drive
from tests.langchain.scripted import ScriptedModel, calling, said, turns
from tests.langchain.troubles import TROUBLES, Trouble

RETRIES = {"max_retries": 2, "initial_delay": 0, "jitter": False}


def tool_of(body: Callable[[], str]) -> StructuredTool:
    """A tool with a synchronous and an asynchronous body."""

    async def act_async() -> str:
        return body()

    return StructuredTool.from_function(body, act_async, name="act", description="Act.")


def careful(trouble: Trouble) -> str:
    try:
        return trouble.act()
    except Exception as error:  # noqa: BLE001
        return f"sorry: {error}"


def agent_with(*middleware: Any) -> Callable[[ScriptedModel, Trouble], Any]:
    return lambda model, trouble: create_agent(
        model, [tool_of(trouble.act)], middleware=[*middleware, JournalMiddleware(safe=["act"])]
    )


def recovering(state: MessagesState, error: NodeError) -> dict[str, Any]:
    return {"messages": [("ai", f"recovered from {error}")]}


def graph_with(handle_tool_errors: Any, **node_options: Any) -> Callable[[ScriptedModel, Trouble], Any]:
    """A hand-written graph around a ToolNode that turns errors into messages."""

    def build(model: ScriptedModel, trouble: Trouble) -> Any:
        journaling, asked = JournalMiddleware(safe=["act"]), journaled_model(model)
        tools = ToolNode(
            [tool_of(trouble.act)],
            handle_tool_errors=handle_tool_errors,
            wrap_tool_call=journaling.wrap_tool_call,
            awrap_tool_call=journaling.awrap_tool_call,
        )
        graph = StateGraph(MessagesState)
        graph.add_node("model", lambda state: {"messages": [asked.invoke(state["messages"])]})
        graph.add_node("tools", tools, **node_options)
        graph.add_edge(START, "model")
        graph.add_conditional_edges(
            "model", lambda state: "tools" if state["messages"][-1].tool_calls else END
        )
        graph.add_edge("tools", "model")
        return graph.compile()

    return build


def agent_that_handles_tool_errors(model: ScriptedModel, trouble: Trouble) -> Any:
    tool = tool_of(trouble.act)
    tool.handle_tool_error = True
    return create_agent(model, [tool], middleware=[JournalMiddleware(safe=["act"])])


def agent_with_careless_tool(model: ScriptedModel, trouble: Trouble) -> Any:
    tool = tool_of(lambda: careful(trouble))
    return create_agent(model, [tool], middleware=[JournalMiddleware(safe=["act"])])


class CarelessMiddleware(AgentMiddleware):
    """Turns any exception of a tool into an answer."""

    def wrap_tool_call(self, request: Any, handler: Any) -> Any:
        try:
            return handler(request)
        except Exception as error:  # noqa: BLE001
            return ToolMessage(f"sorry: {error}", tool_call_id=request.tool_call["id"])

    async def awrap_tool_call(self, request: Any, handler: Any) -> Any:
        try:
            return await handler(request)
        except Exception as error:  # noqa: BLE001
            return ToolMessage(f"sorry: {error}", tool_call_id=request.tool_call["id"])


def agent_with_fallback(model: ScriptedModel, trouble: Trouble) -> Any:
    return agent_with()(model, trouble).with_fallbacks([agent_with()(model, trouble)])


def program_of_tasks(model: ScriptedModel, trouble: Trouble) -> Any:
    """The functional API: a task whose errors the program catches."""
    agent = agent_with()(model, trouble)
    answering = task(lambda request: agent.invoke(request))  # noqa: PLW0108 - LangGraph warns of the method itself

    @entrypoint()
    def program(request: dict[str, Any]) -> dict[str, Any]:
        try:
            return answering(request).result()
        except Exception as error:  # noqa: BLE001
            return {"messages": [("ai", f"sorry: {error}")]}

    return program


CATCHERS: dict[str, Callable[[ScriptedModel, Trouble], Any]] = {
    "create_agent": agent_with(),
    "ToolNode-True": graph_with(True),
    "ToolNode-text": graph_with("Something went wrong."),
    "ToolNode-types": graph_with((ValueError,)),
    "ToolNode-function": graph_with(lambda error: f"sorry: {error}"),
    "ToolRetry-continue": agent_with(ToolRetryMiddleware(on_failure="continue", **RETRIES)),
    "ToolRetry-error": agent_with(ToolRetryMiddleware(on_failure="error", **RETRIES)),
    "ToolError": agent_with(ToolErrorMiddleware(lambda error, request: f"sorry: {error}")),
    "handle_tool_error": agent_that_handles_tool_errors,
    "except-Exception": agent_with_careless_tool,
    "except-Exception-around": agent_with(CarelessMiddleware()),
    "agent.with_fallbacks": agent_with_fallback,
    "RetryPolicy": graph_with(
        False, retry_policy=RetryPolicy(max_attempts=3, initial_interval=0, jitter=False, retry_on=Exception)
    ),
    "error_handler": graph_with(False, error_handler=recovering),
    "functional-API": program_of_tasks,
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("catcher", CATCHERS)
@pytest.mark.parametrize("trouble_type", TROUBLES, ids=lambda kind: kind.__name__)
def test_the_caller_gets_the_error_and_the_model_never_hears_of_it(
    journal, tmp_path, trouble_type, catcher, way
):
    """A control error in a tool ends the attempt, as itself, however often something catches it on the way out."""
    model = ScriptedModel(script=turns(calling("act"), said(), said()))
    trouble = trouble_type(journal, tmp_path / "runs.db")
    agent = CATCHERS[catcher](model, trouble)
    trouble.prepare(agent)

    with pytest.raises(trouble.error.__base__) as caught:
        drive(journal, agent, way, **trouble.options)

    assert type(caught.value) is trouble.error
    assert isinstance(caught.value, GraphBubbleUp)
    assert [len(request) for request in model.asked] == [1]
    assert trouble.bodies <= 1
