"""The ways in which LangGraph lets work happen twice, closed in hand-written graphs, with and without checkpoints.

Each process really dies, at the worst moment for the framework; the same call in another process ends the run.
"""

import random

import pytest

from tests.langchain.processes import in_process
from tests.langgraph.programs import ended
from tests.langgraph.worlds import World
from tests.worlds import DEATH

STORES = ("none", "sqlite:sync", "sqlite:async", "sqlite:exit")
WAYS = ("invoke", "ainvoke", "stream", "astream")
ANSWER = "please refund order 7"
HOLES = {
    "tool_crash": (["charge"], [ANSWER, "", "did charge", "Done."], 2),
    "parallel_crash": (
        ["call-0", "call-1", "call-2"],
        [ANSWER, "", "did call-0", "did call-1", "did call-2", "Done."],
        2,
    ),
    "model_crash": (["charge"], [ANSWER, "", "did charge", "Done."], 3),
    "agent_as_tool": (["first", "second"], [ANSWER, "", "inner done", "Done."], 5),
    "tasks": (["first", "second"], ["did first", "did second"], 0),
    "one_node": (["ship"], [ANSWER, "shipped"], 0),
    "react_agent": (["charge"], [ANSWER, "", "did charge", "Done."], 2),
    "first_react_agent": (["charge"], [ANSWER, "", "did charge", "Done."], 2),
}
CASES = [(program, store, way) for program in HOLES for store in STORES for way in WAYS]
SLICED = random.Random("holes").sample(CASES, 8)
IN_POSTGRES = [
    (program, f"postgres:{durability}", way)
    for program in HOLES
    for durability in ("sync", "async", "exit")
    for way in WAYS
]
SLICED_IN_POSTGRES = [
    ("tool_crash", "postgres:sync", "astream"),
    ("tasks", "postgres:async", "ainvoke"),
    ("react_agent", "postgres:exit", "stream"),
]


def check(folder, program, store, way):
    effects, reply, billed = HOLES[program]

    died = in_process(ended, folder, program, store, way)
    second = in_process(ended, folder, program, store, way)
    again = in_process(ended, folder, program, store, way)

    assert died.code == DEATH, died
    assert second.value == reply, second
    assert again.value == reply, again
    assert World(folder).done == effects
    assert len(World(folder).bill.lines()) == billed


@pytest.mark.parametrize(("program", "store", "way"), SLICED)
def test_a_slice_of_the_holes(tmp_path, program, store, way):
    """Whatever of the graph was saved, each effect happens once and no recorded reply is paid for again."""
    check(tmp_path, program, store, way)


@pytest.mark.long
@pytest.mark.parametrize(("program", "store", "way"), CASES)
def test_every_hole(tmp_path, program, store, way):
    """The same for every hole, in every durability, in every way to run a graph."""
    check(tmp_path, program, store, way)


@pytest.mark.parametrize(("program", "store", "way"), SLICED_IN_POSTGRES)
def test_a_slice_of_the_holes_with_checkpoints_in_postgres(tmp_path, url, program, store, way):
    """The same with `PostgresSaver` and the journal beside it in one database."""
    World(tmp_path).use_database(url)
    check(tmp_path, program, store, way)


@pytest.mark.long
@pytest.mark.parametrize(("program", "store", "way"), IN_POSTGRES)
def test_every_hole_with_checkpoints_in_postgres(tmp_path, url, program, store, way):
    """The same for every hole, in every durability, in every way to run a graph."""
    World(tmp_path).use_database(url)
    check(tmp_path, program, store, way)


@pytest.mark.parametrize(
    "store",
    [
        "sqlite:exit",
        *(
            pytest.param(store, marks=pytest.mark.long)
            for store in ("sqlite:sync", "sqlite:async", "postgres:async")
        ),
    ],
)
def test_a_chat_of_many_messages(tmp_path, request, store):
    """A thread with one run for each message: the one that died is made up once, those before are left, all read back."""
    if store.startswith("postgres"):
        World(tmp_path).use_database(request.getfixturevalue("url"))
    messages = [
        {"run_id": f"chat:42:{number}", "input": {"messages": [("user", f"order {number}")]}}
        for number in (1, 2, 3)
    ]
    posted = [in_process(ended, tmp_path, "chat", store, "invoke", messages[place]) for place in (0, 1, 1, 2)]
    again = in_process(ended, tmp_path, "chat", store, "invoke", messages[2])

    talk = [
        line
        for number in (1, 2, 3)
        for line in (f"order {number}", "", f"did charge-{number}", f"Done {number}.")
    ]
    assert posted[1].code == DEATH, posted
    assert [process.value for process in posted] == [talk[:4], None, talk[:8], talk], posted
    assert again.value == talk
    assert World(tmp_path).done == ["charge-1", "charge-2", "charge-3"]
    assert len(World(tmp_path).bill.lines()) == 6


@pytest.mark.parametrize("store", STORES[::3])
def test_a_node_with_many_calls(tmp_path, store):
    """Calls and values of a node that died are read back: each effect once, and the same random id both times."""
    died = in_process(ended, tmp_path, "many_calls", store, "invoke")
    second = in_process(ended, tmp_path, "many_calls", store, "invoke")

    assert died.code == DEATH
    assert second.value == [ANSWER, "did plan did draft"]
    done = World(tmp_path).done
    told = [name for name in done if name.startswith("told")]
    assert [name for name in done if name not in told] == ["draft", "plan"]
    assert len(told) == 2
    assert len(set(told)) == 1


@pytest.mark.parametrize("store", STORES[::3])
def test_a_retry_policy_around_the_tools(tmp_path, store):
    """The node is retried, not the effects: the call that failed is settled, its sibling is read back."""
    done = in_process(ended, tmp_path, "retried", store, "invoke")

    assert done.value == [ANSWER, "", "did call-0", "did call-1", "Done."], done
    assert World(tmp_path).done == ["call-0", "call-1"]


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_work_before_a_pause(tmp_path, durability):
    """Journalled calls before a pause run once each, in a node of a subgraph with two pauses and in a nested agent's tool."""
    store = f"sqlite:{durability}"
    answers = [None, {"resume": "a"}, {"resume": "b"}, {"resume": "c"}]
    processes = [in_process(ended, tmp_path, "before_interrupt", store, "invoke", given) for given in answers]
    values = [process.value for process in processes]

    assert values == ["paused", "paused", "paused", [ANSWER, "node ['a', 'b']", "Done."]]
    assert World(tmp_path).done == ["hold", "hold"]
    assert len(World(tmp_path).bill.lines()) == 2


@pytest.mark.parametrize("crashes", [2, pytest.param(100, marks=pytest.mark.long)])
def test_a_reply_that_was_lost_before_its_checkpoint(tmp_path, crashes):
    """Hole h: the checkpoint lags behind, and the model would ask for another amount: each time, one charge of the first."""
    for crash in range(crashes):
        (folder := tmp_path / str(crash)).mkdir()
        died = in_process(ended, folder, "unsteady", "slow:async", "invoke")
        second = in_process(ended, folder, "unsteady", "slow:async", "invoke")

        assert died.code == DEATH
        assert second.value == [ANSWER, "", "did charge-2", "Done."], second
        assert World(folder).done == ["charge-2"]
