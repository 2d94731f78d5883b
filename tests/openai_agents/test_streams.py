"""A streamed run is left when the SDK's loop has ended, whoever reads its events, stops reading, or cancels it."""

import asyncio
import threading
from typing import Any

import pytest
from agents import RunResultStreaming, function_tool
from agents.tool import tool_namespace
from openai.types.responses import ResponseFunctionToolCall

from gnl_middleware import RunBusyError, RunInputMismatchError, never
from gnl_openai_agents import DurableRunner
from tests.openai_agents.driving import run
from tests.openai_agents.scripted import QUIET, agent, call, effect_tool, outputs, said, turns


def refunding(effects: Any, **options: Any) -> Any:
    return agent(turns([call("refund", order="7")], [said()]), effect_tool(effects), **options)


def test_it_is_the_sdks_result(journal, effects):
    """What comes back is a ``RunResultStreaming`` with all that it has."""

    async def go() -> None:
        stream = DurableRunner(journal, default_policy=never).run_streamed(
            refunding(effects), "go", run_id="order-7", run_config=QUIET
        )
        assert isinstance(stream, RunResultStreaming)
        assert [event.type async for event in stream.stream_events()]
        assert stream.is_complete
        assert stream.final_output == "Done."
        assert stream.to_state().to_json()["model_responses"]

    asyncio.run(go())


def test_a_reader_that_stops_early(journal, effects):
    """Who stops reading stops nothing: the run goes on to its end, and is left."""

    async def go() -> None:
        stream = DurableRunner(journal, default_policy=never).run_streamed(
            refunding(effects), "go", run_id="order-7", run_config=QUIET
        )
        async for _ in stream.stream_events():
            break
        await stream.left()

    asyncio.run(go())

    assert [record.status for record in journal.runs()] == ["completed"]
    assert effects.lines() == ["refund 7"]


def test_a_cancelled_stream_goes_on_the_next_time(journal, effects):
    """``cancel()`` ends the attempt as a crash would; the same call goes on where it stopped."""
    runner = DurableRunner(journal, default_policy=never)

    async def go() -> None:
        stream = runner.run_streamed(refunding(effects), "go", run_id="order-7", run_config=QUIET)
        async for event in stream.stream_events():
            if event.type == "run_item_stream_event" and event.name == "tool_output":
                stream.cancel()
        await stream.left()

    asyncio.run(go())
    assert [record.status for record in journal.runs()] == ["interrupted"]

    assert outputs(run(runner, refunding(effects), "go", run_id="order-7"))[-1] == "Done."
    assert effects.lines() == ["refund 7"]


def test_a_loop_that_is_closed_leaves_the_run(journal, effects):
    """A program that ends in the middle of a stream gives the lease back."""
    runner = DurableRunner(journal, default_policy=never)

    async def go() -> None:
        stream = runner.run_streamed(refunding(effects), "go", run_id="order-7", run_config=QUIET)
        async for _ in stream.stream_events():
            return

    asyncio.run(go())

    assert run(runner, refunding(effects), "go", run_id="order-7").final_output == "Done."
    assert effects.lines() == ["refund 7"]


def test_many_runs_at_once_of_one_agent(journal, effects):
    """Runs with ids of their own share an agent, a runner and an event loop."""
    runner = DurableRunner(journal, default_policy=never)
    shared = agent(turns([call("refund", order="7")], [said()]), effect_tool(effects))

    async def go() -> list[str]:
        found = (runner.run(shared, "go", run_id=f"order-{n}", run_config=QUIET) for n in range(5))
        return [result.final_output for result in await asyncio.gather(*found)]

    assert asyncio.run(go()) == ["Done."] * 5
    assert asyncio.run(go()) == ["Done."] * 5
    assert effects.lines() == ["refund 7"] * 5


def test_one_run_id_at_once(journal, effects):
    """Two workers on one run id: one works, the other gets RunBusyError, streamed or not."""
    runner = DurableRunner(journal, default_policy=never)

    async def go() -> None:
        stream = runner.run_streamed(refunding(effects), "go", run_id="order-7", run_config=QUIET)
        with pytest.raises(RunBusyError):
            await runner.run(refunding(effects), "go", run_id="order-7", run_config=QUIET)
        async for _ in stream.stream_events():
            pass

    asyncio.run(go())

    assert effects.lines() == ["refund 7"]


def held_elsewhere(journal: Any, left: threading.Event) -> tuple[threading.Thread, list[bool]]:
    """Another worker holds the run until it is told to leave, and notes whether it was."""
    entered, told = threading.Event(), []

    def hold() -> None:
        with journal.run("order-7"):
            entered.set()
            told.append(left.wait(20))

    holder = threading.Thread(target=hold)
    holder.start()
    entered.wait()
    return holder, told


