"""Names in ``policies=`` that no tool has are refused where that can be known: a typing error would cost a tool its label."""

import asyncio
from typing import Any

import pytest
from agents import Agent, AgentHooks, RunHooks, function_tool, handoff

from gnl_middleware import UnlabelledToolError, never, safe
from gnl_openai_agents import DurableRunner
from tests.openai_agents.driving import run
from tests.openai_agents.mcp import desk_server
from tests.openai_agents.scripted import QUIET, agent, call, effect_tool, said, turns

MISSPELT = {"refnd": never}


def refunding(effects: Any, **options: Any) -> Agent[Any]:
    return agent(turns([call("refund", order="7")], [said()]), effect_tool(effects), **options)


@pytest.mark.parametrize("labelled", [False, True], ids=["by-default", "by-itself"])
def test_a_misspelt_name_is_refused_before_anything_runs(journal, effects, durable, labelled):
    """The tool would have had its other label; the error names what is unknown and the tools that there are."""
    runner = DurableRunner(journal, policies=MISSPELT, default_policy=None if labelled else safe)
    tool = effect_tool(effects)
    asking = agent(turns([call("refund", order="7")], [said()]), safe(tool) if labelled else tool)

    with pytest.raises(ValueError, match=r"\['refnd'\].*\['refund'\].*runner.wrap"):
        durable(runner, asking, "go", run_id="order-7")

    assert (len(asking.model.calls), effects.lines(), journal.runs()) == (0, [], [])


def test_names_of_all_that_can_be_reached_are_known(journal, effects):
    """Tools of agents behind handoffs, of agents as tools, and those agents themselves, may be named."""
    named = {"refund": never, "mail": never, "ask": safe}
    runner = DurableRunner(journal, policies=named)
    inner = runner.wrap(agent(turns([said()]), effect_tool(effects, "mail"), name="Inner"))
    behind = refunding(effects, name="B")
    asking = agent(turns([said()]), inner.as_tool("ask", "Asks."), name="A", handoffs=[handoff(behind)])

    assert run(runner, asking, "go", run_id="order-7").final_output == "Done."


def test_another_agent_of_the_runner_is_made_known_first(journal, effects):
    """A runner of several agents is told of all of them before it runs one: then their tools may be named."""
    runner = DurableRunner(journal, policies={"mail": never}, default_policy=never)
    mailing = agent(turns([call("mail", order="7")], [said()]), effect_tool(effects, "mail"))
    with pytest.raises(ValueError, match="mail"):
        run(runner, refunding(effects), "go", run_id="order-7")
    runner.wrap(mailing)

    run(runner, refunding(effects), "go", run_id="order-7")

    assert effects.lines() == ["refund 7"]


@pytest.mark.parametrize("name", ["refund", "refnd"])
def test_names_of_an_mcp_servers_tools_are_known_once_it_told_them(journal, effects, tmp_path, name):
    """Before its first model call an agent asks its servers; a name that they do not know either is refused then."""
    runner = DurableRunner(journal, policies={name: never}, default_policy=safe)
    asking = agent(turns([call("refund", order="7")], [said()]))

    async def go() -> Any:
        async with desk_server(tmp_path / "server.py", effects.path) as server:
            asking.mcp_servers = [server]
            return await runner.run(asking, "go", run_id="order-7", run_config=QUIET)

    if name == "refund":
        assert asyncio.run(go()).final_output == "Done."
        return
    with pytest.raises(ValueError, match="refnd"):
        asyncio.run(go())
    assert (len(asking.model.calls), effects.lines()) == (0, [])


@pytest.mark.parametrize("name", ["refund", "refnd"])
@pytest.mark.parametrize("whose", ["run", "agent"])
def test_names_of_tools_that_hooks_add_are_known_once_the_agent_started(journal, effects, name, whose):
    """What a hook gives an agent when it starts may be named; a name that is none of these either is refused then."""

    class OfTheRun(RunHooks[Any]):
        async def on_agent_start(self, context: Any, started: Any) -> None:
            started.tools.append(effect_tool(effects))

    class OfTheAgent(AgentHooks[Any]):
        async def on_start(self, context: Any, started: Any) -> None:
            started.tools.append(effect_tool(effects))

    asking = agent(turns([call("refund", order="7")], [said()]))
    options = {"hooks": OfTheRun()} if whose == "run" else {}
    asking.hooks = OfTheAgent() if whose == "agent" else None
    runner = DurableRunner(journal, policies={name: never}, default_policy=safe)

    if name == "refund":
        assert run(runner, asking, "go", run_id="order-7", **options).final_output == "Done."
        return
    with pytest.raises(ValueError, match="refnd"):
        run(runner, asking, "go", run_id="order-7", **options)
    assert (len(asking.model.calls), effects.lines()) == (0, [])


def test_a_subclass_that_gives_tools_of_its_own(journal, effects):
    """Tools that an agent's own class gives may be named, and are known once it gave them."""

    class Giving(Agent):
        async def get_all_tools(self, context: Any) -> list[Any]:
            return [*await super().get_all_tools(context), effect_tool(effects)]

    def build() -> Agent[Any]:
        return Giving(name="A", model=agent(turns([call("refund", order="7")], [said()])).model)

    run(DurableRunner(journal, policies={"refund": never}), build(), "go", run_id="order-7")
    with pytest.raises(ValueError, match="refnd"):
        run(DurableRunner(journal, policies=MISSPELT, default_policy=safe), build(), "go", run_id="order-8")

    assert effects.lines() == ["refund 7"]


def test_inside_a_tool_the_model_is_not_told_of_it(journal, effects):
    """What a tool's own agent shows to be misspelt stops the agent around it, as it asks its model again."""
    runner = DurableRunner(journal, policies={"delegate": safe, "refnd": never})
    script = turns([call("refund", order="7")], [said("inner done")])

    @function_tool
    async def delegate() -> str:
        inner = agent(script, never(effect_tool(effects)))
        return (await runner.run(inner, "go", run_config=QUIET)).final_output

    outer = agent(turns([call("delegate")], [said()]), delegate)
    with pytest.raises(ValueError, match=r"\['refnd'\].*\['refund'\]"):
        run(runner, outer, "go", run_id="order-7")

    assert len(outer.model.calls) == 1
    assert [step.status for step in journal.steps("order-7")] == ["done"] * 5


def test_where_every_tool_is_named_nothing_can_be_mistaken(journal, effects):
    """A name that is no tool's is no danger then: a tool without its label is refused."""
    runner = DurableRunner(journal, policies={"refund": never, "mail": never})
    mailing = agent(turns([call("mail", order="7")], [said()]), effect_tool(effects, "mail"))

    for order, asking in (("order-7", refunding(effects)), ("order-8", mailing)):
        assert run(runner, asking, "go", run_id=order).final_output == "Done."
    with pytest.raises(UnlabelledToolError, match="mail"):
        run(DurableRunner(journal, policies={"mial": never}), mailing, "go", run_id="order-9")
