"""Control errors of model calls: no retry, fallback or ``except Exception`` asks another model or hides them (DESIGN 3.6)."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, ModelFallbackMiddleware, ModelRetryMiddleware
from langchain_core.messages import AIMessage
from langgraph.errors import GraphBubbleUp
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode

from gnl_langchain import JournalMiddleware, journaled_model
from gnl_langchain import errors as passing
from gnl_middleware import Journal, SideEffectRetryBlockedError, never
from tests.langchain.driving import WAYS, drive
from tests.langchain.scripted import ScriptedModel, calling, said, turns
from tests.langchain.troubles import Killed

RETRIES = {"max_retries": 2, "initial_delay": 0, "jitter": False}


@dataclass
class Case:
    """A model that meets a control error in the attempt after ``prepare``.

    Attributes:
        asked: How many live requests the attempt may send before the error.
    """

    error: type[Exception]
    script: Any = field(default_factory=lambda: turns(calling("act"), said()))
    prompts: tuple[str, str] = ("Be brief.", "Be brief.")
    options: dict[str, Any] = field(default_factory=dict)
    asked: int = 0
    prepare: Callable[[Journal, Any], Any] | None = None


def killed_once(journal: Journal, agent: Any) -> None:
    with pytest.raises(Killed):
        drive(journal, agent)


def without_file(path: Path) -> Any:
    """Reply, after the journal's file has gone."""

    def script(messages: Any) -> AIMessage:
        if path.exists():
            path.rename(path.with_suffix(".away"))
        return said()

    return script


CASES: dict[str, Callable[[Path], Case]] = {
    "blocked": lambda path: Case(passing.SideEffectRetryBlockedError, prepare=killed_once),
    "diverged": lambda path: Case(
        passing.DivergenceError,
        script=turns(said()),
        prompts=("Be brief.", "Be verbose."),
        options={"replay": "strict"},
        prepare=drive,
    ),
    "missing": lambda path: Case(passing.ReplayMissError, options={"offline": True}),
    "unserializable": lambda path: Case(
        passing.UnserializableValueError,
        script=turns(AIMessage("Done.", response_metadata={"socket": object()})),
        asked=1,
    ),
    "unavailable": lambda path: Case(passing.JournalUnavailableError, script=without_file(path), asked=1),
}

Build = Callable[[ScriptedModel, ScriptedModel, str], Any]


def act() -> str:
    """Act."""
    raise Killed


def agent_with(*middleware: Any, falls_back: bool = False) -> Build:
    def build(model: ScriptedModel, fallback: ScriptedModel, prompt: str) -> Any:
        outer = [ModelFallbackMiddleware(fallback)] if falls_back else middleware
        journaling = JournalMiddleware(policies={"act": never})
        return create_agent(model, [act], system_prompt=prompt, middleware=[*outer, journaling])

    return build


class CarelessMiddleware(AgentMiddleware):
    """Turns any exception of a model into an answer."""

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        try:
            return handler(request)
        except Exception as error:  # noqa: BLE001
            return AIMessage(f"sorry: {error}")

    async def awrap_model_call(self, request: Any, handler: Any) -> Any:
        try:
            return await handler(request)
        except Exception as error:  # noqa: BLE001
            return AIMessage(f"sorry: {error}")


def graph_with(wrap: Callable[[ScriptedModel, ScriptedModel], Any], *, careless: bool = False) -> Build:
    """A hand-written graph whose node asks a journalled model."""

    def build(model: ScriptedModel, fallback: ScriptedModel, prompt: str) -> Any:
        asked = wrap(model, fallback)
        journaling = JournalMiddleware(policies={"act": never})

        def ask(state: Any) -> Any:
            messages = [("system", prompt), *state["messages"]]
            try:
                return {"messages": [asked.invoke(messages)]}
            except Exception as error:
                if careless:
                    return {"messages": [AIMessage(f"sorry: {error}")]}
                raise

        graph = StateGraph(MessagesState)
        graph.add_node("model", ask)
        graph.add_node("tools", tool_node(journaling))
        graph.add_edge(START, "model")
        graph.add_conditional_edges(
            "model", lambda state: "tools" if state["messages"][-1].tool_calls else END
        )
        graph.add_edge("tools", "model")
        return graph.compile()

    return build


def tool_node(journaling: JournalMiddleware) -> Any:
    return ToolNode(
        [act], wrap_tool_call=journaling.wrap_tool_call, awrap_tool_call=journaling.awrap_tool_call
    )


CATCHERS: dict[str, Build] = {
    "create_agent": agent_with(),
    "ModelRetry-continue": agent_with(ModelRetryMiddleware(on_failure="continue", **RETRIES)),
    "ModelRetry-error": agent_with(ModelRetryMiddleware(on_failure="error", **RETRIES)),
    "ModelFallback": agent_with(falls_back=True),
    "with_fallbacks": graph_with(lambda model, other: journaled_model(model.with_fallbacks([other]))),
    "with_fallbacks-outside": graph_with(
        lambda model, other: journaled_model(model).with_fallbacks([journaled_model(other)])
    ),
    "with_retry": graph_with(
        lambda model, other: journaled_model(
            model.with_retry(stop_after_attempt=3, wait_exponential_jitter=False)
        )
    ),
    "except-Exception-around": agent_with(CarelessMiddleware()),
    "except-Exception": graph_with(lambda model, other: journaled_model(model), careless=True),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("catcher", CATCHERS)
@pytest.mark.parametrize("case", CASES)
def test_the_caller_gets_the_error_and_no_other_model_is_asked(journal, tmp_path, case, catcher, way):
    """A control error of a model call ends the attempt, as itself; nobody asks again or asks somebody else."""
    case = CASES[case](tmp_path / "runs.db")
    model, fallback = (
        ScriptedModel(script=case.script),
        ScriptedModel(script=turns(said("from the fallback"))),
    )
    if case.prepare is not None:
        case.prepare(journal, CATCHERS[catcher](model, fallback, case.prompts[0]))
    before = len(model.asked)

    with pytest.raises(case.error.__base__) as caught:
        drive(journal, CATCHERS[catcher](model, fallback, case.prompts[1]), way, **case.options)

    assert type(caught.value) is case.error
    assert isinstance(caught.value, GraphBubbleUp)
    assert len(model.asked) - before == case.asked
    assert fallback.asked == []


@pytest.mark.parametrize("way", WAYS)
def test_a_recorded_reply_is_not_served_while_one_of_its_calls_is_in_doubt(journal, way):
    """Settle first: nobody acts on a reply while a side effect that it asked for may have happened unseen."""
    seen = []

    class Seeing(AgentMiddleware):
        def after_model(self, state: Any, runtime: Any) -> None:
            seen.append(state["messages"][-1])

    model = ScriptedModel(script=turns(calling("act"), said()))
    build = agent_with(Seeing())
    killed_once(journal, build(model, model, "Be brief."))
    before = len(seen)

    with pytest.raises(SideEffectRetryBlockedError):
        drive(journal, build(model, model, "Be brief."), way)

    assert (before, len(seen)) == (1, 1)
