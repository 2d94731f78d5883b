"""An agent loop on a plain SDK survives its death: what the model said is read back, and each tool ran once."""

import json

import anthropic
import httpx2
import openai
import pytest
import yaml

from gnl_httpx import JournalTransport
from gnl_middleware import current_step, journaled, never, safe
from gnl_middleware.cassettes import use_cassette
from tests.httpx.conftest import QUESTION, TOOLS
from tests.httpx.loops import anthropic_loop, openai_loop, openai_loop_async
from tests.recorded.recordings import FOLDER

HOW_IT_IS_CACHED = [f"messages.content.{name}" for name in ("cache_control", "citations")]
"""What the recorded application sent along with old messages, and this loop does not."""
REPLY = "Your invoice is on its way."


class DiedError(Exception):
    """Stands for the death of the worker."""


@pytest.fixture
def tools():
    """A tool runner that notes what ran, and dies after a given number of tools."""

    class Tools:
        def __init__(self):
            self.ran, self.dies_after = [], None

        def __call__(self, name, arguments):
            @journaled(replay=safe, name=name)
            def run(**arguments):
                self.ran.append((name, arguments, current_step().key))
                return f"{name} done"

            output = run(**arguments)
            if len(self.ran) == self.dies_after:
                raise DiedError
            return output

    return Tools()


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("dies_after", [1, 2])
def test_a_loop_on_openai_goes_on_where_it_died(journal, provider, client, tools, *, dies_after, stream):
    """Run again, it asks only for what no attempt was told; the finished run asks for nothing at all."""
    tools.dies_after = dies_after
    with pytest.raises(DiedError), journal.run("invoice"):
        openai_loop(client, QUESTION, TOOLS, tools, stream=stream)
    tools.dies_after = None

    for _ in range(2):
        with journal.run("invoice", replay="strict") as run:
            assert openai_loop(client, QUESTION, TOOLS, tools, stream=stream) == REPLY

    assert [name for name, _, _ in tools.ran] == ["look_up", "send_mail"]
    assert len(provider.requests) == len(set(provider.requests)) == 3
    assert (run.steps_ran, run.steps_read_back) == (0, 5)
    steps = [(step.kind, step.name) for step in journal.steps("invoice")]
    assert steps == [
        ("model", "scripted"),
        ("tool", "look_up"),
        ("model", "scripted"),
        ("tool", "send_mail"),
        ("model", "scripted"),
    ]


async def test_the_asynchronous_client_too(journal, provider, tools):
    """The asynchronous client's calls are the same steps: a run that it finished, the synchronous one reads back."""
    transport = JournalTransport(httpx2.AsyncHTTPTransport(verify=False))
    client = openai.AsyncOpenAI(
        api_key="none", base_url=provider.base_url, http_client=httpx2.AsyncClient(transport=transport)
    )
    async with client:
        tools.dies_after = 1
        with pytest.raises(DiedError):
            async with journal.run("invoice"):
                await openai_loop_async(client, QUESTION, TOOLS, tools)
        tools.dies_after = None
        async with journal.run("invoice", replay="strict"):
            assert await openai_loop_async(client, QUESTION, TOOLS, tools) == REPLY

    assert len(provider.requests) == 3


def test_tokens_that_were_not_spent_again_are_counted(journal, client, tools):
    """The run tells how many tokens the replies cost that were read back."""
    for _ in range(2):
        with journal.run("invoice") as run:
            openai_loop(client, QUESTION, TOOLS, tools)

    assert run.tokens_not_spent > 0


@pytest.mark.usefixtures("recorded_traffic")
@pytest.mark.parametrize("name", ["an_mcp_tools", "an_parallel_stream"])
async def test_recorded_loops_on_anthropic(journal, name):
    """Recorded traffic of public projects: the loop dies after each tool in turn, and each answer is asked for once."""
    recorded = yaml.safe_load((FOLDER / f"{name}.yaml").read_text(encoding="utf-8"))["interactions"]
    requests = [json.loads(each["request"]["body"]) for each in recorded]
    outputs = _outputs(requests)
    ran, attempts = [], 0

    async def run_tool(call_id, name, arguments):
        @journaled(replay=never, name=name)
        async def run(call_id, arguments):
            ran.append(call_id)
            return outputs[call_id]

        output = await run(call_id, arguments)
        if len(ran) > attempts:
            raise DiedError
        return output

    with use_cassette(FOLDER / f"{name}.yaml", ignore=HOW_IT_IS_CACHED) as cassette:
        while True:
            transport = JournalTransport(httpx2.AsyncHTTPTransport(verify=False))
            http_client = httpx2.AsyncClient(transport=transport)
            async with anthropic.AsyncAnthropic(
                api_key="none", max_retries=0, http_client=http_client
            ) as client:
                try:
                    async with journal.run("recorded"):
                        text = await anthropic_loop(client, requests[0], run_tool)
                    break
                except DiedError:
                    attempts = len(ran)

    assert text.strip()
    assert cassette.unplayed == ()
    assert sorted(ran) == sorted(outputs)


def _outputs(requests):
    """The blocks with which the recorded application's tools answered, by call id."""
    return {
        block["tool_use_id"]: block
        for request in requests
        for message in request["messages"]
        if isinstance(message["content"], list)
        for block in message["content"]
        if block["type"] == "tool_result"
    }
