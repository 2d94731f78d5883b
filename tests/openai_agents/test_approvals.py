"""Approvals: stop, save, load in a new process, approve, crash, resume. One effect, whatever happens."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from agents import Agent, RunState, function_tool

from gnl_middleware import Journal, SideEffectRetryBlockedError, UnjournaledCallError, never
from gnl_openai_agents import DurableRunner
from tests.openai_agents.driving import run
from tests.openai_agents.processes import in_process
from tests.openai_agents.scripted import QUIET, agent, call, effect_tool, outputs, said, turns
from tests.worlds import Log

EXPECTED = [
    "go",
    "call look {'order': '7'}",
    "output look ok 7",
    "call refund {'order': '7'}",
    "output refund ok 7",
    "Done.",
]


def careful(effects: Log, **options: Any) -> Agent[Any]:
    """An agent that looks, and then refunds what a person approves."""
    script = turns([call("look", order="7")], [call("refund", order="7")], [said()])
    tools = [effect_tool(effects, "look"), effect_tool(effects, needs_approval=True)]
    return agent(script, *tools, **options)


async def approved(runner: DurableRunner, agent: Agent[Any], text: str, **options: Any) -> Any:
    state = await runner.load_state(agent, text)
    for item in state.get_interruptions():
        state.approve(item)
    return await runner.run(agent, state, run_id="order-7", run_config=QUIET, **options)


def stopped(runner: DurableRunner, agent: Agent[Any]) -> str:
    """A saved state that waits for an approval."""
    result = run(runner, agent, "go", run_id="order-7")
    assert len(result.interruptions) == 1
    return result.to_state().to_string()


def test_a_saved_state_goes_on_where_it_stopped(journal, effects):
    """Loaded and approved, the run ends as one; while it waits it is paused, and nothing was asked twice."""
    runner = DurableRunner(journal, default_policy=never)
    text = stopped(runner, careful(effects))
    assert [record.status for record in journal.runs()] == ["paused"]
    again = careful(effects)

    result = asyncio.run(approved(runner, again, text))

    assert outputs(result) == EXPECTED
    assert effects.lines() == ["look 7", "refund 7"]
    assert len(again.model.calls) == 1
    assert [record.status for record in journal.runs()] == ["completed"]


def test_the_same_state_approved_twice_has_one_effect(journal, effects):
    """B32: approving the same saved state again gives the first outcome, and asks no model."""
    runner = DurableRunner(journal, default_policy=never)
    text = stopped(runner, careful(effects))
    first = asyncio.run(approved(runner, careful(effects), text))
    again = careful(effects)

    second = asyncio.run(approved(runner, again, text))

    assert outputs(first) == outputs(second)
    assert effects.lines() == ["look 7", "refund 7"]
    assert len(again.model.calls) == 0


def test_in_the_same_process(journal, effects, durable):
    """A state that was never saved goes on in the same way."""
    runner = DurableRunner(journal, default_policy=never)
    careful_agent = careful(effects)
    result = durable(runner, careful_agent, "go", run_id="order-7")
    state = result.to_state()
    state.approve(state.get_interruptions()[0])

    ended = durable(runner, careful_agent, state, run_id="order-7")

    assert outputs(ended) == EXPECTED
    assert effects.lines() == ["look 7", "refund 7"]


def test_started_anew_it_stops_at_the_same_place(journal, effects):
    """Where the state is lost, the same call as at first reads back what happened and waits for the approval again."""
    runner = DurableRunner(journal, default_policy=never)
    first = stopped(runner, careful(effects))
    again = careful(effects)

    second = stopped(runner, again)

    assert len(again.model.calls) == 0
    assert json.loads(first)["model_responses"] == json.loads(second)["model_responses"]
    assert effects.lines() == ["look 7"]


def test_a_rejection_is_told_to_the_model(journal, effects):
    """A rejected call has no effect and is no step; the model is told as without us."""
    runner = DurableRunner(journal, default_policy=never)
    text = stopped(runner, careful(effects))
    again = careful(effects)

    async def reject() -> Any:
        state = await runner.load_state(again, text)
        state.reject(state.get_interruptions()[0])
        return await runner.run(again, state, run_id="order-7", run_config=QUIET)

    result = asyncio.run(reject())

    assert "output Tool execution was not approved." in outputs(result)
    assert effects.lines() == ["look 7"]


def approve_in_process(folder: Path, dies: bool) -> Any:
    """Runs in a process of its own."""
    effects = Log(folder / "effects")
    state = folder / "state.json"
    with Journal(folder / "runs.db") as journal:
        runner = DurableRunner(journal, default_policy=never)
        if not state.exists():
            state.write_text(stopped(runner, careful(effects)), encoding="utf-8")
            return "saved"
        result = asyncio.run(approved(runner, careful(effects), state.read_text(encoding="utf-8")))
    return result.final_output


def test_a_crash_after_the_approval_blocks_the_second_effect(tmp_path):
    """Save, approve in a new process that dies after the effect, resume: the run stops; decided, it ends with one."""
    assert in_process(approve_in_process, tmp_path, True).value == "saved"

    died = in_process(approve_in_process, tmp_path, True, crash_at="refund:after_body")
    blocked = in_process(approve_in_process, tmp_path, False)

    assert died.died
    assert blocked.error[0] == "SideEffectRetryBlockedError", blocked
    from gnl_middleware import Done

    with Journal(tmp_path / "runs.db") as journal:
        journal.resolve("order-7", "refund", Done("refund ok 7"), by="ada")
    assert in_process(approve_in_process, tmp_path, False).value == "Done."
    assert Log(tmp_path / "effects").lines() == ["look 7", "refund 7"]


def test_a_state_loaded_with_the_bare_agent_is_refused(journal, effects):
    """Trap F: such a state holds the agent as it was, and would run past the journal."""
    runner = DurableRunner(journal, default_policy=never)
    text = stopped(runner, careful(effects))
    bare = careful(effects)

    async def go() -> Any:
        state = await RunState.from_string(bare, text)
        return await runner.run(bare, state, run_id="order-7", run_config=QUIET)

    with pytest.raises(UnjournaledCallError, match="load_state"):
        asyncio.run(go())

    assert effects.lines() == ["look 7"]


def test_a_state_saved_after_a_handoff_finds_its_agents(journal, effects):
    """Trap C: the copies of handoffs know their targets, so a state that was saved behind one can be loaded."""
    from agents import handoff

    runner = DurableRunner(journal, default_policy=never)

    def build() -> Agent[Any]:
        target = agent(turns([call("h")], [call("refund", order="7")], [said()]), name="B")
        target.tools = [effect_tool(effects, needs_approval=True)]
        return agent(lambda given: [call("transfer_to_b", "h1")], name="A", handoffs=[handoff(target)])

    text = stopped(runner, build())

    result = asyncio.run(approved(runner, build(), text))

    assert (result.final_output, result.last_agent.name, effects.lines()) == ("Done.", "B", ["refund 7"])


def nested(runner: DurableRunner, effects: Log) -> Agent[Any]:
    inner = agent(
        turns([call("refund", order="7")], [said("inner done")]),
        effect_tool(effects, needs_approval=True),
        name="Inner",
    )
    return agent(turns([call("ask", input="go")], [said()]), runner.wrap(inner).as_tool("ask", "Asks."))


def test_an_approval_inside_a_nested_agent(journal, effects):
    """A nested agent that stops at an approval has no result yet; approved, it goes on inside the same step."""
    runner = DurableRunner(journal, policies={"refund": never})
    text = stopped(runner, nested(runner, effects))
    assert [step.status for step in journal.steps("order-7") if step.name == "ask"] != ["done"]

    first = asyncio.run(approved(runner, nested(runner, effects), text))
    second = asyncio.run(approved(runner, nested(runner, effects), text))

    assert first.final_output == second.final_output == "Done."
    assert effects.lines() == ["refund 7"]


def defaulted(effects: Log, asked_about: list[Any]) -> Agent[Any]:
    """A tool whose approval looks at arguments, one of which has a default that the model left out."""

    async def needs(context: Any, arguments: dict[str, Any], call_id: str) -> bool:
        asked_about.append(arguments)
        return False

    @function_tool(needs_approval=needs, strict_mode=False)
    def refund(order: str = "7") -> str:
        effects.add(f"refund {order}")
        return "ok"

    return agent(turns([call("refund")], [said()]), refund)


def test_arguments_that_nobody_saw_need_an_approval(journal, effects):
    """Trap A: as without us, a policy that looks at arguments is not asked about those that it cannot see in full."""
    runner = DurableRunner(journal, default_policy=never)
    asked_about: list[Any] = []

    result = run(runner, defaulted(effects, asked_about), "go", run_id="order-7")

    assert len(result.interruptions) == 1
    assert (asked_about, effects.lines()) == ([], [])


def test_an_effect_that_was_interrupted_is_settled_before_the_state_goes_on(journal, effects):
    """Once a run is blocked, its saved state does not go on past the call that may have happened."""
    runner = DurableRunner(journal, default_policy=never)

    def build(fails: bool) -> Agent[Any]:
        def look(order: str) -> str:
            effects.add("look")
            if fails:
                raise KeyboardInterrupt
            return "seen"

        tool = function_tool(look)
        return agent(turns([call("look", order="7")], [said()]), tool)

    with pytest.raises(KeyboardInterrupt):
        run(runner, build(True), "go", run_id="order-7")
    with pytest.raises(SideEffectRetryBlockedError):
        run(runner, build(False), "go", run_id="order-7")
    assert effects.lines() == ["look"]
