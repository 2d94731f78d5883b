"""Models wherever they come from: asked once, recorded as they answered, read back the same."""

import asyncio
from typing import Any

import openai
import pytest
from agents import (
    Agent,
    Model,
    ModelProvider,
    ModelResponse,
    ModelRetrySettings,
    ModelSettings,
    RunConfig,
    Runner,
    Usage,
)
from agents.testing import ModelStep, ScriptedModel
from openai.types.responses import Response

from gnl_middleware import DivergenceError, never, safe
from gnl_openai_agents import DurableRunner, replies
from tests.openai_agents.driving import WAYS, run, run_streamed
from tests.openai_agents.scripted import QUIET, agent, call, effect_tool, said, turns


class Provider(ModelProvider):
    """Gives one model for any name, and remembers the names."""

    def __init__(self, given: Model) -> None:
        self.given, self.names, self.closed = given, [], 0

    def get_model(self, model_name: str | None) -> Model:
        self.names.append(model_name)
        return self.given

    async def aclose(self) -> None:
        self.closed += 1


def wherever(kind: str, given: Model) -> tuple[Agent[Any], Any]:
    """An agent, and a configuration, by which the model is found."""
    match kind:
        case "agent":
            return Agent(name="A", model=given), QUIET
        case "run_config":
            return Agent(name="A"), RunConfig(model=given, tracing_disabled=True)
        case "name":
            provider = Provider(given)
            return Agent(name="A", model="gpt-5"), RunConfig(model_provider=provider, tracing_disabled=True)
        case "run_config_name":
            provider = Provider(given)
            config = {"model": "gpt-5", "model_provider": provider, "tracing_disabled": True}
            return Agent(name="A"), config
        case _:
            return Agent(name="A"), RunConfig(model_provider=Provider(given), tracing_disabled=True)


@pytest.mark.parametrize("kind", ["agent", "run_config", "name", "run_config_name", "default"])
@pytest.mark.parametrize("way", ["run", "run_streamed"])
def test_a_model_from_anywhere_is_journalled(journal, kind, way):
    """Given to the agent or the run, as an object or by name: the second run does not ask it."""
    runner = DurableRunner(journal)
    for attempt in range(2):
        scripted = ScriptedModel([[said()]])
        asking, config = wherever(kind, scripted)
        result = WAYS[way](runner, asking, "go", run_id="order-7", run_config=config)
        assert result.final_output == "Done."
        assert len(scripted.calls) == 1 - attempt


def test_a_name_keeps_its_default_settings(journal):
    """A model that is given by name has the settings that the SDK gives such a model without us."""
    settings: list[Any] = []
    for start in (Runner.run, DurableRunner(journal).run):
        scripted = ScriptedModel([[said()]])
        asking, config = wherever("name", scripted)
        options = {} if start == Runner.run else {"run_id": "order-7"}
        asyncio.run(start(asking, "go", run_config=config, **options))
        settings.append(scripted.calls[0].model_settings)

    assert settings[0].reasoning is not None
    assert settings[0].reasoning == settings[1].reasoning


def plain(asking: Agent[Any]) -> Any:
    return asyncio.run(Runner.run(asking, "go", run_config=QUIET))


def plain_streamed(asking: Agent[Any]) -> Any:
    async def read() -> Any:
        stream = Runner.run_streamed(asking, "go", run_config=QUIET)
        async for _ in stream.stream_events():
            pass
        return stream

    return asyncio.run(read())


PLAIN = {"run": plain, "run_streamed": plain_streamed}


@pytest.mark.parametrize("way", ["run", "run_streamed"])
def test_retries_of_the_sdk_ask_the_same_step_again(journal, way):
    """Failed tries leave no outcome; the retry is the same step, and the usage counts them as without us."""
    retry = ModelRetrySettings(max_retries=2, policy=lambda context: True, backoff={"initial_delay": 0.0})

    def build() -> Agent[Any]:
        scripted = ScriptedModel([ConnectionError("down"), ConnectionError("down"), [said()]])
        return Agent(name="A", model=scripted, model_settings=ModelSettings(retry=retry))

    without, asking = PLAIN[way](build()), build()

    result = WAYS[way](DurableRunner(journal), asking, "go", run_id="order-7")

    assert result.final_output == "Done."
    assert len(asking.model.calls) == 3
    assert [step.status for step in journal.steps("order-7")] == ["done"]
    assert result.context_wrapper.usage == without.context_wrapper.usage


