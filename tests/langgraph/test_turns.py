"""Turns of a thread: what resumes in a later one gets the values and replies of its own turn, and diverges for no reason."""

import operator
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Send

from gnl_langchain import journaled_model, run_durable
from gnl_middleware import (
    DivergenceError,
    SideEffectRetryBlockedError,
    current_run,
    journaled,
    keyed,
    never,
    safe,
)
from tests.langchain.scripted import ScriptedModel, said
from tests.langgraph.worlds import THREAD

TURNS = 4
BRANCHES = 3


class Turns(TypedDict):
    out: Annotated[list[Any], operator.add]


class Flaky:
    """Fails once, when the n-th turn has done its work and before that is saved."""

    def __init__(self, turn: int | None) -> None:
        self.turn = turn

    def __call__(self, turn: int) -> None:
        if turn == self.turn:
            self.turn = None
            raise ConnectionError(turn)


def turning(work: Any, fail: Flaky, *, nested: bool = False, saver: Any = None) -> Any:
    """A node that does the same work in each of four turns; nested, in a subgraph that remembers nothing of the others."""

    def node(state: Turns) -> Any:
        found = work()
        fail(len(state["out"]) + 1)
        return {"out": [found]}

    graph = StateGraph(Turns)
    if nested:
        inner = StateGraph(Turns)
        turn = [1]

        def inner_node(state: Turns) -> Any:
            found = work()
            fail(turn[0])
            return {"out": [found]}

        inner.add_node("work", inner_node)
        inner.add_edge(START, "work")
        agent = inner.compile()

        def branch(state: Turns) -> Any:
            turn[0] = len(state["out"]) + 1
            return {"out": agent.invoke({"out": []})["out"]}

        graph.add_node("node", branch)
    else:
        graph.add_node("node", node)
    graph.add_edge(START, "node")
    graph.add_conditional_edges("node", lambda state: "node" if len(state["out"]) < TURNS else END)
    return graph.compile(checkpointer=saver or InMemorySaver())


def durable(graph: Any, journal: Any, **options: Any) -> list[Any]:
    return run_durable(
        graph, {"out": []}, run_id="order-7", journal=journal, config=THREAD, durability="sync", **options
    )["out"]


@pytest.mark.parametrize("nested", [False, True], ids=["in a node", "in a subgraph"])
@pytest.mark.parametrize("turn", [1, 3, 4])
@pytest.mark.parametrize("replay", ["lenient", "strict"])
def test_values_of_their_own_turn(journal, turn, nested, replay):
    """Resumed in turn 3, `run.uuid4()` is that of turn 3, not of turn 1; a later turn's is new."""
    taken = []

    def work() -> str:
        taken.append(str(current_run().uuid4()))
        return taken[-1]

    graph = turning(work, Flaky(turn), nested=nested)
    with pytest.raises(ConnectionError):
        durable(graph, journal, replay=replay)
    found = durable(graph, journal, replay=replay)

    assert taken[turn] == taken[turn - 1]
    assert len(set(found)) == TURNS
    assert found == taken[:turn] + taken[turn + 1 :]


@pytest.mark.parametrize("turn", [1, 3])
@pytest.mark.parametrize("replay", ["lenient", "strict"])
def test_values_of_their_own_branch_and_turn(journal, turn, replay):
    """The same where each turn sends out branches: resumed in turn 3, each branch gets its own id of that turn."""
    taken: list[tuple[int, int, str]] = []
    fail = Flaky(turn)

    def branch(state: Any) -> Any:
        taken.append(made_up := (state["turn"], state["place"], str(current_run().uuid4())))
        if state["place"] == 1:
            fail(state["turn"])
        return {"out": [made_up]}

    def sent(state: Turns) -> Any:
        done = len(state["out"]) // BRANCHES
        places = range(BRANCHES if done < TURNS else 0)
        return [Send("branch", {"turn": done + 1, "place": place}) for place in places] or END

    graph = StateGraph(Turns)
    graph.add_node("branch", branch)
    graph.add_node("end", lambda state: {"out": []})
    graph.add_conditional_edges(START, sent, ["branch", END])
    graph.add_edge("branch", "end")
    graph.add_conditional_edges("end", sent, ["branch", END])
    made = graph.compile(checkpointer=Forgetful())
    with pytest.raises(ConnectionError):
        durable(made, journal, replay=replay)
    first = list(taken)
    found = durable(made, journal, replay=replay)

    ids = {(each_turn, place): made_up for each_turn, place, made_up in found}
    assert len(set(ids.values())) == TURNS * BRANCHES
    assert {(each_turn, place): made_up for each_turn, place, made_up in first}.items() <= ids.items()
    assert len(taken) > TURNS * BRANCHES


