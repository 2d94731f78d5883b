"""Details of the Agents SDK that nobody promised us: one test for each, and what breaks when it changes."""

import asyncio
import copy
import dataclasses
from typing import Any

import agents
import pytest
from agents import (
    Agent,
    Handoff,
    ModelSettings,
    Runner,
    SQLiteSession,
    ToolOutputText,
    UserError,
    function_tool,
    handoff,
)
from agents.run_state import RunState
from agents.testing import ScriptedModel
from agents.tool_context import ToolContext
from agents.util._approvals import evaluate_function_tool_approval
from openai.types.responses import Response, ResponseCompletedEvent, ResponseTextDeltaEvent

from gnl_openai_agents import private
from gnl_openai_agents.models import journaled_model
from tests.openai_agents.scripted import QUIET, agent, call, model, said, turns


def context_of(tool: Any, arguments: str = "{}") -> ToolContext[Any]:
    return ToolContext(context=None, tool_name=tool.name, tool_call_id="c1", tool_arguments=arguments)


def test_failures_are_answered_by_one_class_of_invokers():
    """``_FailureHandlingFunctionToolInvoker``: else failures of function tools escape as errors, or approvals see less."""

    @function_tool
    def act() -> str:
        raise ValueError("boom")

    invoker = act.on_invoke_tool

    assert isinstance(invoker, private._FailureHandlingFunctionToolInvoker)
    assert callable(invoker._invoke_tool_impl)
    assert callable(invoker._on_handled_error)
    assert "error occurred" in asyncio.run(invoker(context_of(act), "{}"))
    with pytest.raises(ValueError, match="boom"):
        asyncio.run(private.invoke(private.raising(act), context_of(act), "{}"))


def test_an_invoker_is_bound_to_each_copy_of_its_tool():
    """``__agents_bind_function_tool__``: else a copy of a journalled tool answers failures as another tool would."""

    @function_tool
    def act() -> str:
        return "ok"

    async def journaled(context: Any, arguments: str) -> Any:
        return "journalled"

    journaled_tool = private.journaled_copy(act, journaled)
    copied = copy.copy(journaled_tool)

    assert journaled_tool.on_invoke_tool._function_tool is journaled_tool
    assert copied.on_invoke_tool._function_tool is copied
    assert asyncio.run(copied.on_invoke_tool(context_of(copied), "{}")) == "journalled"


def test_approvals_inspect_arguments_of_that_class_alone():
    """``evaluate_function_tool_approval``: else arguments that a policy never saw run without an approval (trap A)."""
    asked: list[Any] = []

    async def needs(context: Any, arguments: Any, call_id: str) -> bool:
        asked.append(arguments)
        return False

    @function_tool(needs_approval=needs, strict_mode=False)
    def act(order: str = "7") -> str:
        return order

    async def journaled(context: Any, arguments: str) -> Any:
        return "journalled"

    for tool in (act, private.journaled_copy(act, journaled)):
        found = asyncio.run(evaluate_function_tool_approval(tool, context_of(tool), "{}", "c1"))
        assert found.outcome == "require_approval"
    assert asked == []


def test_synchronous_tools_are_marked():
    """``__agents_sync_function_tool__``: else a thread that outlives its cancelled call leaves an unknown outcome."""

    @function_tool
    def in_thread() -> str:
        return "ok"

    @function_tool
    async def in_loop() -> str:
        return "ok"

    assert private.runs_in_thread(in_thread)
    assert not private.runs_in_thread(in_loop)


@pytest.mark.parametrize("noted", [True, False])
def test_a_default_answer_is_noted_on_the_context(monkeypatch, noted):
    """``_function_tool_default_failure_handled``: else the text of a timeout is checked against an output schema."""

    @dataclasses.dataclass
    class Parcel:
        weight: int

    @function_tool(timeout=0.01, output_type=Parcel)
    async def slow() -> Parcel:
        await asyncio.sleep(5)
        return Parcel(3)

    async def journaled(context: Any, arguments: str) -> Any:
        return await private.invoke(private.raising(slow), context, arguments)

    asking = agent(turns([call("slow")], [said()]), private.journaled_copy(slow, journaled))
    if not noted:
        monkeypatch.setattr(private, "_DEFAULT_FAILURE_HANDLED_ATTR", "_another_name")
        with pytest.raises(UserError, match="does not match its declared output schema"):
            asyncio.run(Runner.run(asking, "go", run_config=QUIET))
        return
    result = asyncio.run(Runner.run(asking, "go", run_config=QUIET))

    assert "timed out" in result.to_input_list()[2]["output"]


