"""Where ``resume="handover"`` is not used: the loop is replayed and the log says why, or it is refused."""

import contextlib
import logging

import pytest
from langchain.agents import AgentState, create_agent
from langchain.agents.middleware import ModelRetryMiddleware, ToolRetryMiddleware
from langchain_core.runnables import RunnableLambda
from langgraph.checkpoint.memory import InMemorySaver

from gnl_langchain import JournalMiddleware, astream_durable, run_durable, stream_durable
from tests.langchain.handing_over import World, agent_in
from tests.langchain.scripted import QUESTION, ScriptedModel, calling, said, turns


@pytest.fixture
def path(tmp_path):
    """Where the journal is."""
    return tmp_path / "runs.db"


class Stateful(AgentState):
    """A state of one's own."""

    customer: str


OTHERS = {
    "another middleware around the model": {"more": [ModelRetryMiddleware()]},
    "another middleware around the tools": {"more": [ToolRetryMiddleware()]},
    "a state of one's own": {"state_schema": Stateful},
    "a checkpointer": {"checkpointer": InMemorySaver()},
    "a stop before its tools": {"interrupt_before": ["tools"], "checkpointer": InMemorySaver()},
}


class TestWhereItIsNotUsed:
    def refunded(self, path, resume="handover", more=(), given=QUESTION, options=None, **of_agent):
        def look(at: str) -> str:
            """Look."""
            return f"{at} is fine"

        model = ScriptedModel(script=turns(*(calling("look", at=str(n)) for n in range(3)), said()))
        agent = create_agent(model, [look], middleware=[*more, JournalMiddleware(safe=["look"])], **of_agent)
        config = {"configurable": {"thread_id": "1"}}
        options = {"resume": resume, "config": config, **(options or {})}
        return run_durable(agent, given, run_id="order-7", journal=path, **options), model.asked

    @pytest.mark.parametrize("options", OTHERS.values(), ids=OTHERS)
    def test_the_loop_of_other_agents_is_replayed(self, path, options, caplog):
        """Whatever has to see each turn sees it, and the log says why it takes longer."""
        with caplog.at_level(logging.WARNING):
            self.refunded(path, **options)

        assert "the agent's loop is replayed" in caplog.text

    @pytest.mark.parametrize("options", [{"lock": False}, {"stream_mode": "updates"}])
    def test_what_other_workers_or_the_caller_see_is_left_alone(self, path, options, caplog):
        """Beside other workers, and where the caller is shown each turn, the loop is replayed."""
        self.refunded(path, resume="replay", options=options)
        with caplog.at_level(logging.WARNING):
            self.refunded(path, options=options)

        assert "the agent's loop is replayed" in caplog.text

    def test_an_agent_inside_of_something_else(self, path, caplog):
        """A chain around an agent is no agent of ``create_agent``."""
        _, agent = agent_in(World())
        with caplog.at_level(logging.WARNING):
            run_durable(
                RunnableLambda(agent.invoke), QUESTION, run_id="order-7", journal=path, resume="handover"
            )

        assert "no agent of create_agent" in caplog.text

    def test_one_middleware_that_journals_is_not_told_of(self, path, caplog):
        """The agent that it is made for is handed over without a word."""
        with caplog.at_level(logging.WARNING):
            self.refunded(path)

        assert caplog.text == ""

    @pytest.mark.parametrize(
        ("options", "told"),
        [({"resume": "handover", "replay": "strict"}, "strict"), ({"resume": "hand-over"}, "choose of")],
    )
    def test_options_that_contradict_each_other(self, path, options, told):
        """A strict replay compares every turn: that and a hand-over are refused before the run is opened."""
        _, agent = agent_in(World())

        with pytest.raises(ValueError, match=told):
            run_durable(agent, QUESTION, run_id="order-7", journal=path, **options)

        assert not path.exists()

    async def test_streams(self, path):
        """A stream tells of every turn, so none is left out."""
        _, agent = agent_in(World())

        with (
            pytest.raises(ValueError, match="a stream tells"),
            contextlib.closing(
                stream_durable(agent, QUESTION, run_id="order-7", journal=path, resume="handover")
            ) as chunks,
        ):
            next(chunks)
        with pytest.raises(ValueError, match="a stream tells"):
            async for _ in astream_durable(
                agent, QUESTION, run_id="order-7", journal=path, resume="handover"
            ):
                pass
