"""What the SDK promises beside its results stays as without us: traces, its own view of the tools, the order of things."""

import asyncio
from collections import Counter
from typing import Any

import pytest
from agents import Agent, RunConfig, Runner, function_tool
from agents.testing import ScriptedModel
from agents.tracing import TracingProcessor, set_trace_processors, set_tracing_disabled

from gnl_middleware import SideEffectRetryBlockedError, never, safe
from gnl_openai_agents import DurableRunner
from tests.openai_agents.driving import WAYS, run
from tests.openai_agents.scripted import agent, call, effect_tool, said, turns


class Noting(TracingProcessor):
    """Notes the spans of traces."""

    def __init__(self) -> None:
        self.spans: list[tuple[Any, ...]] = []

    def on_trace_start(self, trace: Any) -> None: ...

    def on_trace_end(self, trace: Any) -> None:
        self.spans.append(("trace", trace.name))

    def on_span_start(self, span: Any) -> None: ...

    def on_span_end(self, span: Any) -> None:
        told = {
            name: span.span_data.export().get(name) for name in ("type", "name", "input", "output", "tools")
        }
        self.spans.append((tuple(told.items()), span.error))

    def shutdown(self) -> None: ...

    def force_flush(self) -> None: ...


@pytest.fixture
def traced():
    """What the SDK traces while a test runs."""
    noting = Noting()
    set_tracing_disabled(False)
    set_trace_processors([noting])
    yield noting
    set_trace_processors([])
    set_tracing_disabled(True)


def test_traces_are_the_same(journal, effects, traced):
    """Agents, tools, handoffs and failures appear in a trace as without us.

    When the run is read back they appear again, but for what happened inside a nested agent: its result is one record.
    """

    def build(wrap: Any) -> Agent[Any]:
        @function_tool
        def fails() -> str:
            raise ValueError("no such order")

        inner = wrap(agent(turns([said("inner")]), name="Inner"))
        behind = agent(turns([call("x")], [call("x")], [call("x")], [said()]), name="B")
        script = turns(
            [call("refund", order="7"), call("fails"), call("ask", input="go")], [call("transfer_to_b", "h")]
        )
        return agent(script, effect_tool(effects), fails, inner.as_tool("ask", "Asks."), handoffs=[behind])

    asyncio.run(Runner.run(build(lambda given: given), "go", run_config=RunConfig(workflow_name="desk")))
    without, traced.spans = traced.spans, []
    runner = DurableRunner(journal, default_policy=never)
    for inside in (0, 3):
        options = {"run_id": "order-7", "run_config": RunConfig(workflow_name="desk")}
        asyncio.run(runner.run(build(runner.wrap), "go", **options))
        found, expected = Counter(map(repr, traced.spans)), Counter(map(repr, without))
        assert not found - expected
        assert (expected - found).total() == inside
        traced.spans = []


def test_journalled_tools_stand_in_the_agents_own_list(journal, effects):
    """Trap D: a state that goes on from an approval compares its tools with the agent's list."""
    runner = DurableRunner(journal, default_policy=never)
    tool = effect_tool(effects, needs_approval=True)

    wrapped = runner.wrap(agent(turns([said()]), tool))
    listed = asyncio.run(wrapped.get_all_tools(None))

    assert [id(each) for each in listed] == [id(each) for each in wrapped.tools]
    assert wrapped.tools[0] is not tool


def test_a_model_in_the_run_config_of_an_agent_as_tool_is_journalled(journal, effects):
    """Trap D: ``as_tool(run_config=...)`` brings a model of its own; it is asked once, also where it is given as a dict."""
    runner = DurableRunner(journal, policies={"refund": never})

    def build(model: ScriptedModel, as_dict: bool) -> Agent[Any]:
        inner = Agent(name="Inner", tools=[effect_tool(effects)])
        config: Any = {"model": model, "tracing_disabled": True}
        config = config if as_dict else RunConfig(**config)
        asking = runner.wrap(inner).as_tool("ask", "Asks.", run_config=config)
        return agent(turns([call("ask", input="go")], [said()]), asking)

    for as_dict in (True, False):
        order = f"order-{as_dict}"
        for times in (2, 0):
            model = ScriptedModel([[call("refund", order="7")], [said("inner")]])
            assert run(runner, build(model, as_dict), "go", run_id=order).final_output == "Done."
            assert len(model.calls) == times
    assert effects.lines() == ["refund 7"] * 2


@pytest.mark.parametrize("way", ["run", "run_streamed"])
def test_the_calls_of_a_recorded_reply_are_checked_before_one_starts(journal, effects, way):
    """Where one call of a reply may have happened, its siblings are not even started, on no attempt."""

    class Killed(BaseException):
        pass

    def build(dies: bool) -> Agent[Any]:
        async def mail() -> str:
            if dies:
                await asyncio.sleep(5)
            effects.add("mail started")
            return "ok"

        async def refund() -> str:
            effects.add("refund")
            if dies:
                raise Killed
            return "ok"

        return agent(
            turns([call("mail"), call("refund")], [said()]), function_tool(mail), function_tool(refund)
        )

    runner = DurableRunner(journal, policies={"mail": safe, "refund": never})
    with pytest.raises(Killed):
        WAYS[way](runner, build(True), "go", run_id="order-7")

    for _ in range(2):
        with pytest.raises(SideEffectRetryBlockedError):
            WAYS[way](runner, build(False), "go", run_id="order-7")

    assert effects.lines() == ["refund"]