def test_a_tool_knows_the_type_of_its_output():
    """``_output_type_adapter``: else a typed output is recorded as text, which the SDK refuses."""

    @function_tool(output_type=ToolOutputText)
    def typed() -> ToolOutputText:
        return ToolOutputText(text="hi")

    adapter = private.output_type_of(typed)

    assert adapter is not None
    assert adapter.validate_python({"type": "text", "text": "hi"}) == ToolOutputText(text="hi")
    assert private.output_type_of(function_tool(lambda: "x", name_override="act")) is None


def test_a_tool_knows_its_function():
    """``FunctionTool.__wrapped__``: else a label under ``function_tool`` is not found."""

    def act() -> str:
        return "ok"

    assert private.function_of(function_tool(act)) is act


def test_a_tool_knows_the_agent_that_it_runs():
    """``_agent_instance`` and ``_is_agent_tool``: else an agent as a tool is one step, and asks for a label."""
    inner = agent(turns([said()]), name="Inner")

    assert private.agent_of(inner.as_tool("ask", "Asks.")) is inner
    assert private.agent_of(function_tool(lambda: "x", name_override="act")) is None


def test_a_nested_agent_that_stopped_is_found_by_its_call():
    """``peek_agent_tool_run_result`` and its kin: else a nested agent's missing result is recorded as one."""
    acting = function_tool(lambda: "x", name_override="act", needs_approval=True)
    inner = agent(turns([call("act")], [said()]), acting, name="Inner")
    tool, seen = inner.as_tool("ask", "Asks."), []

    async def journaled(context: Any, arguments: str) -> Any:
        output = await private.invoke(tool, context, arguments)
        seen.append(private.waits_for_approval(context))
        private.forget_waiting(context)
        seen.append(private.waits_for_approval(context))
        return output

    outer = agent(turns([call("ask", input="go")], [said()]), private.journaled_copy(tool, journaled))

    asyncio.run(Runner.run(outer, "go", run_config=QUIET))

    assert seen == [True, False]


def test_a_handoff_refers_to_its_target():
    """``_agent_ref``: else a state that was saved behind a handoff cannot be loaded (trap C)."""
    target = agent(turns([said()]), name="B")

    made = handoff(target)

    assert private.target_of(made) is target
    assert private.target_of(dataclasses.replace(made)) is None
    assert "_agent_ref" in {field.name for field in dataclasses.fields(Handoff)}


def test_a_state_knows_its_agents_and_replies():
    """``_starting_agent``, ``_current_agent``, ``_model_responses``: else a bare agent's state runs past the journal."""
    begun = agent(turns([said()]))
    state = asyncio.run(Runner.run(begun, "go", run_config=QUIET)).to_state()

    assert isinstance(state, RunState)
    assert private.agents_in(state) == (begun, begun)
    assert private.replies_in(state) == 1


def test_models_are_told_that_a_run_has_ended():
    """``Model._cleanup_on_run_end``: else connections that a model holds for a run stay open."""
    told: list[Any] = []

    class Holding(ScriptedModel):
        async def _cleanup_on_run_end(self, owner: object) -> None:
            told.append(owner)

    journaled = journaled_model(Holding([[said()]]), "passthrough")

    asyncio.run(Runner.run(Agent(name="A", model=journaled), "go", run_config=QUIET))

    assert len(told) == 1


