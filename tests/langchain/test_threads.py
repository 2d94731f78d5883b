"""``run_durable`` on threads of a checkpointer: the input is given once, and nothing that was done is done again."""

import sqlite3
from contextlib import closing

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command

from gnl_langchain import JournalMiddleware, run_durable
from gnl_middleware import Done, Journal, NotDone, never
from tests.langchain.processes import in_process
from tests.langchain.refunding import refunding, refunding_agent
from tests.langchain.scripted import QUESTION, ScriptedModel, calling, failing_first, said, texts, turns
from tests.worlds import Log

THREAD = {"configurable": {"thread_id": "customer-1"}}


class TestWithACheckpointer:
    def test_a_second_call_goes_on_where_the_thread_stands(self, durable, journal, effects):
        """After a failure in the middle the input is not given again: one human message, no effect repeated."""
        script = turns(calling("refund", order=7), said())
        failing = failing_first(lambda messages: None, ConnectionError("500"))
        model, agent = refunding_agent(
            effects,
            script=lambda messages: (failing(messages) if len(messages) > 2 else None) or script(messages),
            checkpointer=InMemorySaver(),
        )
        with pytest.raises(ConnectionError):
            durable(agent, QUESTION, run_id="order-7", journal=journal, config=THREAD)

        result = durable(agent, QUESTION, run_id="order-7", journal=journal, config=THREAD)

        assert texts(result["messages"]) == ["please refund order 7", "", "refunded 7", "Done."]
        assert effects.lines() == ["refund 7"]
        assert [len(messages) for messages in model.asked] == [1, 3, 3]

    def test_a_finished_thread_is_left_as_it_is(self, durable, journal, effects):
        """Called again after the end, nothing is asked and nothing is added to the thread."""
        model, agent = refunding_agent(effects, checkpointer=InMemorySaver())
        first = durable(agent, QUESTION, run_id="order-7", journal=journal, config=THREAD)

        second = durable(agent, QUESTION, run_id="order-7", journal=journal, config=THREAD)

        assert texts(second["messages"]) == texts(first["messages"])
        assert len(agent.get_state(THREAD).values["messages"]) == 4
        assert len(model.asked) == 2

    def test_another_run_adds_a_turn_to_the_thread(self, durable, journal, effects):
        """A new job on an old thread gives its input, and resumes behind it."""
        model, agent = refunding_agent(
            effects,
            script=turns(calling("refund", order=7), said("First."), said("Second.")),
            checkpointer=InMemorySaver(),
        )
        durable(agent, QUESTION, run_id="order-7", journal=journal, config=THREAD)
        more = {"messages": [("user", "and thank you")]}

        for _ in range(2):
            result = durable(agent, more, run_id="thanks", journal=journal, config=THREAD)

        assert texts(result["messages"])[3:] == ["First.", "and thank you", "Second."]
        assert len(model.asked) == 3

    @pytest.mark.parametrize(
        "place",
        [
            "1:after_outcome",
            "refund:after_intent",
            "refund:after_body",
            "refund:after_outcome",
            "3:before_outcome",
        ],
    )
    def test_after_a_real_death_the_thread_holds_one_of_each(self, tmp_path, effects, place):
        """Killed with both a journal and a checkpointer: one human message, one effect, one reply."""
        died = in_process(on_a_thread, tmp_path, crash_at=place)

        ended = in_process(on_a_thread, tmp_path)
        again = in_process(on_a_thread, tmp_path)

        assert died.died
        assert ended.value == ["please refund order 7", "", "refunded 7", "Done."], ended
        assert again.value == ended.value
        assert effects.lines() == ["refund 7"]

    def test_a_pause_for_approval_is_no_failure(self, durable, journal, effects):
        """Stopped at an approval the run is paused; resumed with the decision it runs to its end, with one effect."""
        model = ScriptedModel(script=turns(calling("refund", order=7), said()))
        approving = HumanInTheLoopMiddleware(interrupt_on={"refund": True})
        agent = create_agent(
            model,
            [refunding(effects)],
            middleware=[approving, JournalMiddleware(never=["refund"])],
            checkpointer=InMemorySaver(),
        )
        paused = durable(agent, QUESTION, run_id="order-7", journal=journal, config=THREAD)
        status = journal.runs()[0].status
        decision = Command(resume={"decisions": [{"type": "approve"}]})

        result = durable(agent, decision, run_id="order-7", journal=journal, config=THREAD)

        assert (status, effects.lines(), journal.runs()[0].status) == ("paused", ["refund 7"], "completed")
        assert "__interrupt__" in paused
        assert texts(result["messages"])[-1] == "Done."
        assert len(model.asked) == 2


def on_a_thread(folder):
    """Runs in a process of its own."""
    with closing(sqlite3.connect(folder / "threads.db", check_same_thread=False)) as connection:
        effects = Log(folder / "effects")
        model = ScriptedModel(script=turns(calling("refund", order=7), said()))

        def recover(call):
            return Done("refunded 7") if effects.lines() else NotDone()

        journaling = JournalMiddleware(policies={"refund": never(recover=recover)})
        agent = create_agent(
            model, [refunding(effects)], middleware=[journaling], checkpointer=SqliteSaver(connection)
        )
        with Journal(folder / "runs.db") as journal:
            result = run_durable(agent, QUESTION, run_id="order-7", journal=journal, config=THREAD)
    return texts(result["messages"])
