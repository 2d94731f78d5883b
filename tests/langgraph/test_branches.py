"""Branches of a graph that run side by side, whatever comes first: each is told from the others and reads back its own."""

import operator
import random
import time
from typing import Annotated, Any, TypedDict

import pytest
from langchain.agents import create_agent
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import RetryPolicy, Send

from gnl_langchain import JournalMiddleware, journaled_model
from gnl_langgraph import JournalToolNode
from gnl_middleware import current_run, journaled, keyed, never, safe
from tests.langchain.scripted import QUESTION, ScriptedModel, calling, said, turns

BRANCHES = 20


class Gathered(TypedDict):
    out: Annotated[list[Any], operator.add]
    place: int


def pause(order: random.Random) -> None:
    """Let another branch be first."""
    time.sleep(order.random() * 0.002)


def three_levels(model: ScriptedModel, act: Any, order: random.Random) -> Any:
    """Twenty branches that are sent to a graph, whose node is a graph with an agent: the same names and prompts in each."""

    def leaf(state: Gathered) -> Any:
        pause(order)
        reply = journaled_model(model).invoke("the same prompt in every branch")
        pause(order)
        return {"out": [(state["place"], reply.text, act("x"), str(current_run().uuid4()))]}

    inner = StateGraph(Gathered)
    inner.add_node("leaf", leaf)
    inner.add_edge(START, "leaf")
    middle = StateGraph(Gathered)
    middle.add_node("inner", inner.compile())
    middle.add_edge(START, "inner")

    def branch(state: Gathered) -> Any:
        return {"out": middle_graph.invoke({"out": [], "place": state["place"]})["out"]}

    middle_graph = middle.compile()
    outer = StateGraph(Gathered)
    outer.add_node("branch", branch)
    outer.add_conditional_edges(
        START,
        lambda state: [Send("branch", {"out": [], "place": place}) for place in range(BRANCHES)],
        ["branch"],
    )
    return outer.compile()


@pytest.mark.parametrize("repeats", [10, pytest.param(100, marks=pytest.mark.long)])
def test_three_levels_and_twenty_branches(journal, repeats):
    """Replayed in shuffled orders, every branch reads back its own reply, effect and random id: the same bytes."""
    asked, acted = [], []

    def script(messages: Any) -> Any:
        asked.append(1)
        return said(f"reply {len(asked)} {random.random()}")

    @journaled(replay=never)
    def act(what: str) -> int:
        acted.append(what)
        return len(acted)

    model = ScriptedModel(script=script)

    def run(seed: int) -> Any:
        order = random.Random(seed)
        with journal.run("order-7", replay="strict") as run:
            found = three_levels(model, act, order).invoke({"out": [], "place": 0})["out"]
            return found, run.steps_ran

    recorded, ran = run(0)
    replays = [run(seed) for seed in range(1, repeats + 1)]

    assert ran == 3 * BRANCHES
    assert replays == [(recorded, 0)] * repeats
    assert len(asked) == len(acted) == BRANCHES
    assert len({reply for _, reply, _, _ in recorded}) == BRANCHES
    assert {step.scope for step in journal.steps("order-7")} == {
        f"node:{place}:branch/node:inner/node:leaf/" for place in range(BRANCHES)
    }


class Killed(BaseException):
    """Ends an attempt as a death would, in this process."""


@pytest.mark.parametrize("die_at", range(1, 13))
def test_branches_sent_to_one_agent_with_equal_prompts(journal, world, die_at):
    """Killed after any effect or reply, three agents with one prompt make three refunds: none too few, none too many."""
    count = []

    def refund(order: int) -> str:
        """Refund an order."""
        world.act("refund")
        live()
        return "refunded"

    def live() -> None:
        count.append(1)
        if len(count) == die_at:
            raise Killed

    script = turns(calling("refund", order=7), said())
    model = ScriptedModel(script=lambda messages: (live(), script(messages))[1])
    agent = create_agent(
        model, [refund], middleware=[JournalMiddleware(policies={"refund": never(recover=world.recover)})]
    )
    graph = StateGraph(MessagesState)
    graph.add_node("plan", lambda state: {"messages": []})
    graph.add_node("agent", agent)
    graph.add_edge(START, "plan")
    graph.add_conditional_edges("plan", lambda state: [Send("agent", QUESTION) for _ in range(3)], ["agent"])
    made = graph.compile()

    try:
        with journal.run("order-7", replay="strict"):
            made.invoke(QUESTION)
    except Killed:
        with journal.run("order-7", replay="strict"):
            made.invoke(QUESTION)

    assert world.done == ["refund"] * 3
    with journal.run("order-7", offline=True) as run:
        made.invoke(QUESTION)
    assert (run.steps_ran, run.steps_read_back) == (0, 9)


