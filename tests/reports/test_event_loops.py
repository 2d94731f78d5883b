"""A synchronous call inside a running loop hung for ever, and objects were tied to the loop that saw them first."""

import asyncio
import threading

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage

from gnl_langchain import JournalMiddleware, arun_durable, run_durable
from gnl_middleware import Journal, journaled, never
from tests.schedules.scripted_model import answers, calls, scripted
from tests.schedules.sweeping import Ended

REQUEST = {"messages": [("user", "charge")]}


def charging_agent(world):
    """One charge."""

    async def charge(amount: int) -> str:
        """Charge an amount."""
        return world.act(f"charge {amount}", "charged")

    def script(messages, asked):
        return AIMessage("done") if answers(messages) else calls(("charge", {"amount": 42}, f"call_{asked}"))

    return create_agent(scripted(script, world), [charge], middleware=[JournalMiddleware(never=["charge"])])


def test_a_synchronous_call_inside_a_loop(trial):
    """It works as in a notebook's cell, an asynchronous `recover` included; a hang would end in a kill."""
    ended = trial.each(
        "synchronous_inside_a_loop", [(None,), ("2:before_body", None), ("2:after_intent", None)]
    )

    assert ended == dict.fromkeys(ended, Ended(died=True, reply="done", effects={"charge 42": 1}))


def test_one_journal_in_two_loops_in_turn(world, journal):
    """A journal, an agent and a run begun on one event loop go on on the next one."""
    agent = charging_agent(world)

    replies = [
        asyncio.run(arun_durable(agent, REQUEST, run_id="job", journal=journal))["messages"][-1].text
        for _ in range(2)
    ]

    assert replies == ["done", "done"]
    assert (world.effects, world.model_calls) == ({"charge 42": 1}, 2)


def test_a_run_broken_off_in_one_loop_and_finished_in_another(world, journal):
    """What a loop that is gone has recorded is read back on the next one."""
    broken = [RuntimeError("the cell was interrupted")]

    @journaled(replay=never)
    async def charge(amount: int) -> str:
        return world.act(f"charge {amount}", "charged")

    async def cell():
        async with journal.run("job"):
            paid = await charge(42)
            if broken:
                raise broken.pop()
            return paid

    with pytest.raises(RuntimeError):
        asyncio.run(cell())
    paid = asyncio.run(cell())

    assert (paid, world.effects) == ("charged", {"charge 42": 1})


def test_one_journal_from_many_threads(tmp_path, world):
    """Threads with and without a loop of their own share a journal, each with its run."""
    outcomes = {}

    def work(number):
        if number % 2:
            state = asyncio.run(
                arun_durable(charging_agent(world), REQUEST, run_id=f"job {number}", journal=journal)
            )
        else:
            state = run_durable(synchronous_agent(world), REQUEST, run_id=f"job {number}", journal=journal)
        outcomes[number] = state["messages"][-1].text

    with Journal(tmp_path / "shared.db") as journal:
        threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        completed = {run.run_id: run.status for run in journal.runs()}

    assert outcomes == dict.fromkeys(range(6), "done")
    assert completed == {f"job {number}": "completed" for number in range(6)}
    assert world.effects == {"charge 42": 6}


def synchronous_agent(world):
    """One charge, by a synchronous tool."""

    def charge(amount: int) -> str:
        """Charge an amount."""
        return world.act(f"charge {amount}", "charged")

    def script(messages, asked):
        return AIMessage("done") if answers(messages) else calls(("charge", {"amount": 42}, f"call_{asked}"))

    return create_agent(scripted(script, world), [charge], middleware=[JournalMiddleware(never=["charge"])])