def test_an_error_of_ours_is_never_retried(journal, effects):
    """A retry policy that retries everything does not retry what stopped the run."""
    retries: list[Any] = []

    def policy(context: Any) -> bool:
        retries.append(context)
        return True

    def build(text: str) -> Agent[Any]:
        retry = ModelRetrySettings(max_retries=3, policy=policy, backoff={"initial_delay": 0.0})
        return agent(turns([said(text)]), instructions=text, model_settings=ModelSettings(retry=retry))

    runner = DurableRunner(journal)
    run(runner, build("one"), "go", run_id="order-7")

    with pytest.raises(DivergenceError):
        run(runner, build("two"), "go", run_id="order-7", replay="strict")

    assert retries == []


def test_a_stream_that_is_cut_is_no_outcome(journal):
    """A stream that ends without a reply is asked again on the next attempt, not read back."""
    cut = ModelStep.stream([], output=[said()])
    with pytest.raises(Exception, match="final response"):
        run_streamed(
            DurableRunner(journal), Agent(name="A", model=ScriptedModel([cut])), "go", run_id="order-7"
        )

    result = run_streamed(
        DurableRunner(journal), Agent(name="A", model=ScriptedModel([[said()]])), "go", run_id="order-7"
    )

    assert result.final_output == "Done."


@pytest.mark.parametrize("recorded", ["run", "run_streamed"])
def test_events_are_given_again(journal, effects, recorded):
    """A streamed run gives the events that were recorded; of a reply that came whole, those that the SDK needs."""

    async def events(runner: DurableRunner) -> list[Any]:
        stream = runner.run_streamed(
            agent(turns([call("refund", order="7")], [said()]), effect_tool(effects)),
            "go",
            run_id="order-7",
            run_config=QUIET,
        )
        return [event async for event in stream.stream_events()]

    runner = DurableRunner(journal, default_policy=never)
    if recorded == "run":
        run(
            runner,
            agent(turns([call("refund", order="7")], [said()]), effect_tool(effects)),
            "go",
            run_id="order-7",
        )
        live = []
    else:
        live = asyncio.run(events(runner))

    again = asyncio.run(events(runner))

    raw = [event.data.to_dict() for event in again if event.type == "raw_response_event"]
    assert effects.lines() == ["refund 7"]
    if live:
        assert raw == [event.data.to_dict() for event in live if event.type == "raw_response_event"]
        assert [event.type for event in live] == [event.type for event in again]
    else:
        assert [event["type"] for event in raw] == ["response.completed"] * 2


STRANGE = [
    {
        "type": "message",
        "id": "m1",
        "role": "assistant",
        "status": "weird_new_status",
        "content": [
            {
                "type": "output_text",
                "text": "lone \ud800 surrogate",
                "annotations": [],
                "new_field": {"a": [1]},
            }
        ],
        "another_new_field": 7,
    },
    {"type": "hologram_call", "id": "h1", "shape": {"sides": 9}},
    {
        "type": "function_call",
        "id": "f1",
        "call_id": "c1",
        "name": "act",
        "arguments": '{ "b" :1,\n"a": 1.0}',
    },
]


def test_replies_are_stable_to_the_byte():
    """Unknown items, fields and enum values, odd layouts and lone surrogates survive; encoded again, they are the same bytes."""
    response = ModelResponse(
        output=[], usage=Usage(requests=1, input_tokens=3), response_id="r1", request_id="q1"
    )
    response.output = Response.construct(output=STRANGE).output
    encoded = replies.encode(response)

    from gnl_middleware.codec import decode

    read = replies.as_response(decode(encoded))

    assert replies.encode(read) == encoded
    assert [item.to_dict() for item in read.output] == STRANGE
    assert [type(item) for item in read.output] == [type(item) for item in response.output]
    assert (read.usage, read.response_id, read.request_id) == (response.usage, "r1", "q1")


def test_events_of_unknown_types_survive():
    """An event that this version of the SDK does not know comes back with all of its fields."""
    event = openai.BaseModel.construct(type="response.hologram.delta", delta="x", sequence_number=3)

    chunk = replies.chunk(event)

    assert chunk.event.type == "response.hologram.delta"
    assert chunk.event.to_dict() == {"type": "response.hologram.delta", "delta": "x", "sequence_number": 3}


