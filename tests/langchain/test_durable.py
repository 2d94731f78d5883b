"""``run_durable`` and ``arun_durable``: what they refuse, what they leave alone, and how they get on with checkpointers."""

import copy
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import SummarizationMiddleware
from langchain_core.language_models import FakeListLLM
from langchain_core.messages import HumanMessage
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableConfig
from langgraph.errors import GraphBubbleUp
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode

from gnl_langchain import JournalMiddleware, journaled_model
from gnl_middleware import (
    Journal,
    RunInputMismatchError,
    UnjournaledCallError,
)
from tests.langchain.refunding import refunding, refunding_agent
from tests.langchain.scripted import QUESTION, ScriptedModel, calling, said, texts, turns
from tests.worlds import Log


def graph(ask: Any, tools: Any = None) -> Any:
    """A hand-written graph whose node asks a model."""
    made = StateGraph(MessagesState)
    made.add_node("model", ask)
    made.add_edge(START, "model")
    if tools is None:
        made.add_edge("model", END)
        return made.compile()
    made.add_node("tools", tools)
    made.add_conditional_edges("model", lambda state: "tools" if state["messages"][-1].tool_calls else END)
    made.add_edge("tools", "model")
    return made.compile()


class TestWhatEscapedTheJournalIsRefused:
    def refused(self, durable, journal, runnable, kind, given=QUESTION):
        with pytest.raises(UnjournaledCallError, match="is not journalled") as caught:
            durable(runnable, given, run_id="order-7", journal=journal)
        assert isinstance(caught.value, GraphBubbleUp)
        assert caught.value.kind == kind

    def test_a_plain_agent(self, durable, journal, effects):
        """An agent without JournalMiddleware is refused before its model is asked."""
        model = ScriptedModel(script=turns(said()))

        self.refused(durable, journal, create_agent(model, [refunding(effects)]), "model")

        assert model.asked == []

    def test_a_plain_model_in_a_node(self, durable, journal):
        """So is a model that a node of a hand-written graph calls."""
        model = ScriptedModel(script=turns(said()))

        self.refused(
            durable, journal, graph(lambda state: {"messages": [model.invoke(state["messages"])]}), "model"
        )

        assert model.asked == []

    def test_a_plain_model_whose_refusal_is_swallowed(self, durable, journal):
        """``except Exception`` around the model cannot hide the refusal: the caller gets it."""
        model = ScriptedModel(script=turns(said()))

        def ask(state: Any) -> Any:
            try:
                return {"messages": [model.invoke(state["messages"])]}
            except Exception as error:  # noqa: BLE001
                return {"messages": [("ai", f"sorry: {error}")]}

        self.refused(durable, journal, graph(ask), "model")

        assert model.asked == []

    def test_a_plain_stream(self, durable, journal):
        """A model that is streamed is refused before its first chunk."""
        model = ScriptedModel(script=turns(said()))

        def ask(state: Any) -> Any:
            return {"messages": [sum_of(model.stream(state["messages"]))]}

        self.refused(durable, journal, graph(ask), "model")

        assert model.asked == []

    def test_a_plain_tool(self, durable, journal, effects):
        """A tool in a plain ToolNode is refused before its body, whatever the node does with errors."""
        model = journaled_model(ScriptedModel(script=turns(calling("refund", order=7), said())))
        tools = ToolNode([refunding(effects)], handle_tool_errors=True)

        self.refused(
            durable,
            journal,
            graph(lambda state: {"messages": [model.invoke(state["messages"])]}, tools),
            "tool",
        )

        assert effects.lines() == []
        assert len(model.asked) == 1

    def test_a_text_completion_model(self, durable, journal):
        """A model without chat messages has no journalled form."""
        chain = ChatPromptTemplate.from_template("Refund {order}") | FakeListLLM(responses=["Done."])

        self.refused(durable, journal, chain, "model", given={"order": 7})

    def test_the_model_of_another_middleware(self, durable, journal, effects):
        """A SummarizationMiddleware with a plain model is refused before that model is asked."""
        summariser = ScriptedModel(script=turns(said("A summary.")))

        self.refused(durable, journal, summarising_agent(effects, summariser), "model")

        assert summariser.asked == []
        assert effects.lines() == ["refund 7"]

    def test_it_leaves_nothing_that_nobody_awaited(self, durable, journal):
        """One handler of ours listens in a run: LangChain leaves the coroutines of those that stand behind one that refuses."""
        listening: list[str] = []

        def look(state: Any, config: RunnableConfig) -> Any:
            listening.extend(type(handler).__name__ for handler in config["callbacks"].handlers)
            return {"messages": [said()]}

        durable(graph(look), QUESTION, run_id="order-7", journal=journal)

        assert listening == ["JournalGuard"]


