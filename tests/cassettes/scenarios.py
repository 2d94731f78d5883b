"""What the cassettes of this repository hold: small programs on the real clients, and the scripts that answer them.

Each program takes the provider's address, key and model, and returns what it found out: the same whether it is recorded or
played. Against a real provider the scripts do not count; what no provider can be asked for (errors) is scripted only.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import anthropic
import openai
from agents import Agent, ModelSettings, OpenAIResponsesModel, RunConfig, Runner, function_tool
from openai.types.shared import Reasoning

from tests.httpx.loops import anthropic_loop, openai_loop, openai_loop_async
from tests.servers.scripted_openai import Failure, Reply, ToolCall

QUESTION = "What is the weather in Oslo and in Lima?"
WEATHER = {"Oslo": "rain, 7 degrees", "Lima": "sun, 24 degrees"}
SUMMARY = "In Oslo it rains at 7 degrees, in Lima the sun shines at 24."
PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
CHAT_TOOLS = [
    {
        "type": "function",
        "function": {"name": "weather", "description": "The weather.", "parameters": PARAMETERS},
    }
]


@dataclass(frozen=True)
class Provider:
    """Where a program asks.

    Attributes:
        url: The address, without ``/v1``.
        model: The model.
        key: Its key.
    """

    url: str
    model: str
    key: str = "no-key-needed"

    def client(self, *, retries: int = 0) -> openai.OpenAI:
        return openai.OpenAI(base_url=f"{self.url}/v1", api_key=self.key, max_retries=retries)

    def async_client(self) -> openai.AsyncOpenAI:
        return openai.AsyncOpenAI(base_url=f"{self.url}/v1", api_key=self.key, max_retries=0)

    def claude(self, *, retries: int = 0) -> anthropic.AsyncAnthropic:
        return anthropic.AsyncAnthropic(base_url=self.url, api_key=self.key, max_retries=retries)


@dataclass(frozen=True)
class Scenario:
    """One cassette.

    Attributes:
        what: What it shows.
        program: Plays it; gives what it found out.
        script: Answers it.
        api: Whose real provider can be recorded instead: ``openai`` or ``anthropic``; None for what is scripted only.
    """

    what: str
    program: Callable[[Provider], Any]
    script: Callable[[dict[str, Any]], Reply | Failure]
    api: str | None


def weather(city: str) -> str:
    """The weather in a city."""
    return WEATHER[city]


def _answered(request: dict[str, Any]) -> int:
    """How many tools have answered in a request of any format."""
    told = request.get("messages") or request.get("input") or []
    if isinstance(told, str):
        return 0
    plain = sum(item.get("role") == "tool" or item.get("type") == "function_call_output" for item in told)
    blocks = [block for item in told if isinstance(item.get("content"), list) for block in item["content"]]
    return plain + sum(block.get("type") == "tool_result" for block in blocks)


def one_after_another(request: dict[str, Any]) -> Reply:
    """Asks for one city, then for the other, then says."""
    cities, done = list(WEATHER), _answered(request)
    if done < len(cities):
        return Reply(
            calls=(ToolCall(f"call_{done + 1}", "weather", {"city": cities[done]}),), thought="One by one."
        )
    return Reply(SUMMARY, thought="Both are known.")


def both_at_once(request: dict[str, Any]) -> Reply:
    """Asks for both cities in one reply, then says."""
    if _answered(request):
        return Reply(SUMMARY)
    calls = (
        ToolCall(f"call_{number}", "weather", {"city": city}) for number, city in enumerate(WEATHER, start=1)
    )
    return Reply("I look both up.", calls=tuple(calls))


async def chat_sequential(provider: Provider) -> Any:
    """An asynchronous loop on chat completions, one tool after the other."""
    question = [{"role": "user", "content": QUESTION}]
    run = lambda _name, arguments: weather(**arguments)  # noqa: E731
    async with provider.async_client() as client:
        return await openai_loop_async(client, question, CHAT_TOOLS, run, model=provider.model)


def chat_parallel_stream(provider: Provider) -> Any:
    """A streamed loop on chat completions, both tools in one reply."""
    question = [{"role": "user", "content": QUESTION}]
    run = lambda _name, arguments: weather(**arguments)  # noqa: E731
    with provider.client() as client:
        return openai_loop(client, question, CHAT_TOOLS, run, model=provider.model, stream=True)


def chat_structured(provider: Provider) -> Any:
    """An answer in the form of a JSON schema."""
    schema = {"name": "city", "strict": True, "schema": PARAMETERS | {"additionalProperties": False}}
    with provider.client() as client:
        answer = client.chat.completions.create(
            model=provider.model,
            messages=[{"role": "user", "content": "Which city has more rain? Answer with it."}],
            response_format={"type": "json_schema", "json_schema": schema},
        )
    return json.loads(answer.choices[0].message.content)


ERRORS = {"bad": Failure(400, "the script refuses this"), "key": Failure(401, "the script knows no such key")}
_PASSING = {
    "limit": Failure(429, "too fast", {"retry-after-ms": "1"}),
    "crash": Failure(500, "the script fell over"),
}


class Fails:
    """A script whose first answer to some requests is an error that passes."""

    def __init__(self) -> None:
        self.failed: set[str] = set()

    def __call__(self, request: dict[str, Any]) -> Reply | Failure:
        asked = request["messages"][-1]["content"]
        if asked in ERRORS:
            return ERRORS[asked]
        if asked in _PASSING and asked not in self.failed:
            self.failed.add(asked)
            return _PASSING[asked]
        return Reply("Now it works.")


def chat_errors(provider: Provider) -> Any:
    """400 and 401, which are final; 429 and 500, which the SDK tries again."""
    found = {}
    with provider.client(retries=1) as client:
        for asked in (*ERRORS, *_PASSING):
            try:
                message = [{"role": "user", "content": asked}]
                answer = client.chat.completions.create(model=provider.model, messages=message)
                found[asked] = answer.choices[0].message.content
            except openai.APIStatusError as error:
                found[asked] = f"{type(error).__name__} {error.status_code}"
    return found


def breaks_off(_request: dict[str, Any]) -> Reply:
    """Begins to say something."""
    return Reply("This text does not come to its end.", breaks=True)


def chat_broken_stream(provider: Provider) -> Any:
    """A stream that brings an error half way: what came before it, and the error."""
    text = ""
    with provider.client() as client:
        try:
            message = [{"role": "user", "content": "Tell me a long story."}]
            for chunk in client.chat.completions.create(model=provider.model, messages=message, stream=True):
                text += chunk.choices[0].delta.content or ""
        except openai.APIError as error:
            return [text, type(error).__name__]
    return [text, "ended"]


def hands_over(request: dict[str, Any]) -> Reply:
    """The first agent hands over; the second one looks up, then says."""
    names = {tool["name"] for tool in request["tools"]}
    if "weather" not in names:
        return Reply(calls=(ToolCall("call_0", next(iter(names)), {}),))
    if not any(item.get("call_id") == "call_1" for item in request["input"]):
        return Reply(calls=(ToolCall("call_1", "weather", {"city": "Oslo"}),))
    return Reply("In Oslo it rains at 7 degrees.")


async def responses_handoff(provider: Provider) -> Any:
    """Two agents of the Agents SDK on the responses API: one hands over to the other, which uses a tool."""
    client = provider.async_client()
    model = OpenAIResponsesModel(provider.model, client)
    expert = Agent(
        name="Forecaster", instructions="You know the weather.", model=model, tools=[function_tool(weather)]
    )
    desk = Agent(
        name="Desk", instructions="Hand questions about the weather over.", model=model, handoffs=[expert]
    )
    async with client:
        result = await Runner.run(desk, "Oslo?", run_config=RunConfig(tracing_disabled=True))
    return [result.last_agent.name, result.final_output]


async def responses_reasoning(provider: Provider) -> Any:
    """A streamed run on the responses API whose reasoning items go back with each request, encrypted."""
    client = provider.async_client()
    settings = ModelSettings(
        store=False,
        reasoning=Reasoning(effort="low", summary="auto"),
        response_include=["reasoning.encrypted_content"],
    )
    model = OpenAIResponsesModel(provider.model, client)
    agent = Agent(name="Forecaster", model=model, model_settings=settings, tools=[function_tool(weather)])
    async with client:
        result = Runner.run_streamed(agent, QUESTION, run_config=RunConfig(tracing_disabled=True))
        kinds = [
            event.item.type async for event in result.stream_events() if event.type == "run_item_stream_event"
        ]
    return [kinds, result.final_output]


def _claude(provider: Provider, *, stream: bool) -> dict[str, Any]:
    tool = {"name": "weather", "description": "The weather.", "input_schema": PARAMETERS}
    question = [{"role": "user", "content": QUESTION}]
    return {
        "model": provider.model,
        "max_tokens": 500,
        "messages": question,
        "tools": [tool],
        "stream": stream,
    }


async def _weather_block(call_id: str, _name: str, arguments: dict[str, str]) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call_id, "content": weather(**arguments)}


async def anthropic_sequential(provider: Provider) -> Any:
    """A loop on Anthropic's messages, one tool after the other."""
    async with provider.claude() as client:
        return await anthropic_loop(client, _claude(provider, stream=False), _weather_block)