class Forgetful(InMemorySaver):
    """Loses what single tasks of a round have written: the whole round is executed again."""

    def put_writes(self, *arguments: Any, **options: Any) -> None:
        """Forget it."""


@pytest.mark.parametrize("nested", [False, True], ids=["in a node", "in a subgraph"])
@pytest.mark.parametrize("replay", ["lenient", "strict"])
@pytest.mark.parametrize("label", [safe, keyed, never], ids=lambda policy: policy.label)
def test_equal_questions_and_effects_of_each_turn(journal, nested, replay, label):
    """The same question and the same charge in every turn are meant each time: four of each, whatever turn was cut off."""
    asked, charged = [], []
    model = journaled_model(
        ScriptedModel(script=lambda messages: (asked.append(1), said(f"reply {len(asked)}"))[1])
    )

    @journaled(replay=label)
    def charge() -> int:
        charged.append(1)
        return len(charged)

    graph = turning(lambda: [model.invoke("the same question").text, charge()], Flaky(3), nested=nested)
    with pytest.raises(ConnectionError):
        durable(graph, journal, replay=replay)

    found = durable(graph, journal, replay=replay)

    assert found == [[f"reply {turn}", turn] for turn in range(1, TURNS + 1)]
    assert (len(asked), len(charged)) == (TURNS, TURNS)


@pytest.mark.parametrize("status", ["done", "interrupted"])
@pytest.mark.parametrize("replay", ["lenient", "strict"])
def test_a_state_that_a_person_updates_before_the_resume(journal, status, replay):
    """The update takes a round of its own: the turn that was cut off is still itself, and its charge is made once."""
    charged = []

    @journaled(replay=never)
    def charge() -> int:
        charged.append(1)
        if status == "interrupted" and len(charged) == 3:
            raise TimeoutError
        return len(charged)

    model = journaled_model(ScriptedModel(script=lambda messages: AIMessage("reply")))
    graph = turning(lambda: [model.invoke("the same question").text, charge()], Flaky(3))
    with pytest.raises((ConnectionError, TimeoutError)):
        durable(graph, journal, replay=replay)
    graph.update_state(THREAD, {"out": []}, as_node="node")

    if status == "interrupted":
        with pytest.raises(SideEffectRetryBlockedError):
            durable(graph, journal, replay=replay)
        assert len(charged) == 3
    else:
        assert durable(graph, journal, replay=replay) == [["reply", turn] for turn in range(1, TURNS + 1)]
        assert len(charged) == TURNS


def test_a_resume_by_the_id_of_a_checkpoint(journal):
    """Going on from an older checkpoint reads back what followed it the first time."""
    charged = []

    @journaled(replay=never)
    def charge() -> int:
        charged.append(1)
        return len(charged)

    graph = turning(charge, Flaky(None))
    durable(graph, journal)
    states = graph.get_state_history(THREAD)
    older = next(state for state in states if len(state.values.get("out", ())) == 1)

    found = run_durable(graph, None, run_id="order-7", journal=journal, config=older.config)["out"]

    assert found == [1, 2, 3, 4]
    assert len(charged) == TURNS


def test_a_call_that_left_the_record_stops_the_run(journal):
    """Another question while a charge of a later round is recorded is no replay of that run."""
    question = ["first"]
    model = journaled_model(ScriptedModel(script=lambda messages: said("reply")))

    @journaled(replay=never)
    def charge() -> str:
        return "charged"

    graph = StateGraph(Turns)
    graph.add_node("ask", lambda state: {"out": [model.invoke(question[0]).text]})
    graph.add_node("act", lambda state: {"out": [charge()]})
    graph.add_edge(START, "ask")
    graph.add_edge("ask", "act")
    made = graph.compile()
    with journal.run("order-7"):
        made.invoke({"out": []})
    question[0] = "another"

    with pytest.raises(DivergenceError, match="charge"), journal.run("order-7"):
        made.invoke({"out": []})