def waiting_stream(journal: Any, effects: Any, **options: Any) -> Any:
    return DurableRunner(journal, default_policy=never).run_streamed(
        refunding(effects), "go", run_id="order-7", run_config=QUIET, on_busy="wait", **options
    )


@pytest.mark.parametrize("reads", [True, False], ids=["read", "unread"])
def test_waiting_for_another_worker_leaves_the_event_loop_free(journal, effects, reads):
    """With ``on_busy="wait"`` the stream begins when the holder has left, and the loop goes on meanwhile."""
    left = threading.Event()
    holder, told = held_elsewhere(journal, left)

    async def go() -> Any:
        stream = waiting_stream(journal, effects)
        assert isinstance(stream, RunResultStreaming)
        assert (stream.is_complete, stream.final_output, stream.new_items) == (False, None, [])
        asyncio.get_running_loop().call_soon(left.set)
        if reads:
            assert [event async for event in stream.stream_events()]
        await stream.left()
        return stream

    stream = asyncio.run(go())
    holder.join()

    assert told == [True]
    assert (stream.final_output, stream.run_loop_exception, effects.lines()) == ("Done.", None, ["refund 7"])
    assert [record.status for record in journal.runs()] == ["completed"]


def test_what_stops_a_run_that_waited_surfaces_from_its_events(journal, effects):
    """An error of opening, such as another input, comes to who reads the events; the run is not begun."""
    run(DurableRunner(journal, default_policy=never), refunding(effects), "other", run_id="order-7")
    left = threading.Event()
    holder, told = held_elsewhere(journal, left)

    async def go() -> None:
        stream = waiting_stream(journal, effects)
        left.set()
        with pytest.raises(RunInputMismatchError):
            async for _ in stream.stream_events():
                pass
        assert isinstance(stream.run_loop_exception, RunInputMismatchError)

    asyncio.run(go())
    holder.join()
    assert told == [True]


def test_a_stream_that_is_cancelled_while_it_waits_does_not_begin(journal, effects):
    """``cancel()`` before the run was free: no events, no effect, and the run is nobody's."""
    left = threading.Event()
    holder, _ = held_elsewhere(journal, left)

    async def go() -> None:
        stream = waiting_stream(journal, effects)
        stream.cancel()
        assert [event async for event in stream.stream_events()] == []
        assert stream.is_complete

    asyncio.run(go())
    left.set()
    holder.join()

    assert effects.lines() == []
    assert (
        run(
            DurableRunner(journal, default_policy=never), refunding(effects), "go", run_id="order-7"
        ).final_output
        == "Done."
    )


def test_a_nested_agent_that_streams(journal, effects):
    """``as_tool(on_stream=...)`` runs the nested agent streamed: its steps are read back all the same."""
    events: list[Any] = []
    runner = DurableRunner(journal, default_policy=never)
    for offline in (False, True):
        tool = runner.wrap(refunding(effects, name="Inner")).as_tool("ask", "Asks.", on_stream=events.append)
        outer = agent(turns([call("ask", input="go")], [said()]), tool)
        assert run(runner, outer, "go", run_id="order-7", offline=offline).final_output == "Done."

    assert events
    assert effects.lines() == ["refund 7"]


def test_a_tool_in_a_namespace(journal, effects):
    """A call is known by the tool's name with its namespace, and so is its label."""

    def build() -> Any:
        tools = tool_namespace(name="crm", description="CRM", tools=[effect_tool(effects)])
        asked = ResponseFunctionToolCall(
            type="function_call", name="refund", namespace="crm", arguments='{"order": "7"}', call_id="c1"
        )
        return agent(turns([asked], [said()]), *tools)

    runner = DurableRunner(journal, policies={"crm.refund": never})
    run(runner, build(), "go", run_id="order-7")
    run(runner, build(), "go", run_id="order-7", offline=True)

    assert [step.name for step in journal.steps("order-7") if step.kind == "tool"] == ["crm.refund"]
    assert effects.lines() == ["refund 7"]


def test_a_failure_function_of_the_users_is_asked(journal, effects):
    """The user's own text for a failure is told to the model, live and on replay."""

    def build() -> Any:
        def told(context: Any, error: Exception) -> str:
            return f"failed: {error}"

        @function_tool(failure_error_function=told)
        def act() -> str:
            effects.add("act")
            raise ValueError("no such order")

        return agent(turns([call("act")], [said()]), act)

    runner = DurableRunner(journal, default_policy=never)
    found = [run(runner, build(), "go", run_id="order-7", offline=offline) for offline in (False, True)]

    assert [outputs(result)[2] for result in found] == ["output failed: no such order"] * 2
    assert effects.lines() == ["act"]
