"""A journal and a world for each test."""

import asyncio

import pytest
from langchain_openai import ChatOpenAI

from gnl_langchain import arun_durable, run_durable
from tests.langchain.asking import script
from tests.servers.scripted_openai import ScriptedOpenAI


def run_async(*arguments, **options):
    return asyncio.run(arun_durable(*arguments, **options))


RUNNERS = {"run_durable": run_durable, "arun_durable": run_async}


@pytest.fixture(params=RUNNERS)
def durable(request):
    """``run_durable``, and ``arun_durable`` on an event loop of its own."""
    return RUNNERS[request.param]


@pytest.fixture
def server():
    """An OpenAI-compatible server on loopback that counts its requests."""
    with ScriptedOpenAI(script) as server:
        yield server


@pytest.fixture
def model(server):
    """The real client, talking to that server."""
    return ChatOpenAI(
        model="gpt-4o-mini", base_url=server.base_url, api_key="test", stream_usage=True, max_retries=0
    )
