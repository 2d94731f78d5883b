"""An agent as a tool is a scope of its own: entered again after a crash, its finished steps are read back."""

import asyncio
from typing import Any

import pytest
from agents import Agent, function_tool

from gnl_middleware import never, safe
from gnl_openai_agents import DurableRunner
from tests.openai_agents.driving import run
from tests.openai_agents.scripted import QUIET, agent, call, effect_tool, said, turns
from tests.worlds import Log


def family(
    runner: DurableRunner, effects: Log, *, stop: Any = None, **options: Any
) -> tuple[Agent[Any], ...]:
    """An agent whose tool is an agent whose tool is an agent that acts."""
    acting = effect_tool(effects) if stop is None else stop
    inner = agent(turns([call("refund", order="7")], [said("inner done")]), acting, name="Inner")
    middle_tool = runner.wrap(inner).as_tool("inner", "Acts.", **options)
    middle = agent(turns([call("inner", input="go")], [said("middle done")]), middle_tool, name="Middle")
    outer_tool = runner.wrap(middle).as_tool("middle", "Asks.", **options)
    outer = agent(turns([call("middle", input="go")], [said()]), outer_tool, name="Outer")
    return outer, middle, inner


def asked(agents: tuple[Agent[Any], ...]) -> list[int]:
    """How often each agent's model was asked; a journalled copy of an agent shares its model."""
    return [len(each.model.calls) for each in agents]


def test_two_levels_deep(journal, effects, durable):
    """Each level's steps are in the scope of the step around them, and a second run reads all of them back."""
    runner = DurableRunner(journal, policies={"refund": never})
    first = family(runner, effects)
    durable(runner, first[0], "go", run_id="order-7")
    again = family(runner, effects)

    result = durable(runner, again[0], "go", run_id="order-7", offline=True)

    assert result.final_output == "Done."
    assert (asked(first), asked(again), effects.lines()) == ([2, 2, 2], [0, 0, 0], ["refund 7"])
    scopes = [step.scope for step in journal.steps("order-7") if step.kind == "model"]
    assert [scope.count("/") > 0 for scope in scopes] == [False, True, True, True, True, False]
    assert scopes[2].startswith(scopes[1])


def test_its_usage_counts(journal, effects):
    """What a nested agent's models used is part of the run's usage, also where its result is read back."""
    runner = DurableRunner(journal, policies={"refund": never})
    first = run(runner, family(runner, effects)[0], "go", run_id="order-7")

    again = run(runner, family(runner, effects)[0], "go", run_id="order-7", offline=True)

    assert first.context_wrapper.usage.requests == again.context_wrapper.usage.requests
    assert first.context_wrapper.usage.total_tokens == again.context_wrapper.usage.total_tokens


def test_a_failure_inside_goes_on_where_it_was(journal, effects):
    """A run that died inside the innermost tool's model turn repeats neither the tool nor a finished reply."""
    runner = DurableRunner(journal, policies={"refund": never})
    first = family(runner, effects, failure_error_function=None)
    replies = iter([[call("refund", order="7")], ConnectionError("the provider is down")])
    first[2].model._steps.clear()
    for reply in replies:
        first[2].model.enqueue(reply)
    with pytest.raises(Exception, match="provider"):
        run(runner, first[0], "go", run_id="order-7")
    again = family(runner, effects)

    result = run(runner, again[0], "go", run_id="order-7")

    assert result.final_output == "Done."
    assert (asked(again), effects.lines()) == ([1, 1, 1], ["refund 7"])


def test_an_agent_that_is_not_wrapped_is_one_step(journal, effects):
    """Trap E: the tool holds the agent as it was; it needs a label, and a warning says so."""
    inner = agent(
        turns([call("refund", order="7")], [said("inner done")]), effect_tool(effects), name="Inner"
    )
    outer = agent(turns([call("ask", input="go")], [said()]), inner.as_tool("ask", "Asks."))
    runner = DurableRunner(journal, policies={"ask": never})

    with pytest.warns(UserWarning, match="runner.wrap"):
        result = run(runner, outer, "go", run_id="order-7")

    assert (result.final_output, effects.lines()) == ("Done.", ["refund 7"])
    assert [step.name for step in journal.steps("order-7") if step.kind == "tool"] == ["ask"]


