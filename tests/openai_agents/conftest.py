"""A journal and a world for each test."""

import asyncio
import os

import pytest

from tests.openai_agents.driving import WAYS

os.environ.setdefault("OPENAI_AGENTS_DISABLE_TRACING", "1")


@pytest.fixture(params=WAYS)
def durable(request):
    """``run``, ``run_sync`` and ``run_streamed``."""
    if request.param != "run_sync":
        yield WAYS[request.param]
        return
    # The SDK leaves the event loop of a thread open between runs.
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    yield WAYS[request.param]
    loop.close()
    asyncio.set_event_loop(None)