def test_generated_cache_keys_do_not_count(journal):
    """What the SDK makes up anew for each run is no part of what was asked, also in strict mode."""
    for key in ("agents-sdk:run:1", "agents-sdk:run:2"):
        settings = ModelSettings(extra_args={"prompt_cache_key": key}, temperature=0.5)
        asking = agent(turns([said()]), model_settings=settings)
        assert (
            run(DurableRunner(journal), asking, "go", run_id="order-7", replay="strict").final_output
            == "Done."
        )


def test_changed_settings_are_a_drift(journal):
    """A changed temperature is served its record in lenient mode, and refused in strict mode."""
    for temperature, replay in ((0.5, "strict"), (0.7, "lenient")):
        asking = agent(turns([said()]), model_settings=ModelSettings(temperature=temperature))
        run(DurableRunner(journal), asking, "go", run_id="order-7", replay=replay)
    assert [step.drifted for step in journal.steps("order-7")] == [True]

    with pytest.raises(DivergenceError) as raised:
        asking = agent(turns([said()]), model_settings=ModelSettings(temperature=0.9))
        run(DurableRunner(journal), asking, "go", run_id="order-7", replay="strict")

    assert raised.value.part == "setup"


@pytest.mark.parametrize("way", ["run", "run_streamed"])
def test_a_chain_of_responses_goes_on_from_the_recorded_one(journal, effects, way):
    """With ``auto_previous_response_id`` the call after a crash is chained on the recorded reply."""

    def build(dies: bool) -> tuple[Agent[Any], list[Any]]:
        seen: list[Any] = []

        def respond(asked: Any) -> Any:
            seen.append(asked.previous_response_id)
            if asked.previous_response_id is None:
                return ModelStep([call("refund", order="7")], response_id="resp_1")
            if dies:
                raise ConnectionError("down")
            return ModelStep([said()], response_id="resp_2")

        scripted = ScriptedModel([ModelStep.respond(respond)] * 3)
        return Agent(name="A", model=scripted, tools=[effect_tool(effects)]), seen

    runner = DurableRunner(journal, default_policy=never)
    options = {"run_id": "order-7", "auto_previous_response_id": True}
    with pytest.raises(ConnectionError):
        WAYS[way](runner, build(True)[0], "go", **options)
    asking, seen = build(False)

    result = WAYS[way](runner, asking, "go", **options)

    assert (result.final_output, seen, effects.lines()) == ("Done.", ["resp_1"], ["refund 7"])


def test_a_handled_failure_is_told_again_in_a_chain(journal, effects):
    """Where the server keeps the history, an answer to a call still counts as told to the model."""
    from agents import function_tool

    def build() -> Agent[Any]:
        @function_tool
        def refund(order: str) -> str:
            effects.add("refund")
            raise ValueError("no such order")

        def respond(asked: Any) -> Any:
            if asked.previous_response_id is None:
                return ModelStep([call("refund", order="7")], response_id="resp_1")
            return ModelStep([said()], response_id="resp_2")

        return Agent(name="A", model=ScriptedModel([ModelStep.respond(respond)] * 3), tools=[refund])

    runner = DurableRunner(journal, default_policy=never)
    for _ in range(2):
        result = run(runner, build(), "go", run_id="order-7", auto_previous_response_id=True)
        assert result.final_output == "Done."
    assert effects.lines() == ["refund"]


def test_a_provider_of_the_users_stays_open(journal):
    """A provider that the caller made is the caller's to close; one that was made for the run is closed."""
    provider = Provider(ScriptedModel([[said()]]))

    run(
        DurableRunner(journal),
        Agent(name="A"),
        "go",
        run_id="order-7",
        run_config=RunConfig(model_provider=provider, tracing_disabled=True),
    )

    assert provider.closed == 0


def test_outside_any_run_a_wrapped_agent_can_pass_through(journal, effects):
    """``on_no_run="passthrough"`` lets a wrapped agent run as the agent itself, outside any run."""
    runner = DurableRunner(journal, default_policy=safe, on_no_run="passthrough")
    wrapped = runner.wrap(agent(turns([call("refund", order="7")], [said()]), effect_tool(effects)))

    result = asyncio.run(Runner.run(wrapped, "go", run_config=QUIET))

    assert (result.final_output, effects.lines(), journal.runs()) == ("Done.", ["refund 7"], [])
