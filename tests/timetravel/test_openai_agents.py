"""Forks of an agent of the OpenAI Agents SDK."""

import pytest

from gnl_middleware import Done, ForkedEffectError, never, safe
from gnl_openai_agents import DurableRunner
from tests.openai_agents.driving import run
from tests.openai_agents.scripted import agent, call, effect_tool, outputs, said

ON_BOTH = {"test_another_future"}


def by_answer(given):
    """Refunds what the lookup found, and says so."""
    told = [item["output"] for item in given if item.get("type") == "function_call_output"]
    if not told:
        return [call("look_up", order="7")]
    if len(told) == 1:
        return [call("refund", order=told[0])]
    return [said(f"Done: {told[1]}")]


def support(effects, script=by_answer):
    return agent(script, effect_tool(effects, "look_up"), effect_tool(effects))


@pytest.fixture
def runner(journal):
    """Runs agents in the journal."""
    return DurableRunner(journal, policies={"look_up": safe, "refund": never})


def test_another_future(journal, effects, runner):
    """What is before the cut is read back, the edited outcome is what the model sees, and no effect happens again."""
    run(runner, support(effects), "go", run_id="order-7")
    happened = effects.lines()
    journal.fork("order-7", "b", before="refund", edits={"look_up": Done("order 9")})
    asked = support(effects)

    with pytest.raises(ForkedEffectError) as caught:
        run(runner, asked, "go", run_id="b")

    assert caught.value.arguments == {"order": "order 9"}
    assert (len(asked.model.calls), effects.lines()) == (1, happened)
    journal.resolve("b", "refund", Done("refunded in mind"), by="ada")
    again = support(effects)

    result = run(runner, again, "go", run_id="b")

    assert outputs(result)[-2:] == ["output refunded in mind", "Done: refunded in mind"]
    assert (len(again.model.calls), effects.lines()) == (1, happened)


def test_with_effects_it_happens(journal, effects, runner):
    """With effects=True the fork goes on live, and reads itself back afterwards."""
    first = run(runner, support(effects), "go", run_id="order-7")
    journal.fork("order-7", "b", before="refund", effects=True)

    for _ in range(2):
        result = run(runner, support(effects), "go", run_id="b")

    assert outputs(result) == outputs(first)
    assert effects.lines() == ["look_up 7", "refund look_up ok 7", "refund look_up ok 7"]
    assert journal.diff("order-7", "b").what is None


def test_nested_agents(journal, effects):
    """Cut inside of an agent that is a tool: that one is entered again, and what is before the cut in it is read back."""
    runner = DurableRunner(journal, policies={"look_up": safe, "refund": never})

    def family():
        inner = support(effects)
        tool = runner.wrap(inner).as_tool("inner", "Acts.")
        outer = agent(
            lambda given: [said("all done")] if len(given) > 1 else [call("inner", input="go")], tool
        )
        return outer, inner

    run(runner, family()[0], "go", run_id="order-7")
    happened = effects.lines()
    journal.fork("order-7", "b", before="refund")
    outer, inner = family()

    with pytest.raises(ForkedEffectError):
        run(runner, outer, "go", run_id="b")

    assert (len(outer.model.calls), len(inner.model.calls), effects.lines()) == (0, 1, happened)
    journal.resolve("b", "refund", Done("in mind"), by="ada")
    assert run(runner, family()[0], "go", run_id="b").final_output == "all done"
    assert effects.lines() == happened