def sum_of(chunks: Any) -> Any:
    first, *others = chunks
    for chunk in others:
        first += chunk
    return first


def summarising_agent(effects: Log, summariser: Any) -> Any:
    model = ScriptedModel(script=lambda messages: said() if len(messages) > 1 else calling("refund", order=7))
    summarising = SummarizationMiddleware(summariser, trigger=("messages", 3), keep=("messages", 2))
    return create_agent(
        model, [refunding(effects)], middleware=[summarising, JournalMiddleware(never=["refund"])]
    )


def test_the_journalled_model_of_another_middleware(durable, journal, effects):
    """With a journalled model SummarizationMiddleware works, and its summary is read back on replay."""
    summariser = ScriptedModel(script=turns(said("A summary.")))
    agent = summarising_agent(effects, journaled_model(summariser))
    first = durable(agent, QUESTION, run_id="order-7", journal=journal)

    second = durable(agent, QUESTION, run_id="order-7", journal=journal, offline=True)

    assert any("A summary." in text for text in texts(first["messages"]))
    assert texts(second["messages"]) == texts(first["messages"])
    assert len(summariser.asked) == 1
    assert effects.lines() == ["refund 7"]


def test_calls_inside_a_journalled_tool_are_part_of_it(durable, journal):
    """What a tool's body calls is recorded as the tool: a plain model in there is not refused and not asked twice."""
    inner = ScriptedModel(script=turns(said("42")))

    def consult(question: str) -> str:
        """Ask an expert."""
        return inner.invoke(question).text

    model = ScriptedModel(script=turns(calling("consult", question="?"), said()))
    agent = create_agent(model, [consult], middleware=[JournalMiddleware(safe=[consult])])
    durable(agent, QUESTION, run_id="order-7", journal=journal)

    result = durable(agent, QUESTION, run_id="order-7", journal=journal)

    assert texts(result["messages"])[-2:] == ["42", "Done."]
    assert len(inner.asked) == 1


class TestTheInput:
    def test_another_input_is_refused(self, durable, journal, effects):
        """A run id names one job: with another input nothing is asked, in either mode."""
        model, agent = refunding_agent(effects)
        durable(agent, QUESTION, run_id="order-7", journal=journal)

        for replay in ("lenient", "strict"):
            with pytest.raises(RunInputMismatchError, match="another input"):
                durable(
                    agent,
                    {"messages": [("user", "refund 8")]},
                    run_id="order-7",
                    journal=journal,
                    replay=replay,
                )

        assert len(model.asked) == 2

    @pytest.mark.parametrize(
        "same",
        [
            {"messages": [{"role": "user", "content": "please refund order 7"}]},
            {"messages": [("user", "please refund order 7")]},
        ],
        ids=["dictionary", "pair"],
    )
    def test_the_same_input_is_the_same_job(self, durable, journal, effects, same):
        """Built anew by each worker, an equal input resumes the run."""
        model, agent = refunding_agent(effects)
        durable(agent, copy.deepcopy(same), run_id="order-7", journal=journal)

        durable(agent, copy.deepcopy(same), run_id="order-7", journal=journal)

        assert len(model.asked) == 2

    def test_messages_with_new_ids_are_the_same_input(self, durable, journal, effects):
        """Message objects get ids that LangChain makes up; they are no other input."""
        model, agent = refunding_agent(effects)
        durable(agent, {"messages": [HumanMessage("refund 7", id="a")]}, run_id="order-7", journal=journal)

        durable(agent, {"messages": [HumanMessage("refund 7", id="b")]}, run_id="order-7", journal=journal)

        assert len(model.asked) == 2


def test_a_chain_is_durable_too(durable, journal):
    """Any runnable will do: a prompt piped into a journalled model is read back like an agent."""
    model = ScriptedModel(script=turns(said()))
    chain = ChatPromptTemplate.from_template("Refund {order}") | journaled_model(model)
    first = durable(chain, {"order": 7}, run_id="order-7", journal=journal)

    second = durable(chain, {"order": 7}, run_id="order-7", journal=journal, offline=True)

    assert (first.text, second.text) == ("Done.", "Done.")
    assert len(model.asked) == 1


def test_a_path_is_a_journal(durable, tmp_path, effects):
    """Wherever a journal is taken, a path does."""
    model, agent = refunding_agent(effects)
    for _ in range(2):
        durable(agent, QUESTION, run_id="order-7", journal=str(tmp_path / "runs.db"))

    with Journal(tmp_path / "runs.db") as journal:
        assert [(run.run_id, run.attempts) for run in journal.runs()] == [("order-7", 2)]
    assert len(model.asked) == 2