async def anthropic_parallel_stream(provider: Provider) -> Any:
    """A streamed loop on Anthropic's messages, both tools in one reply."""
    async with provider.claude() as client:
        return await anthropic_loop(client, _claude(provider, stream=True), _weather_block)


def says_a_city(_request: dict[str, Any]) -> Reply:
    """Answers in the form of the schema."""
    return Reply('{"city": "Oslo"}')


SCENARIOS = {
    "chat_sequential": Scenario(
        "chat completions, two tools in a row", chat_sequential, one_after_another, "openai"
    ),
    "chat_parallel_stream": Scenario(
        "chat completions, streamed, two tools at once", chat_parallel_stream, both_at_once, "openai"
    ),
    "chat_structured": Scenario("chat completions, a JSON schema", chat_structured, says_a_city, "openai"),
    "chat_errors": Scenario(
        "chat completions, 400, 401, and 429 and 500 with a retry", chat_errors, Fails(), None
    ),
    "chat_broken_stream": Scenario(
        "chat completions, an error inside a stream", chat_broken_stream, breaks_off, None
    ),
    "responses_handoff": Scenario("responses, a handoff and a tool", responses_handoff, hands_over, "openai"),
    "responses_reasoning": Scenario(
        "responses, streamed, reasoning items and two tools in a row",
        responses_reasoning,
        one_after_another,
        "openai",
    ),
    "anthropic_sequential": Scenario(
        "Anthropic's messages, two tools in a row", anthropic_sequential, one_after_another, "anthropic"
    ),
    "anthropic_parallel_stream": Scenario(
        "Anthropic's messages, streamed, two tools at once",
        anthropic_parallel_stream,
        both_at_once,
        "anthropic",
    ),
}
