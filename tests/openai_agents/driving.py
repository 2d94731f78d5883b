"""The three ways to run an agent, as one function each."""

import asyncio
from typing import Any

from gnl_openai_agents import DurableRunner
from tests.openai_agents.scripted import QUIET


def let_time_pass(seconds: float) -> None:
    """Turn on the clock of the event loop that runs here: what waits in it for less has waited long enough."""
    loop = asyncio.get_running_loop()
    now = loop.time
    loop.time = lambda: now() + seconds


def run(runner: DurableRunner, *given: Any, **options: Any) -> Any:
    return asyncio.run(runner.run(*given, **{"run_config": QUIET, **options}))


def run_sync(runner: DurableRunner, *given: Any, **options: Any) -> Any:
    return runner.run_sync(*given, **{"run_config": QUIET, **options})


def run_streamed(runner: DurableRunner, *given: Any, **options: Any) -> Any:
    async def read() -> Any:
        stream = runner.run_streamed(*given, **{"run_config": QUIET, **options})
        async for _ in stream.stream_events():
            pass
        return stream

    return asyncio.run(read())


WAYS = {"run": run, "run_sync": run_sync, "run_streamed": run_streamed}
