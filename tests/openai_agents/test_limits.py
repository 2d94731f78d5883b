"""What docs/openai-agents.md says of the limits is so."""

from typing import Any

import pytest
from agents import Agent, function_tool, handoff

from gnl_middleware import RecordedError, journaled, never
from gnl_openai_agents import DurableRunner
from tests.openai_agents.driving import run
from tests.openai_agents.scripted import agent, call, effect_tool, said, turns


def test_a_handoffs_callback_runs_again_and_what_it_calls_does_not(journal, effects):
    """``on_handoff`` is the user's code around the steps; a journalled function inside it is a step."""

    @journaled(replay=never)
    def page(reason: str) -> None:
        effects.add(f"paged {reason}")

    async def escalated(context: Any) -> None:
        effects.add("on_handoff")
        page("refund")

    def build() -> Agent[Any]:
        behind = agent(turns([call("x")], [said()]), name="B")
        given = [handoff(behind, on_handoff=escalated)]
        return agent(turns([call("transfer_to_b")]), name="A", handoffs=given)

    for _ in range(2):
        assert run(DurableRunner(journal), build(), "go", run_id="order-7").final_output == "Done."

    assert effects.lines() == ["on_handoff", "paged refund", "on_handoff"]


class OrderClosedError(Exception):
    """Of the user's program."""


@pytest.mark.parametrize("named", [True, False])
def test_a_failure_comes_back_as_its_class_only_where_that_is_named(journal, named):
    """A failure function gets ``RecordedError`` with the same text, or the class that ``errors=`` names."""
    told: list[type] = []

    def tell(context: Any, error: Exception) -> str:
        told.append(type(error))
        return f"sorry: {error}"

    def build() -> Agent[Any]:
        @function_tool(failure_error_function=tell)
        def refund() -> str:
            raise OrderClosedError("closed")

        return agent(turns([call("refund")], [said()]), refund)

    policy = never(errors=(OrderClosedError,)) if named else never
    runner = DurableRunner(journal, policies={"refund": policy})
    first, again = (run(runner, build(), "go", run_id="order-7") for _ in range(2))

    assert told == [OrderClosedError, OrderClosedError if named else RecordedError]
    assert first.to_input_list() == again.to_input_list()


def test_the_last_agent_is_a_copy_with_which_the_next_run_may_begin(journal, effects):
    """``last_agent`` has the agent's name and is journalled: it is no other agent for the runner, nor for the user."""
    runner = DurableRunner(journal, policies={"refund": never})
    given = agent(turns([call("refund", order="7")], [said()]), effect_tool(effects))

    last = run(runner, given, "go", run_id="order-7").last_agent

    assert last is not given
    assert (last.name, type(last).__name__, isinstance(last, Agent)) == (given.name, "Agent", True)
    assert run(runner, last, "go", run_id="order-8").final_output == "Done."
    assert effects.lines() == ["refund 7"] * 2
