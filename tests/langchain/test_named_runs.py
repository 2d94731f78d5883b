"""The configuration of a durable run: it is left as it was, and names the run for code that carries no context."""

import asyncio
import threading
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.callbacks import BaseCallbackHandler, CallbackManager
from langchain_core.runnables import RunnableConfig

from gnl_langchain import JournalMiddleware, journaled_model
from gnl_middleware import NoActiveRunError
from tests.langchain.refunding import refunding_agent
from tests.langchain.scripted import QUESTION, ScriptedModel, calling, said, texts, turns


class Counting(BaseCallbackHandler):
    """Counts the models that it hears start."""

    def __init__(self) -> None:
        self.started = 0

    def on_chat_model_start(self, *args: Any, **kwargs: Any) -> None:
        self.started += 1


class TestTheConfiguration:
    @pytest.mark.parametrize("kind", ["list", "manager"])
    def test_it_is_left_as_it_was(self, durable, journal, effects, kind):
        """The caller's configuration, its lists and its callback manager are not changed; its callbacks are called."""
        counting = Counting()
        callbacks = (
            [counting] if kind == "list" else CallbackManager([counting], inheritable_handlers=[counting])
        )
        handlers = callbacks if kind == "list" else callbacks.handlers
        config = {"callbacks": callbacks, "tags": ["a"], "configurable": {"user": "u"}, "metadata": {"m": 1}}
        _, agent = refunding_agent(effects)

        durable(agent, QUESTION, run_id="order-7", journal=journal, config=config)

        assert config == {
            "callbacks": callbacks,
            "tags": ["a"],
            "configurable": {"user": "u"},
            "metadata": {"m": 1},
        }
        assert handlers == [counting]
        assert counting.started == 2

    def test_tools_see_it_and_the_run_id(self, durable, journal):
        """What the caller configured reaches the tools, next to the run's id."""
        seen = {}

        def look(config: Any) -> str:
            """Look."""
            seen.update(config["configurable"])
            return "seen"

        look.__annotations__["config"] = RunnableConfig
        model = ScriptedModel(script=turns(calling("look"), said()))
        agent = create_agent(model, [look], middleware=[JournalMiddleware(safe=[look])])

        durable(agent, QUESTION, run_id="order-7", journal=journal, config={"configurable": {"user": "u"}})

        assert (seen["user"], seen["gnl_run_id"]) == ("u", "order-7")


def in_thread(function: Any) -> Any:
    """Run a function in a thread that knows nothing of the code that started it."""
    found: list[Any] = []

    def work() -> None:
        try:
            found.append(function())
        except BaseException as error:  # noqa: BLE001
            found.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    return found[0]


class TestARunThatIsNamedInTheConfiguration:
    named = {"configurable": {"gnl_run_id": "order-7"}}  # noqa: RUF012

    def test_an_agent_in_a_raw_thread(self, journal, effects):
        """A thread of one's own carries no context: the run is found by its id in the configuration."""
        model, agent = refunding_agent(effects)

        with journal.run("order-7"):
            result = in_thread(lambda: agent.invoke(QUESTION, self.named))

        assert texts(result["messages"])[-1] == "Done."
        assert [step.kind for step in journal.steps("order-7")] == ["model", "tool", "model"]
        assert len(model.asked) == 2

    def test_a_model_in_a_raw_thread(self, journal):
        """A model called by itself is found its run in the same way."""
        model = journaled_model(ScriptedModel(script=turns(said())))

        with journal.run("order-7"):
            reply = in_thread(lambda: model.invoke("refund 7", self.named))

        assert getattr(reply, "text", reply) == "Done."
        assert [step.kind for step in journal.steps("order-7")] == ["model"]

    def test_a_stream_of_a_model_in_a_raw_thread(self, journal):
        """So is one that is streamed."""
        model = journaled_model(ScriptedModel(script=turns(said("one two"))))

        with journal.run("order-7"):
            chunks = in_thread(lambda: [chunk.text for chunk in model.stream("refund 7", self.named)])

        assert chunks == ["one ", "two ", ""]
        assert [step.kind for step in journal.steps("order-7")] == ["model"]

    @pytest.mark.parametrize("call", ["ainvoke", "astream"])
    def test_a_model_on_an_event_loop_of_its_own(self, journal, call):
        """Nor does another thread's event loop need any context."""
        model = journaled_model(ScriptedModel(script=turns(said("one two"))))

        async def ask() -> str:
            if call == "ainvoke":
                return (await model.ainvoke("refund 7", self.named)).text
            return "".join([chunk.text async for chunk in model.astream("refund 7", self.named)])

        with journal.run("order-7"):
            text = in_thread(lambda: asyncio.run(ask()))

        assert str(text).strip() == "one two"
        assert [step.kind for step in journal.steps("order-7")] == ["model"]

    @pytest.mark.parametrize("mode", ["messages", "values"])
    def test_a_stream_that_is_consumed_in_another_thread(self, journal, effects, mode):
        """A generator made inside the run and consumed elsewhere is journalled all the same."""
        _, agent = refunding_agent(effects)

        with journal.run("order-7"):
            chunks = agent.stream(QUESTION, self.named, stream_mode=mode)
            parts = in_thread(lambda: list(chunks))

        assert isinstance(parts, list), parts
        assert [step.kind for step in journal.steps("order-7")] == ["model", "tool", "model"]

    def test_a_tool_that_starts_a_thread(self, durable, journal, effects):
        """``run_durable`` puts the id there, so a tool's thread that hands its configuration on stays in the run."""
        inner_model, inner = refunding_agent(effects)

        def delegate(config: RunnableConfig) -> str:
            """Hand on."""
            named = {"configurable": {"gnl_run_id": config["configurable"]["gnl_run_id"]}}
            result = in_thread(lambda: inner.invoke(QUESTION, named))
            return str(result["messages"][-1].text)

        model = ScriptedModel(script=turns(calling("delegate"), said()))
        agent = create_agent(model, [delegate], middleware=[JournalMiddleware(safe=[delegate])])

        durable(agent, QUESTION, run_id="order-7", journal=journal)

        assert len(inner_model.asked) == 2
        assert effects.lines() == ["refund 7"]
        assert [step.name for step in journal.steps("order-7") if step.kind == "tool"] == [
            "delegate",
            "refund",
        ]

    def test_a_run_that_is_not_open_is_an_error(self, journal, effects):
        """The configuration selects among the runs that are open; it opens none."""
        model, agent = refunding_agent(effects)

        with pytest.raises(NoActiveRunError):
            agent.invoke(QUESTION, self.named)

        assert model.asked == []

    def test_a_models_contradiction_is_an_error(self, journal):
        """The same for a model that is called by itself."""
        model = journaled_model(ScriptedModel(script=turns(said())))

        with journal.run("order-8"), pytest.raises(ValueError, match="names run 'order-7'"):
            model.invoke("refund 7", self.named)

        assert model.asked == []

    def test_a_contradiction_is_an_error(self, journal, effects):
        """Named another run than the one that is open around the call, nothing runs."""
        model, agent = refunding_agent(effects)

        with (
            journal.run("order-8"),
            pytest.raises(ValueError, match="names run 'order-7', but run 'order-8' is open"),
        ):
            agent.invoke(QUESTION, self.named)

        assert model.asked == []
