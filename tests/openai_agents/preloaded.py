"""What every child process of these tests needs: imported once, by the server that they are forked from."""

import asyncio
import os

os.environ["OPENAI_AGENTS_DISABLE_TRACING"] = "1"

import agents.testing
import sqlalchemy.ext.asyncio

import gnl_middleware.storage.database
import gnl_openai_agents
import tests.openai_agents.scripted

__all__ = ["agents", "gnl_middleware", "gnl_openai_agents", "sqlalchemy", "tests"]


async def _warm_up() -> None:
    """Use the SDK once: it builds its schemas on first use, which would take each child half a second."""
    from agents import Runner

    from gnl_openai_agents import replies
    from tests.openai_agents.scripted import QUIET, agent, call, said, turns

    result = await Runner.run(agent(turns([said()])), "warm up", run_config=QUIET)
    response = result.raw_responses[0]
    response.output.append(call("act"))
    recorded = {"response": replies._kept_response(response)}
    replies.describe(replies.as_response(recorded))
    list(replies.as_chunks(recorded))
    stream = Runner.run_streamed(agent(turns([said()])), "warm up", run_config=QUIET)
    async for event in stream.stream_events():
        if event.type == "raw_response_event":
            replies.chunk(event.data)


asyncio.run(_warm_up())
