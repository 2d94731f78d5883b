"""The exception table: from every place of user code, the right error reaches the caller, and nothing the model."""

import asyncio
import json
from typing import Any

import pytest
from agents import Runner
from agents.exceptions import AgentsException

from gnl_middleware import SideEffectRetryBlockedError, safe
from gnl_middleware.adapter import current_session
from gnl_openai_agents import DurableRunner
from tests.openai_agents.origins import KINDS, ORIGINS
from tests.openai_agents.scripted import QUIET, items

TEXT = "boom: only the caller may see this"


def blocked() -> SideEffectRetryBlockedError:
    return SideEffectRetryBlockedError(
        run_id="r", step_key="k", tool="pay", arguments={}, idempotency_key="i", started_at=0.0, reason=TEXT
    )


async def outcome(start: Any, streamed: bool, agent: Any, hooks: Any) -> tuple[str, str]:
    """How a run ends, and what the model was told, as texts."""
    try:
        if streamed:
            result = start.run_streamed(agent, "go", run_config=QUIET, hooks=hooks)
            async for _ in result.stream_events():
                pass
        else:
            result = await start.run(agent, "go", run_config=QUIET, hooks=hooks)
        ended = f"final {result.final_output!r}"
    except BaseException as error:  # noqa: BLE001 - it is what is looked at
        cause = error.__cause__
        ended = f"{type(error).__name__}: {error} from {type(cause).__name__}"
    told = [item for call in agent.model.calls for item in items(call)]
    return ended, json.dumps(told, default=str)


def within(journal: Any, agent: Any, hooks: Any, streamed: bool, runner: DurableRunner) -> Any:
    async def run() -> Any:
        class Named:
            """The runner, with a run id for each call."""

            @staticmethod
            def run(*given: Any, **options: Any) -> Any:
                return runner.run(*given, run_id="order-7", **options)

            @staticmethod
            def run_streamed(*given: Any, **options: Any) -> Any:
                return runner.run_streamed(*given, run_id="order-7", **options)

        return await outcome(Named, streamed, agent, hooks)

    return asyncio.run(run())


@pytest.mark.parametrize("streamed", [False, True], ids=["run", "stream"])
@pytest.mark.parametrize("origin", ORIGINS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_users_exception_fares_as_without_us(journal, origin, kind, streamed):
    """What becomes of an exception of the user's code, and what the model hears of it, is the SDK's decision as before."""

    def fail() -> None:
        raise KINDS[kind](TEXT)

    plain, hooks = ORIGINS[origin](fail, lambda agent: agent)
    without = asyncio.run(outcome(Runner, streamed, plain, hooks))
    runner = DurableRunner(journal, default_policy=safe)
    journaled, hooks = ORIGINS[origin](fail, runner.wrap)

    within_a_run = within(journal, journaled, hooks, streamed, runner)

    assert within_a_run == without


@pytest.mark.parametrize("streamed", [False, True], ids=["run", "stream"])
@pytest.mark.parametrize("origin", ORIGINS)
def test_what_stops_the_run_reaches_the_caller_alone(journal, origin, streamed):
    """What stops the run, wherever it comes from, comes to the caller as itself, and the model is not asked again."""

    def fail() -> None:
        current_session().stop(blocked())

    runner = DurableRunner(journal, default_policy=safe)
    agent, hooks = ORIGINS[origin](fail, runner.wrap)

    async def run() -> None:
        if not streamed:
            await runner.run(agent, "go", run_id="order-7", run_config=QUIET, hooks=hooks)
            return
        async for _ in runner.run_streamed(
            agent, "go", run_id="order-7", run_config=QUIET, hooks=hooks
        ).stream_events():
            pass

    with pytest.raises(SideEffectRetryBlockedError) as raised:
        asyncio.run(run())

    assert TEXT in str(raised.value)
    told = json.dumps([item for call in agent.model.calls for item in items(call)], default=str)
    assert TEXT not in told
    assert len(agent.model.calls) <= 1
    assert [run.status for run in journal.runs()] == ["blocked"]


@pytest.mark.parametrize("origin", ["in_function", "in_shell", "in_custom", "in_patch", "in_nested_agent"])
def test_it_passes_the_sdk_as_one_of_its_own(journal, origin):
    """What the SDK itself sees is an AgentsException, which it does not wrap in anything."""

    def fail() -> None:
        current_session().stop(blocked())

    runner = DurableRunner(journal, default_policy=safe)
    agent, _ = ORIGINS[origin](fail, runner.wrap)

    with pytest.raises(AgentsException):
        asyncio.run(runner.run(agent, "go", run_id="order-7", run_config=QUIET))


def test_nobody_reads_the_stream(journal):
    """Where nobody reads the events, what stopped the run is the stream's ``run_loop_exception``, and the run is left."""

    def fail() -> None:
        current_session().stop(blocked())

    runner = DurableRunner(journal, default_policy=safe)
    agent, _ = ORIGINS["in_shell"](fail, runner.wrap)

    async def run() -> Any:
        stream = runner.run_streamed(agent, "go", run_id="order-7", run_config=QUIET)
        await stream.left()
        return stream.run_loop_exception

    error = asyncio.run(run())

    assert isinstance(error, SideEffectRetryBlockedError)
    assert [run.status for run in journal.runs()] == ["blocked"]
