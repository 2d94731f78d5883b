"""The scripted server: the real client must not be able to tell it from a provider."""

import threading

import httpx2
import openai
import pytest
from langchain_openai import ChatOpenAI

from tests.servers.scripted_openai import Failure, Reply, ScriptedOpenAI, ToolCall

CALLS = (ToolCall("call_1", "add", {"a": 1, "b": [2, 3]}), ToolCall("call_2", "say", {"text": "grüße"}))


def model(server: ScriptedOpenAI, **options) -> ChatOpenAI:
    return ChatOpenAI(model="scripted", base_url=server.base_url, api_key="none", max_retries=0, **options)


@pytest.mark.parametrize(
    "reply", [Reply("A longer text, cut in pieces."), Reply(calls=CALLS), Reply("Both.", CALLS)]
)
def test_a_stream_says_what_a_plain_answer_says(reply):
    """Text, tool calls and usage are the same, streamed or not, and a stream comes in several pieces."""
    with ScriptedOpenAI(lambda request: reply) as server:
        plain = model(server).invoke("hello")
        chunks = list(model(server, stream_usage=True).stream("hello"))
        streamed = chunks[0]
        for chunk in chunks[1:]:
            streamed += chunk

    assert len(chunks) > 3
    assert (streamed.text, streamed.tool_calls) == (plain.text, plain.tool_calls)
    assert streamed.usage_metadata["total_tokens"] == plain.usage_metadata["total_tokens"] > 0


def test_the_same_request_gets_the_same_bytes():
    """An answer depends on its request alone: not on time, chance or what was asked before."""
    body = {"model": "scripted", "messages": [{"role": "user", "content": "hello"}]}
    with ScriptedOpenAI(lambda request: Reply("Hello.")) as server:
        first, second = [
            httpx2.post(f"{server.base_url}/chat/completions", json=body).content for _ in range(2)
        ]

    assert first == second
    assert server.requests[0] == server.requests[1]


def test_a_scripted_failure_reaches_the_client_as_its_error():
    """A script can answer with any HTTP error, headers and all."""
    failure = Failure(429, "slow down", {"retry-after": "7"})

    with (
        ScriptedOpenAI(lambda request: failure) as server,
        pytest.raises(openai.RateLimitError, match="slow down") as raised,
    ):
        model(server).invoke("hello")

    assert raised.value.response.headers["retry-after"] == "7"


def test_an_unknown_path_is_not_found():
    """The server speaks chat completions and nothing else."""
    with ScriptedOpenAI(lambda request: Reply("Hello.")) as server:
        answer = httpx2.post(f"{server.base_url}/responses", json={})

    assert answer.status_code == 404


def test_closing_leaves_no_thread():
    """After the block neither the server's thread nor a handler's is left."""
    before = threading.active_count()

    with ScriptedOpenAI(lambda request: Reply("Hello.")) as server:
        model(server).invoke("hello")

    assert threading.active_count() == before
