"""``journaled_model`` on the real OpenAI client: everything above the provider boundary works as without it."""

import asyncio
import itertools
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.language_models.chat_models import generate_from_stream
from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.runnables import RunnableLambda
from langchain_openai import ChatOpenAI
from pydantic import BaseModel

from gnl_langchain import journaled_model
from gnl_middleware import NoActiveRunError
from tests.langchain.asking import ASKED, QUESTION, TEXT, Price, merged, quote
from tests.langchain.scripted import ScriptedModel, said, turns


def structured(method: str, **options: Any) -> Callable[[Any], Any]:
    return lambda model: model.with_structured_output(Price, method=method, **options).invoke(QUESTION)


USES: dict[str, Callable[[Any], Any]] = {
    **ASKED,
    "batch": lambda model: model.batch([QUESTION]),
    "abatch": lambda model: asyncio.run(model.abatch([QUESTION])),
    "generate": lambda model: model.generate([[HumanMessage(QUESTION)]]).generations[0][0].message,
    "bind_tools": lambda model: model.bind_tools([quote]).invoke(QUESTION),
    "bind_tools-stream": lambda model: list(model.bind_tools([quote]).stream(QUESTION)),
    "bind_tools-ainvoke": lambda model: asyncio.run(model.bind_tools([quote]).ainvoke(QUESTION)),
    "bind": lambda model: model.bind(stop=["."]).invoke(QUESTION),
    "with_retry": lambda model: model.with_retry().invoke(QUESTION),
    "with_config": lambda model: model.with_config(tags=["quoted"]).invoke(QUESTION),
    "json_schema": structured("json_schema"),
    "json_schema-raw": structured("json_schema", include_raw=True),
    "json_schema-stream": lambda model: list(model.with_structured_output(Price).stream(QUESTION)),
    "function_calling": structured("function_calling"),
    "function_calling-raw": structured("function_calling", include_raw=True),
    "json_mode": structured("json_mode"),
    "json_mode-ainvoke": lambda model: asyncio.run(
        model.with_structured_output(Price, method="json_mode").ainvoke(QUESTION)
    ),
    "in-a-chain": lambda model: (RunnableLambda(str.upper) | model).invoke(QUESTION),
}


def shown(value: Any) -> Any:
    """What a use gave, without the ids that LangChain makes up."""
    if isinstance(value, BaseMessage):
        fields = value.model_dump()
        if not str(fields["id"]).startswith("chatcmpl"):
            fields["id"] = None
        # The parsed object may be the class's or plain data: LangChain takes either.
        parsed = fields["additional_kwargs"].get("parsed")
        if isinstance(parsed, BaseModel):
            fields["additional_kwargs"]["parsed"] = parsed.model_dump()
        return type(value).__name__, fields
    if isinstance(value, list):
        return [shown(item) for item in value]
    if isinstance(value, dict):
        return {key: shown(item) for key, item in value.items()}
    return value


# LangChain's own, also without a journal: its client streams an object where its type says that there is none.
@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
@pytest.mark.parametrize("use", USES)
def test_unwrapped_recorded_and_replayed_are_equal(journal, model, server, use):
    """Each way to use a chat model gives the same unwrapped, journalled and read back, and a replay asks nobody."""
    call, journaled = USES[use], journaled_model(model)

    unwrapped = shown(call(model))
    live = len(server.requests)
    with journal.run("run"):
        recorded = shown(call(journaled))
    sent = server.requests[live:]
    with journal.run("run") as run:
        replayed = shown(call(journaled))

    assert recorded == unwrapped
    assert replayed == unwrapped
    assert sent == server.requests[:live]
    assert len(server.requests) == 2 * live
    assert (run.steps_ran, run.steps_read_back) == (0, 1)


ASKED_WITH_TOOLS: dict[str, Callable[[Any], Any]] = {
    name: lambda model, use=use: use(model.bind_tools([quote])) for name, use in ASKED.items()
}


