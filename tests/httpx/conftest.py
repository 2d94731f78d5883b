"""A journal, a scripted provider, and clients whose transport is journalled."""

import httpx2
import openai
import pytest

from gnl_httpx import JournalTransport
from gnl_middleware import Journal
from tests.servers.scripted_openai import Reply, ScriptedOpenAI, ToolCall

QUESTION = [{"role": "user", "content": "Mail me my invoice."}]
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": name,
            "parameters": {"type": "object", "properties": {"to": {"type": "string"}}},
        },
    }
    for name in ("look_up", "send_mail")
]


def two_tools(request):
    """Looks up, sends, and says so."""
    answered = sum(message["role"] == "tool" for message in request["messages"])
    if answered == 0:
        return Reply(calls=(ToolCall("call_1", "look_up", {"to": "you"}),))
    if answered == 1:
        return Reply("Sending it.", calls=(ToolCall("call_2", "send_mail", {"to": "you"}),))
    return Reply("Your invoice is on its way.")


@pytest.fixture
def journal(tmp_path):
    with Journal(tmp_path / "runs.db") as journal:
        yield journal


@pytest.fixture
def provider():
    with ScriptedOpenAI(two_tools) as provider:
        yield provider


@pytest.fixture
def client(provider):
    transport = JournalTransport(httpx2.HTTPTransport(verify=False))
    with openai.OpenAI(
        api_key="none",
        base_url=provider.base_url,
        max_retries=0,
        http_client=httpx2.Client(transport=transport),
    ) as client:
        yield client