def test_a_streamed_run_can_be_shown_before_it_begins():
    """``RunResultStreaming``'s constructor: else a run that waits for another worker cannot be streamed."""
    begun = agent(turns([said()]))

    async def go() -> Any:
        return private.not_begun(begun, "go", {"user": 7}, 9)

    shown = asyncio.run(go())

    assert (shown.final_output, shown.new_items, shown.is_complete) == (None, [], False)
    assert (shown.last_agent, shown.context_wrapper.context) == (begun, {"user": 7})
    assert (shown.run_loop_exception, shown.interruptions) == (None, [])


def test_sessions_say_what_they_want():
    """``_session_accepts_wrapper`` and compaction: else a session misses its context, or is rewritten past the journal."""

    class Telling(SQLiteSession):
        async def get_items(self, limit: int | None = None, *, wrapper: Any = None) -> Any:
            return []

        async def add_items(self, items: Any, *, wrapper: Any = None) -> None: ...

        async def pop_item(self, *, wrapper: Any = None) -> Any: ...

        async def clear_session(self, *, wrapper: Any = None) -> None: ...

    for kind, takes in ((SQLiteSession, False), (Telling, True)):
        session = kind("s")
        assert private.takes_wrapper(session) is takes
        assert not private.compacts(session)
        session.close()


def test_events_are_a_union_of_classes_by_type():
    """``ResponseStreamEvent``: else replayed events are of the wrong class, and the SDK finds no end."""
    found = private.event_types()

    assert found["response.completed"] is ResponseCompletedEvent
    assert found["response.output_text.delta"] is ResponseTextDeltaEvent


def test_the_client_notes_the_request_id_on_a_response():
    """``_request_id`` and ``_agents_sdk_raw_usage``: else a replayed stream has neither."""
    response = Response.construct(id="r", output=[])

    private.put_notes(response, {private.REQUEST_ID: "q1", private.RAW_USAGE: {"total": 3}})

    assert response._request_id == "q1"
    assert private.noted_on_response(response) == {private.REQUEST_ID: "q1", private.RAW_USAGE: {"total": 3}}
    assert agents.usage._RAW_USAGE_ATTRIBUTE == private.RAW_USAGE


def test_a_dynamic_subclass_of_an_agent_is_asked_for_its_tools():
    """``Agent.get_mcp_tools`` is called by ``get_all_tools``, and that by the run: else tools of MCP servers escape."""
    seen: list[str] = []

    class Listening(Agent):
        async def get_mcp_tools(self, context: Any) -> list[Any]:
            seen.append("mcp")
            return await super().get_mcp_tools(context)

        async def get_all_tools(self, context: Any) -> list[Any]:
            seen.append("all")
            return await super().get_all_tools(context)

    listening = Listening(name="A", model=agent(turns([call("x")], [said()])).model)
    listening.tools = [function_tool(lambda: "ok", name_override="x")]

    asyncio.run(Runner.run(listening, "go", run_config=QUIET))

    assert set(seen) == {"all", "mcp"}


def test_a_state_that_is_put_together_is_one_that_the_sdk_has_come_to():
    """``RunState`` and what the SDK notes of each turn: else a run that is handed over would end otherwise."""

    @function_tool
    def look(at: str) -> str:
        return f"{at} is fine"

    def looking() -> Agent[Any]:
        script = turns(
            [said("First."), call("look", "call_1", at="a")], [call("look", "call_2", at="b")], [said()]
        )
        settings = ModelSettings(tool_choice="required")
        return Agent(name="A", model=model(script), tools=[look], model_settings=settings)

    whole = asyncio.run(Runner.run(looking(), "go", run_config=QUIET))
    resumed = looking()
    begun = private.Begun(resumed, "go", {})
    items, called = begun.items_of(whole.raw_responses[0])
    begun.add(whole.raw_responses[0], [*items, begun.result(called[0], "a is fine")], called)
    went_on = asyncio.run(Runner.run(resumed, begun.state(), run_config=QUIET))

    assert len(resumed.model.calls) == 2
    assert [each.model_settings.tool_choice for each in resumed.model.calls] == [None, None]
    assert went_on.to_input_list() == whole.to_input_list()
    assert went_on.context_wrapper.usage == whole.context_wrapper.usage
    states = [each.to_state().to_json() for each in (went_on, whole)]
    assert {**states[0], "trace": None} == {**states[1], "trace": None}
