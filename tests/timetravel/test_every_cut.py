"""Cut a run at each of its steps: whatever is kept, the same code ends as the source did, and runs exactly what is not kept."""

import os
import random
from typing import Any

import pytest

from gnl_langchain import journaled_model, run_durable
from gnl_middleware import Journal, keyed, never, safe
from tests.langchain.scripted import QUESTION, ScriptedModel, said
from tests.timetravel.acting import World
from tests.timetravel.test_langchain import by_customer, support_agent
from tests.timetravel.test_langgraph import side_by_side, ticket_graph
from tests.timetravel.test_nested_agents import Family
from tests.worlds import Log

SEED = os.environ.get("GNL_TEST_SEED", "20261130")
SLICE = 2


def functions(journal: Journal, run_id: str, effects: Any, **options: Any) -> Any:
    """Functions inside of functions, branches, values, and a failure that is handled."""
    world = World(raises={"declined": ConnectionError("declined")})

    def booking() -> Any:
        effects.add("booking")
        run.random()
        return world.act("seat", never, 1), world.act("seat", never, 2)

    with journal.run(run_id, **options) as run:
        found = [world.act("look_up", safe)]
        run.uuid4()
        try:
            world.act("declined", never)
        except ConnectionError as error:
            found.append(str(error))
        with run.scope("billing"):
            found.append(world.inside("booking", safe, booking))
        return [*found, world.act("mail", keyed)]


def nested(journal: Journal, run_id: str, effects: Any, **options: Any) -> Any:
    """Agents as tools of another agent, side by side."""
    result = run_durable(Family(effects).agent(), QUESTION, run_id=run_id, journal=journal, **options)
    return [message.text for message in result["messages"]]


def agent(journal: Journal, run_id: str, effects: Any, **options: Any) -> Any:
    """An agent that calls one tool after the other."""
    made, _ = support_agent(effects, by_customer)
    result = run_durable(made, QUESTION, run_id=run_id, journal=journal, **options)
    return [message.text for message in result["messages"]]


def graph(journal: Journal, run_id: str, effects: Any, **options: Any) -> Any:
    """A hand-written graph."""
    made, _ = ticket_graph(effects)
    result = run_durable(made, QUESTION, run_id=run_id, journal=journal, **options)
    return [message.text for message in result["messages"]]


def branches(journal: Journal, run_id: str, effects: Any, **options: Any) -> Any:
    """Two nodes of a graph in one round, and one after them."""
    model = journaled_model(ScriptedModel(script=lambda messages: said(messages[-1].text.split()[2])))
    made = side_by_side(effects, model)
    return run_durable(made, {"out": []}, run_id=run_id, journal=journal, **options)


PROGRAMS = {
    "functions": (functions, 8),
    "nested": (nested, 15),
    "agent": (agent, 5),
    "graph": (graph, 5),
    "branches": (branches, 6),
}
CASES = [(name, number) for name, (_, steps) in PROGRAMS.items() for number in range(1, steps + 1)]
SLICED = [
    (name, number)
    for name, (_, steps) in PROGRAMS.items()
    for number in sorted(random.Random(f"{SEED} {name}").sample(range(1, steps + 1), SLICE))
]


def check(folder: Any, name: str, number: int) -> None:
    program, size = PROGRAMS[name]
    effects = Log(folder / "effects")
    with Journal(folder / "runs.db") as journal:
        given = program(journal, "source", effects)
        source = journal.steps("source")
        assert len(source) == size
        journal.fork("source", "fork", before=number, effects=True)
        kept = {step.key for step in journal.steps("fork")}

        for _ in range(2):
            assert program(journal, "fork", effects, replay="strict") == given

        found = journal.diff("source", "fork")
        assert (found.what, found.equal_steps) == (None, size)
        began = {step.key: step.started_at for step in source}
        assert source[number - 1].key not in kept
        assert {step.key for step in journal.steps("fork") if began.get(step.key) == step.started_at} == kept
        assert journal.steps("source") == source


@pytest.mark.long
@pytest.mark.parametrize(("name", "number"), CASES)
def test_every_cut(tmp_path, name, number):
    """Cut before each step of each program, the fork ends in strict mode as its source did, and so it is read back."""
    check(tmp_path, name, number)


@pytest.mark.parametrize(("name", "number"), SLICED)
def test_some_cuts(tmp_path, name, number):
    """The same for a seeded slice."""
    check(tmp_path, name, number)
