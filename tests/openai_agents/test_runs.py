"""A finished run is read back: no model is asked, no tool runs, the same result."""

import pytest

from gnl_middleware import NoActiveRunError, RunInputMismatchError, UnlabelledToolError, never, safe
from gnl_openai_agents import DurableRunner
from tests.openai_agents.driving import WAYS
from tests.openai_agents.scripted import QUESTION, agent, call, effect_tool, outputs, said, turns
from tests.worlds import Log

EXPECTED = [QUESTION, "call refund {'order': '7'}", "output refund ok 7", "Done."]


def refunding(log: Log):
    return agent(turns([call("refund", order="7")], [said()]), effect_tool(log))


def test_a_finished_run_is_read_back(journal, effects, durable):
    """The second run asks no model and runs no tool, and ends as the first."""
    runner = DurableRunner(journal, policies={"refund": never})
    first = refunding(effects)
    began = durable(runner, first, QUESTION, run_id="order-7")
    again = refunding(effects)

    ended = durable(runner, again, QUESTION, run_id="order-7")

    assert outputs(began) == outputs(ended) == EXPECTED
    assert len(first.model.calls) == 2
    assert len(again.model.calls) == 0
    assert effects.lines() == ["refund 7"]
    assert [step.status for step in journal.steps("order-7")] == ["done"] * 3
    assert [run.status for run in journal.runs()] == ["completed"]


@pytest.mark.parametrize("replayed", ["run", "run_streamed"])
@pytest.mark.parametrize("recorded", ["run", "run_streamed"])
def test_one_entry_point_reads_what_another_recorded(journal, effects, recorded, replayed):
    """What one way of running recorded is read back by any other, with the same usage, and nothing runs."""
    runner = DurableRunner(journal, policies={"refund": never})
    began = WAYS[recorded](runner, refunding(effects), QUESTION, run_id="order-7")
    again = refunding(effects)

    ended = WAYS[replayed](runner, again, QUESTION, run_id="order-7", offline=True)

    assert outputs(ended) == EXPECTED
    assert ended.context_wrapper.usage == began.context_wrapper.usage
    assert [response.to_input_items() for response in ended.raw_responses] == [
        response.to_input_items() for response in began.raw_responses
    ]
    assert (len(again.model.calls), effects.lines()) == (0, ["refund 7"])


def test_an_unlabelled_tool_is_refused_before_anything_runs(journal, effects, durable):
    """Nobody said what may happen to it after a crash, so no model is asked; the error names every such tool."""
    unlabelled = agent(turns([said()]), effect_tool(effects), effect_tool(effects, "mail"))

    with pytest.raises(UnlabelledToolError) as raised:
        durable(DurableRunner(journal), unlabelled, QUESTION, run_id="order-7")

    assert raised.value.tools == ("mail", "refund")
    assert "DurableRunner(policies={'mail': never})" in str(raised.value)
    assert len(unlabelled.model.calls) == 0


def test_another_input_is_refused(journal, effects, durable):
    """A run id names one job: with another input it raises RunInputMismatchError."""
    runner = DurableRunner(journal, default_policy=safe)
    durable(runner, refunding(effects), QUESTION, run_id="order-7")

    with pytest.raises(RunInputMismatchError):
        durable(runner, refunding(effects), "please refund order 8", run_id="order-7")


def test_without_a_run_nothing_runs(journal, effects, durable):
    """Without a run id, and outside any run, NoActiveRunError says so."""
    refused = refunding(effects)

    with pytest.raises(NoActiveRunError):
        durable(DurableRunner(journal, default_policy=safe), refused, QUESTION)

    assert (len(refused.model.calls), effects.lines()) == (0, [])


def test_the_open_run_is_joined(journal, effects, durable):
    """Without a run id, an agent works in the run that is open around it."""
    runner = DurableRunner(journal, default_policy=never)
    for _ in range(2):
        with journal.run("order-7"):
            durable(runner, refunding(effects), QUESTION)

    assert effects.lines() == ["refund 7"]
    assert [run.attempts for run in journal.runs()] == [2]
