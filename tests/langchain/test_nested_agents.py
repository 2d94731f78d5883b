"""Agents as tools of other agents: after a real death their steps are read back, and each effect happens once.

The tool that runs an agent is labelled ``safe``: it is entered again, and what is inside it has a record of its own.
"""

import os
import random
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.tools import StructuredTool

from gnl_langchain import JournalMiddleware, run_durable
from gnl_middleware import Done, InterruptedCall, Journal, NotDone, current_step, never, safe
from gnl_middleware.testing import POINTS
from tests.langchain.driving import drive
from tests.langchain.processes import in_process
from tests.langchain.scripted import ScriptedModel, calling, said, turns
from tests.worlds import Log

SEED = os.environ.get("GNL_TEST_SEED", "20261129")
SLICE = 5
WAYS = ("invoke", "ainvoke")
SHAPES = {"one": 1, "two-in-parallel": 2}
MODEL_CALLS = {"one": 4, "two-in-parallel": 6}
STEPS = {"one": 6, "two-in-parallel": 10}
PLACES = {
    (shape, way): [f"{number}:{point}" for number in range(1, STEPS[shape] + 1) for point in POINTS]
    for shape in SHAPES
    for way in WAYS
}
CASES = [(shape, way, place) for (shape, way), places in PLACES.items() for place in places]
SLICED = [
    (shape, way, place)
    for (shape, way), places in PLACES.items()
    for place in random.Random(f"{SEED} {shape} {way}").sample(places, SLICE)
]


def inner_agent(folder: Path) -> Any:
    """An agent that charges a card and says so."""

    def charge(amount: int) -> str:
        """Charge the card."""
        Log(folder / "effects").add(current_step().idempotency_key)
        return f"charged {amount}"

    def recover(call: InterruptedCall) -> Done | NotDone:
        happened = call.idempotency_key in Log(folder / "effects").lines()
        return Done(f"charged {call.arguments['amount']}") if happened else NotDone()

    model = ScriptedModel(
        script=turns(calling("charge", amount=5), said("The card is charged.")), bill=Log(folder / "bill")
    )
    return create_agent(
        model, [charge], middleware=[JournalMiddleware(policies={"charge": never(recover=recover)})]
    )


def outer_agent(folder: Path, shape: str) -> Any:
    """An agent whose tool hands its task to another agent; in parallel, twice the same task."""
    inner = inner_agent(folder)

    def delegate(task: str) -> str:
        """Hand a task on."""
        return inner.invoke({"messages": [("user", task)]})["messages"][-1].text

    async def delegate_async(task: str) -> str:
        result = await inner.ainvoke({"messages": [("user", task)]})
        return result["messages"][-1].text

    tool = StructuredTool.from_function(delegate, delegate_async, description="Hand a task on.")
    names = ["delegate"] * SHAPES[shape]
    model = ScriptedModel(
        script=turns(calling(*names, task="charge 5"), said("All done.")), bill=Log(folder / "bill")
    )
    return create_agent(model, [tool], middleware=[JournalMiddleware(policies={"delegate": safe})])


def worked(folder, shape, way):
    """Runs in a process of its own."""
    with Journal(folder / "runs.db") as journal:
        driven = drive(journal, outer_agent(folder, shape), way)
    return [str(message.content) for message in driven.state["messages"]]


def check(folder, shape, way, place):
    died = in_process(worked, folder, shape, way, crash_at=place)
    raced = way == "invoke" and shape == "two-in-parallel" and not died.died
    with Journal(folder / "runs.db") as journal:
        recorded = sum(step.kind == "model" and step.status == "done" for step in journal.steps("run"))
    billed = len(Log(folder / "bill").lines())

    ended = in_process(worked, folder, shape, way)

    # Threads number their steps as they come; a number that no thread had at this point kills nobody.
    assert died.died or raced
    answers = ["The card is charged."] * SHAPES[shape]
    assert ended.value == ["please refund order 7", "", *answers, "All done."], ended
    assert len(Log(folder / "bill").lines()) - billed == MODEL_CALLS[shape] - recorded
    effects = Log(folder / "effects").lines()
    assert len(effects) == len(set(effects)) == SHAPES[shape]


@pytest.mark.parametrize(("shape", "way", "place"), SLICED)
def test_a_slice_of_the_places_to_die(tmp_path, shape, way, place):
    """Killed anywhere, inside the inner agent or outside: recorded replies are not paid again, each card is charged once."""
    check(tmp_path, shape, way, place)


@pytest.mark.long
@pytest.mark.parametrize(("shape", "way", "place"), CASES)
def test_every_place_to_die(tmp_path, shape, way, place):
    """The same at every point of every step."""
    check(tmp_path, shape, way, place)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("shape", SHAPES)
def test_a_finished_run_is_read_back_without_entering_the_inner_agents(journal, tmp_path, shape, way):
    """The tool that ran the inner agent has an outcome of its own: a replay gives it back whole."""
    first = drive(journal, outer_agent(tmp_path, shape), way)

    second = drive(journal, outer_agent(tmp_path, shape), way, offline=True)

    assert (second.ran, second.read_back) == (0, 2 + SHAPES[shape])
    assert first.ran == STEPS[shape]
    assert second.reply == first.reply
    assert len(Log(tmp_path / "effects").lines()) == SHAPES[shape]


def test_inner_steps_stand_in_the_scope_of_their_tool(journal, tmp_path):
    """Equal prompts in two agents side by side are told apart by the tool step in which each runs, and its node in there."""
    drive(journal, outer_agent(tmp_path, "two-in-parallel"))

    scopes = [step.scope for step in journal.steps("run") if step.name == "charge"]
    outer = [step.key for step in journal.steps("run") if step.name == "delegate"]
    assert sorted(scopes) == sorted(f"{key}/node:0:tools/" for key in outer)


def test_run_durable_lets_nested_agents_work(tmp_path):
    """The guard of ``run_durable`` follows the callbacks into inner agents, and finds them journalled."""
    agent = outer_agent(tmp_path, "one")

    result = run_durable(
        agent,
        {"messages": [("user", "please refund order 7")]},
        run_id="order-7",
        journal=tmp_path / "runs.db",
    )

    assert result["messages"][-1].text == "All done."
