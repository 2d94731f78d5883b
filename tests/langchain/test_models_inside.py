"""``journaled_model`` on what LangChain builds around a model: the models inside are found, and what holds none is refused."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.chat_models import init_chat_model
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import (
    ConfigurableField,
    RouterRunnable,
    RunnableBranch,
    RunnableLambda,
    RunnableParallel,
    RunnablePassthrough,
)

from gnl_langchain import JournalMiddleware, journaled_model, run_durable
from gnl_middleware import DivergenceError, safe
from tests.langchain.asking import ASKED, QUESTION, TEXT, Price, merged, quote
from tests.langchain.scripted import ScriptedModel, failing_first, said, turns
from tests.langchain.test_journaled_models import shown

AROUND: dict[str, Callable[[Any], Any]] = {
    "binding": lambda model: model.bind(stop=["x"]),
    "binding in a binding": lambda model: model.bind(stop=["x"]).with_config(tags=["quoted"]),
    "retry": lambda model: model.with_retry(),
    "fallbacks": lambda model: model.with_fallbacks([ScriptedModel(script=turns(said("never asked")))]),
    "chain": lambda model: ChatPromptTemplate.from_messages([("user", "{q}")]) | model | StrOutputParser(),
    "parallel": lambda model: RunnableParallel(a=model, b=RunnablePassthrough()),
    "assigned": lambda model: RunnablePassthrough.assign(a=RunnableLambda(lambda given: given["q"]) | model),
    "branch": lambda model: RunnableBranch((lambda given: False, RunnableLambda(str)), model),
    "router": lambda model: RouterRunnable({"a": model, "b": RunnableLambda(str)}),
    "each": lambda model: model.map(),
    "field": lambda model: model.configurable_fields(model_name=ConfigurableField("which")),
    "alternatives": lambda model: model.configurable_alternatives(
        ConfigurableField("who"), other=lambda: ScriptedModel(script=turns(said("other")))
    ),
}
GIVEN: dict[str, Any] = {
    "chain": {"q": QUESTION},
    "assigned": {"q": QUESTION},
    "router": {"key": "a", "input": QUESTION},
    "each": [QUESTION],
}


def without_ids(value: Any) -> Any:
    return str(shown(value))


@pytest.mark.parametrize("around", AROUND)
def test_a_model_is_found_wherever_it_is(journal, around):
    """Bound, retried, chosen, mapped or in a chain: the same result as without us, one step, and a replay asks nobody."""
    model = ScriptedModel(script=turns(said("It has cost 42.")))
    plain = AROUND[around](model)
    given = GIVEN.get(around, QUESTION)
    unwrapped = without_ids(plain.invoke(given))
    found = journaled_model(plain)

    with journal.run("run") as first:
        recorded = without_ids(found.invoke(given))
    with journal.run("run", offline=True) as second:
        replayed = without_ids(found.invoke(given))

    assert recorded == replayed == unwrapped
    assert (first.steps_ran, second.steps_ran, len(model.asked)) == (1, 0, 2)


@pytest.mark.parametrize("method", ["json_schema", "function_calling", "json_mode"])
@pytest.mark.parametrize("raw", [False, True], ids=["parsed", "raw too"])
@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
def test_a_model_inside_of_structured_output(journal, model, server, method, raw):
    """The order in which a user wraps is free: a model that was told its format first is journalled all the same."""
    plain = model.with_structured_output(Price, method=method, include_raw=raw)
    unwrapped = shown(plain.invoke(QUESTION))
    found = journaled_model(plain)

    with journal.run("run"):
        recorded = shown(found.invoke(QUESTION))
    with journal.run("run", offline=True) as run:
        replayed = shown(found.invoke(QUESTION))

    assert recorded == replayed == unwrapped
    assert (run.steps_read_back, len(server.requests)) == (1, 2)


def test_the_fallback_of_a_chosen_alternative_is_journalled(journal):
    """What is configured when it is called is found as well: an alternative, and the fallback of a model that fails."""
    failing = ScriptedModel(
        script=failing_first(turns(said()), ConnectionError("503"), ConnectionError("503"))
    )
    other = ScriptedModel(script=turns(said("other")))
    chosen = failing.configurable_alternatives(
        ConfigurableField("who"), other=failing.with_fallbacks([other])
    )
    found = journaled_model(chosen).with_config(configurable={"who": "other"})

    with journal.run("run"):
        recorded = found.invoke(QUESTION).text
    with journal.run("run", offline=True):
        assert found.invoke(QUESTION).text == recorded == "other"
    assert (len(failing.asked), len(other.asked)) == (1, 1)


@pytest.mark.parametrize(
    "thing",
    [
        RunnableLambda(str),
        ChatPromptTemplate.from_messages([("user", "{q}")]) | StrOutputParser(),
        RunnableParallel(a=RunnablePassthrough()),
    ],
    ids=["function", "chain", "parallel"],
)
def test_a_chain_that_holds_no_model_is_refused(thing):
    """To pretend that it is journalled would let calls pass unrecorded."""
    with pytest.raises(TypeError, match="no chat model"):
        journaled_model(thing)


def configurable(server: Any, **options: Any) -> Any:
    return init_chat_model(
        "gpt-4o-mini",
        model_provider="openai",
        configurable_fields=options.pop("configurable_fields", ("model", "temperature")),
        base_url=server.base_url,
        api_key="test",
        max_retries=0,
        stream_usage=True,
        **options,
    )


CONFIGURED: dict[str, Callable[[Any], Any]] = {
    **ASKED,
    "batch": lambda model: model.batch([QUESTION]),
    "abatch": lambda model: asyncio.run(model.abatch([QUESTION])),
    "bind_tools": lambda model: model.bind_tools([quote]).invoke(QUESTION),
    "bind_tools-astream": lambda model: merged(ASKED["astream"](model.bind_tools([quote]))),
    "with_config": lambda model: model.with_config(configurable={"temperature": 0.5}).invoke(QUESTION),
    "json_schema": lambda model: model.with_structured_output(Price).invoke(QUESTION),
    "function_calling": lambda model: model.with_structured_output(
        Price, method="function_calling", include_raw=True
    ).invoke(QUESTION),
    "json_mode": lambda model: model.with_structured_output(Price, method="json_mode").invoke(QUESTION),
    "with_retry": lambda model: model.with_retry().invoke(QUESTION),
    "chosen": lambda model: model.invoke(QUESTION, {"configurable": {"model": "gpt-4.1"}}),
}


@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
@pytest.mark.parametrize("use", CONFIGURED)
def test_a_model_that_is_chosen_when_it_is_asked(journal, server, use):
    """`init_chat_model` with configurable fields: each use gives the same unwrapped, journalled and read back."""
    model, call = configurable(server), CONFIGURED[use]
    unwrapped, sent = shown(call(model)), list(server.requests)
    found = journaled_model(model)

    with journal.run("run"):
        recorded = shown(call(found))
    with journal.run("run", offline=True) as run:
        replayed = shown(call(found))

    assert recorded == replayed == unwrapped
    assert server.requests == sent * 2
    assert run.steps_read_back == 1
    assert type(model).__name__ == type(found).__name__


def test_the_choice_is_part_of_the_request(journal, server):
    """Another model chosen for a recorded question is a drift, and strict mode refuses it."""
    found = journaled_model(configurable(server))
    with journal.run("run"):
        found.invoke(QUESTION)

    with pytest.raises(DivergenceError, match=r"gpt-4\.1"), journal.run("run", replay="strict"):
        found.invoke(QUESTION, {"configurable": {"model": "gpt-4.1"}})


@pytest.mark.parametrize("fields", ["any", ("model",)], ids=["any field", "one field"])
def test_an_agent_with_a_configurable_model(journal, server, fields):
    """`create_agent` takes such a model; what names the run in the configuration is never sent to the provider."""
    agent = create_agent(
        configurable(server, configurable_fields=fields, config_prefix="chat" if fields == "any" else ""),
        [safe(quote)],
        middleware=[JournalMiddleware()],
    )
    asked = {"messages": [("user", QUESTION)]}
    replies = journaled_model(configurable(server, configurable_fields="any"))

    with pytest.raises(AssertionError, match="a model runs no tool"):
        run_durable(agent, asked, run_id="run", journal=journal)
    plain = run_durable(replies, QUESTION, run_id="plain", journal=journal)

    assert plain.text == TEXT
    assert [json.loads(request)["model"] for request in server.requests] == ["gpt-4o-mini"] * 2
    assert not [request for request in server.requests if b"gnl_run_id" in request]