@pytest.mark.parametrize("uses", [ASKED, ASKED_WITH_TOOLS], ids=["text", "tools"])
@pytest.mark.parametrize("ways", list(itertools.product(ASKED, ASKED)), ids="-then-".join)
def test_recorded_in_one_way_replayed_in_another(journal, model, server, uses, ways):
    """A reply recorded by ``invoke`` answers ``stream``, and the other way round: same text, calls and usage, nobody asked."""
    journaled, (recorded_by, replayed_by) = journaled_model(model), ways
    with journal.run("run"):
        recorded = uses[recorded_by](journaled)
    live = len(server.requests)

    with journal.run("run", replay="strict") as run:
        replayed = uses[replayed_by](journaled)

    first, second = merged(recorded), merged(replayed)
    assert second.text == first.text
    assert second.tool_calls == first.tool_calls
    assert second.usage_metadata == first.usage_metadata
    assert second.usage_metadata["total_tokens"] > 0
    assert (live, len(server.requests), run.steps_ran) == (1, 1, 0)
    assert run.tokens_not_spent == first.usage_metadata["total_tokens"]


def test_a_model_that_streams_by_itself_is_journalled_once(journal, server):
    """``streaming=True`` makes ``invoke`` call the provider's stream: one step, and one request."""
    model = journaled_model(
        ChatOpenAI(
            model="gpt-4o-mini", base_url=server.base_url, api_key="test", streaming=True, stream_usage=True
        )
    )

    with journal.run("run"):
        first = model.invoke(QUESTION)
    with journal.run("run"):
        second = asyncio.run(model.ainvoke(QUESTION))

    assert (first.text, second.text) == (TEXT, TEXT)
    assert [step.kind for step in journal.steps("run")] == ["model"]
    assert len(server.requests) == 1


class SelfStreaming(ScriptedModel):
    """A model whose ``_generate`` calls its own ``_stream``, as those of some providers do."""

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **options: Any) -> Any:
        return generate_from_stream(self._stream(messages, stop, **options))


def test_a_model_that_generates_by_streaming_is_journalled_once(journal):
    """What a provider's method calls of the same model is part of the call: one step, asked once."""
    model = journaled_model(SelfStreaming(script=turns(said("one two"))))

    with journal.run("run"):
        first = model.invoke(QUESTION).text
    with journal.run("run"):
        second = model.invoke(QUESTION).text

    assert first == second == "one two "
    assert [step.kind for step in journal.steps("run")] == ["model"]
    assert len(model.asked) == 1


def test_how_a_request_is_sent_is_no_part_of_it(journal, model, server):
    """Whether and how a reply is streamed changes no setup: a strict replay by a model that streams finds the record."""
    streaming = model.model_copy(update={"streaming": True, "stream_usage": False})
    with journal.run("run"):
        journaled_model(model).invoke(QUESTION)

    with journal.run("run", replay="strict") as run:
        first = journaled_model(streaming).invoke(QUESTION)

    assert (first.text, run.steps_ran, len(server.requests)) == (TEXT, 0, 1)


def test_a_journalled_model_is_what_the_original_was(model):
    """``isinstance`` holds, the settings are equal, and the original is not touched."""
    before = dict(vars(model))

    journaled = journaled_model(model)

    assert isinstance(journaled, ChatOpenAI)
    assert type(journaled).__name__ == "ChatOpenAI"
    assert journaled._identifying_params == model._identifying_params
    assert dict(vars(model)) == before
    assert type(model) is ChatOpenAI


def test_journalling_twice_is_journalling_once(journal, model, server):
    """A model that is journalled already is returned as it is."""
    journaled = journaled_model(journaled_model(model))

    with journal.run("run"):
        journaled.invoke(QUESTION)

    assert len(journal.steps("run")) == 1
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "thing", [RunnableLambda(str), "gpt-4o-mini", object()], ids=["runnable", "text", "object"]
)
def test_what_holds_no_model_is_refused(thing):
    """There is nothing to journal in it, and to pretend otherwise would let calls pass unrecorded."""
    with pytest.raises(TypeError, match="no chat model"):
        journaled_model(thing)


def test_outside_any_run(model, server):
    """A journalled model asks for a run, unless passing through was chosen."""
    with pytest.raises(NoActiveRunError, match="no run is open"):
        journaled_model(model).invoke(QUESTION)

    reply = journaled_model(model, on_no_run="passthrough").invoke(QUESTION)

    assert reply.text == TEXT
    assert len(server.requests) == 1