def test_the_hooks_of_a_nested_agent_refuse_what_escaped(journal, effects):
    """The SDK does not hand hooks on to nested agents: a tool that escaped wrapping is refused there all the same."""

    class Sneaky(Agent):
        async def get_all_tools(self, context: Any) -> list[Any]:
            return [*await super().get_all_tools(context), function_tool(lambda: "x", name_override="late")]

    runner = DurableRunner(journal)
    inner = Sneaky(name="Inner", model=agent(turns([call("late")], [said()])).model)
    outer = agent(turns([call("ask", input="go")], [said()]), runner.wrap(inner).as_tool("ask", "Asks."))

    with pytest.raises(Exception, match="late") as raised:
        run(runner, outer, "go", run_id="order-7")

    assert type(raised.value).__name__ == "UnlabelledToolError"


def test_parallel_agents_keep_apart(journal, effects):
    """Two calls of an agent in one reply have scopes of their own, in whatever order they end."""
    runner = DurableRunner(journal, policies={"refund": never})

    def build() -> Agent[Any]:
        inner = agent(
            turns([call("refund", order="7")], [said("inner done")]), effect_tool(effects), name="Inner"
        )
        tool = runner.wrap(inner).as_tool("ask", "Asks.")
        both = [call("ask", f"call_{place}", input="go") for place in range(2)]
        return agent(turns(both, [said()]), tool)

    run(runner, build(), "go", run_id="order-7")
    again = build()

    assert run(runner, again, "go", run_id="order-7", offline=True).final_output == "Done."
    assert effects.lines() == ["refund 7"] * 2
    assert len(again.model.calls) == 0


def test_a_runner_inside_a_tool_joins_the_run(journal, effects):
    """A tool that runs an agent itself, without a run id, journals it inside its own step."""
    runner = DurableRunner(journal, policies={"refund": never, "delegate": safe})

    def build() -> Agent[Any]:
        inner = agent(turns([call("refund", order="7")], [said("inner done")]), effect_tool(effects))

        @function_tool
        async def delegate() -> str:
            return (await runner.run(inner, "go", run_config=QUIET)).final_output

        return agent(turns([call("delegate")], [said()]), delegate)

    assert run(runner, build(), "go", run_id="order-7").final_output == "Done."
    assert run(runner, build(), "go", run_id="order-7", offline=True).final_output == "Done."
    assert effects.lines() == ["refund 7"]


def test_a_handoff_chain_goes_in_a_circle(journal, effects, durable):
    """Agents that hand off to each other in a circle are wrapped once each, and a finished run is read back."""
    runner = DurableRunner(journal, policies={"refund": never})

    def build() -> tuple[Agent[Any], ...]:
        back = turns([call("transfer_to_b", "h1")], [call("refund", order="7")], [said()])

        def first(given: Any) -> Any:
            answered = [item for item in given if item.get("type") == "function_call_output"]
            if len(answered) < 2:
                return back(given)
            return [call("refund", order="7")] if len(answered) == 2 else [said()]

        a = agent(first, effect_tool(effects), name="A")
        b = agent(turns([], [call("transfer_to_a", "h2")]), name="B")
        b.model = agent(lambda given: [call("transfer_to_a", "h2")]).model
        a.handoffs, b.handoffs = [b], [a]
        return a, b

    first = build()
    result = durable(runner, first[0], "go", run_id="order-7")
    again = build()
    ended = durable(runner, again[0], "go", run_id="order-7", offline=True)

    assert result.final_output == ended.final_output == "Done."
    assert result.last_agent.name == "A"
    assert (asked(first), asked(again), effects.lines()) == ([3, 1], [0, 0], ["refund 7"])
    assert first[0].handoffs == [first[1]]


def test_agents_run_beside_each_other_in_named_scopes(journal, effects):
    """Two agents at once in one run are told apart by the names of their scopes."""
    runner = DurableRunner(journal, default_policy=never)

    def build(order: str) -> Agent[Any]:
        return agent(turns([call("refund", order=order)], [said(f"Done {order}.")]), effect_tool(effects))

    async def both(run_: Any) -> list[str]:
        async def one(order: str) -> str:
            with run_.scope(order):
                return (await runner.run(build(order), "go", run_config=QUIET)).final_output

        return await asyncio.gather(one("1"), one("2"))

    for _ in range(2):

        async def attempt() -> list[str]:
            async with journal.run("order-7") as run_:
                return await both(run_)

        assert asyncio.run(attempt()) == ["Done 1.", "Done 2."]
    assert sorted(effects.lines()) == ["refund 1", "refund 2"]
