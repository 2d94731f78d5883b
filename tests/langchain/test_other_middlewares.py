"""LangChain's own middlewares and structured output around the journal: recorded and replayed as without it."""

import asyncio
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import (
    ContextEditingMiddleware,
    LLMToolSelectorMiddleware,
    ModelCallLimitMiddleware,
    PIIMiddleware,
    TodoListMiddleware,
    ToolCallLimitMiddleware,
)
from langchain.agents.structured_output import ToolStrategy
from langchain_core.messages import AIMessage

from gnl_langchain import JournalMiddleware, journaled_model
from tests.langchain.asking import Price
from tests.langchain.driving import WAYS, drive
from tests.langchain.scripted import ScriptedModel, calling, said, texts, turns


def refund(order: int) -> str:
    """Refund an order."""
    return f"refunded {order}, told a@b.example"


def cancel(order: int) -> str:
    """Cancel an order."""
    return f"cancelled {order}"


AROUND: dict[str, Any] = {
    "todo list": TodoListMiddleware,
    "limits": lambda: [ModelCallLimitMiddleware(run_limit=5), ToolCallLimitMiddleware(run_limit=5)],
    "context editing": ContextEditingMiddleware,
    "redaction": lambda: PIIMiddleware("email", apply_to_tool_results=True),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", AROUND)
def test_they_work_around_the_journal(journal, name, way):
    """What another middleware does to requests and results is done again on replay, and nobody is asked twice."""
    made = AROUND[name]()
    around = made if isinstance(made, list) else [made]
    script = turns(calling("refund", order=7), calling("refund", order=8), said())
    model = ScriptedModel(script=script)
    extra = ["write_todos"] if name == "todo list" else []
    agent = create_agent(model, [refund], middleware=[*around, JournalMiddleware(never=[refund], safe=extra)])

    recorded = drive(journal, agent, way)
    replayed = drive(journal, agent, way, replay="strict")

    assert texts(replayed.state["messages"]) == texts(recorded.state["messages"])
    assert (recorded.ran, replayed.ran, len(model.asked)) == (5, 0, 3)
    assert any("a@b.example" in text for text in texts(recorded.state["messages"])) is (name != "redaction")


@pytest.mark.parametrize("way", WAYS)
def test_a_tool_selector_with_a_journalled_model(journal, way):
    """The selection is a step of its own; the tools that it leaves out are labelled all the same."""
    chosen = calling("ToolSelectionResponse", tools=["refund"])
    selector = ScriptedModel(script=lambda messages: chosen, model_name="selector")
    model = ScriptedModel(script=turns(calling("refund", order=7), said()))
    selecting = LLMToolSelectorMiddleware(model=journaled_model(selector), max_tools=1)
    journaling = JournalMiddleware(never=[refund], safe=[cancel])
    agent = create_agent(model, [refund, cancel], middleware=[selecting, journaling])

    recorded = drive(journal, agent, way)
    replayed = drive(journal, agent, way, replay="strict")

    assert texts(replayed.state["messages"]) == texts(recorded.state["messages"])
    assert (len(selector.asked), len(model.asked), replayed.ran) == (2, 2, 0)


@pytest.mark.parametrize("way", WAYS)
def test_structured_output_by_a_tool_needs_no_label(journal, effects, way):
    """The tool that carries a structured answer is never executed: it needs no label, and the answer is read back."""
    answer = calling("Price", amount=42, currency="EUR")
    model = ScriptedModel(script=turns(calling("look", order=7), answer))

    def look(order: int) -> str:
        """Look an order up."""
        effects.add("looked")
        return "42 EUR"

    agent = create_agent(
        model, [look], middleware=[JournalMiddleware(safe=[look])], response_format=ToolStrategy(Price)
    )

    recorded = drive(journal, agent, way)
    replayed = drive(journal, agent, way, offline=True)

    assert recorded.state["structured_response"] == Price(amount=42, currency="EUR")
    assert replayed.state["structured_response"] == recorded.state["structured_response"]
    assert (effects.lines(), len(model.asked), replayed.ran) == (["looked"], 2, 0)


@pytest.mark.parametrize("call", ["batch", "abatch"])
def test_a_batch_of_equal_and_other_requests(journal, call):
    """Requests that run at once are told apart by what they ask; equal ones get the replies in any order."""
    model = ScriptedModel(script=lambda messages: AIMessage(f"re: {messages[-1].content}"))
    journaled, asked = journaled_model(model), ["a", "b", "a", "c", "a"]
    told, ran = [], []

    for _ in range(2):
        with journal.run("run", replay="strict") as run:
            made = journaled.batch(asked) if call == "batch" else asyncio.run(journaled.abatch(asked))
        told.append([message.text for message in made])
        ran.append(run.steps_ran)

    assert told == [[f"re: {question}" for question in asked]] * 2
    assert ran == [5, 0]
    assert len(model.asked) == 5
