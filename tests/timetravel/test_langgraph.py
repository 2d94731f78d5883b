"""Forks of hand-written graphs: rounds, nodes that run side by side, and checkpoints of threads of their own."""

import operator
from typing import Annotated, TypedDict

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph

from gnl_langchain import journaled_model, run_durable
from gnl_langgraph import JournalToolNode
from gnl_middleware import Done, ForkedEffectError, journaled, never, safe
from tests.langchain.scripted import QUESTION, ScriptedModel, calling, said, turns
from tests.langgraph.programs import agent_graph

ON_BOTH = {"test_another_future"}


def ticket_graph(effects, saver=None, script=None):
    """A model node and a node of tools."""

    def look_up(order: int) -> str:
        """Look up."""
        effects.add("look_up")
        return "found"

    def charge(order: int) -> str:
        """Charge the card."""
        effects.add("charge")
        return "charged"

    model = ScriptedModel(
        script=script or turns(calling("look_up", order=7), calling("charge", order=7), said())
    )
    tools = JournalToolNode([look_up, charge], policies={"look_up": safe, "charge": never})
    return agent_graph(journaled_model(model), tools, saver), model


@pytest.mark.parametrize("checkpointed", [False, True])
def test_another_future(journal, effects, checkpointed):
    """A fork of a graph goes on from its cut, without a checkpointer or on a thread of its own."""

    def run(run_id, **options):
        saver = InMemorySaver() if checkpointed else None
        graph, model = ticket_graph(effects, saver, **options)
        config = {"configurable": {"thread_id": run_id}} if checkpointed else None
        return run_durable(graph, QUESTION, run_id=run_id, journal=journal, config=config), model

    run("order-7")
    happened = effects.lines()
    journal.fork("order-7", "b", before="charge", edits={"look_up": Done("nothing")})

    result, model = run("b", script=lambda messages: said(f"saw {messages[-1].text}"))

    assert result["messages"][-1].text == "saw nothing"
    assert (len(model.asked), effects.lines()) == (1, happened)
    apart = journal.diff("order-7", "b")
    assert (apart.what, apart.step_a.name, apart.equal_steps) == ("outcome", "look_up", 1 + checkpointed)


def test_no_effect_of_a_later_round(journal, effects):
    """A tool of a later superstep is withheld, given an outcome by a person, and the graph goes on."""
    run_durable(ticket_graph(effects)[0], QUESTION, run_id="order-7", journal=journal)
    happened = effects.lines()
    journal.fork("order-7", "b", before="charge")

    with pytest.raises(ForkedEffectError):
        run_durable(ticket_graph(effects)[0], QUESTION, run_id="b", journal=journal)
    journal.resolve("b", "charge", Done("in mind"), by="ada")
    graph, model = ticket_graph(effects)
    result = run_durable(graph, QUESTION, run_id="b", journal=journal)

    assert [message.text for message in result["messages"]][-2:] == ["in mind", "Done."]
    assert (len(model.asked), effects.lines()) == (1, happened)


class _State(TypedDict):
    out: Annotated[list[str], operator.add]


def side_by_side(effects, model):
    """Two nodes of one round, each with a model and an effect, and one node after both."""

    def node(name):
        def body(state):
            reply = model.invoke(f"what shall {name} do?")
            return {"out": [f"{reply.text}: {act(name)}"]}

        return body

    @journaled(replay=never)
    def act(name: str) -> str:
        effects.add(name)
        return f"{name} acted"

    made = StateGraph(_State)
    for name in ("left", "right"):
        made.add_node(name, node(name))
        made.add_edge(START, name)
        made.add_edge(name, "last")
    made.add_node("last", node("last"))
    return made.compile()


@pytest.mark.parametrize("cut", ["left", "right"])
def test_what_runs_in_the_same_round_is_kept(journal, effects, cut):
    """Cut in one of two nodes that run side by side: the other one is read back whole, and the round after them is not."""

    def run(run_id):
        model = ScriptedModel(script=lambda messages: said(messages[-1].text.split()[2]))
        return run_durable(
            side_by_side(effects, journaled_model(model)), {"out": []}, run_id=run_id, journal=journal
        ), model

    run("order-7")
    happened = effects.lines()
    (reply,) = [s for s in journal.steps("order-7") if s.kind == "model" and s.scope == f"node:{cut}/"]
    journal.fork("order-7", "b", before=reply.key)

    assert {(s.scope, s.kind) for s in journal.steps("b")} == {
        (f"node:{other}/", kind) for other in {"left", "right"} - {cut} for kind in ("model", "tool")
    }
    with pytest.raises(ForkedEffectError) as caught:
        run("b")
    assert caught.value.arguments == {"name": cut}
    assert effects.lines() == happened