def test_parallel_nodes_of_which_one_is_ahead(journal):
    """A node that is recorded further than the one beside it is no sign that the run has left its record."""
    acted, fail = [], [True]

    @journaled(replay=keyed)
    def act(what: str) -> str:
        acted.append(what)
        return what

    def slow(state: Gathered) -> Any:
        time.sleep(0.05)
        if fail:
            raise ConnectionError(fail.pop())
        return {
            "out": [journaled_model(ScriptedModel(script=turns(said("slow")))).invoke("go").text, act("slow")]
        }

    def fast(state: Gathered) -> Any:
        return {
            "out": [
                journaled_model(ScriptedModel(script=turns(said("fast")))).invoke("go").text,
                act("fast"),
                act("fast"),
            ]
        }

    graph = StateGraph(Gathered)
    graph.add_node("slow", slow)
    graph.add_node("fast", fast)
    graph.add_edge(START, "slow")
    graph.add_edge(START, "fast")
    made = graph.compile()
    with pytest.raises(ConnectionError), journal.run("order-7", replay="strict"):
        made.invoke({"out": [], "place": 0})

    with journal.run("order-7", replay="strict"):
        found = made.invoke({"out": [], "place": 0})["out"]

    assert sorted(found) == ["fast", "fast", "fast", "slow", "slow"]
    assert acted == ["fast", "fast", "slow"]


def test_equal_replies_of_two_nodes_side_by_side(journal, world):
    """Two pairs of nodes of one graph, whose models give the same reply with the same call id: both effects are meant."""

    def refund(order: int) -> str:
        """Refund an order."""
        return world.act("refund")

    class Both(TypedDict):
        left: Annotated[list[Any], operator.add]
        right: Annotated[list[Any], operator.add]

    def asking(side: str) -> Any:
        model = journaled_model(ScriptedModel(script=turns(calling("refund", order=7), said())))
        return lambda state: {side: [model.invoke("refund 7")]}

    graph = StateGraph(Both)
    for side in ("left", "right"):
        graph.add_node(f"ask-{side}", asking(side))
        graph.add_node(f"do-{side}", JournalToolNode([refund], never=[refund], messages_key=side))
        graph.add_edge(START, f"ask-{side}")
        graph.add_edge(f"ask-{side}", f"do-{side}")
    made = graph.compile()

    with journal.run("order-7"):
        made.invoke({"left": [], "right": []})
    with journal.run("order-7", replay="strict", offline=True) as run:
        made.invoke({"left": [], "right": []})

    assert world.done == ["refund", "refund"]
    assert (run.steps_ran, run.steps_read_back) == (0, 4)


def test_a_node_that_is_retried_meets_its_scope_from_the_beginning(journal):
    """What a node did before it failed is read back when it is retried, and what another invocation does counts on."""
    acted, fails = [], [ValueError(), None]

    @journaled(replay=safe)
    def act() -> int:
        acted.append(1)
        return len(acted)

    def node(state: Gathered) -> Any:
        found = [act(), act()]
        if (error := fails.pop(0) if fails else None) is not None:
            raise error
        return {"out": found}

    graph = StateGraph(Gathered)
    graph.add_node("node", node, retry_policy=RetryPolicy(initial_interval=0.001, retry_on=ValueError))
    graph.add_edge(START, "node")
    made = graph.compile()

    with journal.run("order-7"):
        first, second = (made.invoke({"out": [], "place": 0})["out"] for _ in range(2))

    assert (first, second) == ([1, 2], [3, 4])
