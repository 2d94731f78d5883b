"""The ways in which the plain SDK lets work happen twice, closed: processes really die, and the same call ends the run."""

import asyncio
import contextlib
import json
import os
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from agents import SQLiteSession, function_tool
from agents.extensions.memory import SQLAlchemySession

from gnl_middleware import Done, InterruptedCall, Journal, NotDone, SideEffectRetryBlockedError, never
from gnl_openai_agents import DurableRunner
from tests import worlds
from tests.openai_agents.driving import WAYS, let_time_pass
from tests.openai_agents.processes import in_process
from tests.openai_agents.scripted import agent, call, model, said, turns
from tests.worlds import DEATH, Log

CLEAN = ["user", "function_call", "function_call_output", "message"]


class World(worlds.World):
    """The world of these processes."""

    def recover(self, interrupted: InterruptedCall) -> Done | NotDone:
        return Done("ok") if self.effects.lines() else NotDone()

    def held(self) -> list[str]:
        """The items of the session, in short."""
        with contextlib.closing(sqlite3.connect(self.folder / "session.db")) as connection, connection:
            rows = connection.execute("select message_data from agent_messages order by id").fetchall()
        found = [json.loads(row[0]) for row in rows]
        return [item.get("type") or item["role"] for item in found]


def session_of(folder: Path, kind: str) -> Any:
    if kind == "sqlalchemy":
        url = f"sqlite+aiosqlite:///{folder / 'session.db'}"
        return SQLAlchemySession.from_url("user-1", url=url, create_tables=True)
    return SQLiteSession("user-1", folder / "session.db")


def paid(folder: Path, where: str, way: str, kind: str, asks: bool) -> Any:
    """Runs in a process of its own."""
    world = World(folder)

    @function_tool
    async def pay(amount: int) -> str:
        """Charge the card."""
        if where == "before-effect":
            world.die_once(where)
        world.effects.add(f"charged {amount}")
        if where == "after-effect":
            world.die_once(where)
        return "ok"

    def respond(given: Any) -> Any:
        if where == "before-final" and len(given) > 1:
            world.die_once(where)
        # Like a provider, with another id each time.
        reply = turns([call("pay", f"call_{os.getpid()}", amount=100)], [said("Paid 100.")])
        return reply(given)

    class Dying(type(session_of(folder, kind))):
        """A session that dies right after a write."""

        async def add_items(self, items: Any, **options: Any) -> None:
            await super().add_items(items, **options)
            if where == f"after-write-of-{len(items)}":
                world.die_once(where)

    session = session_of(folder, kind)
    session.__class__ = Dying
    paying = agent(respond, pay)
    paying.model = model(respond, bill=world.bill)
    policy = never(recover=world.recover) if asks else never
    with Journal(folder / "runs.db") as journal:
        runner = DurableRunner(journal, policies={"pay": policy})
        result = WAYS[way](runner, paying, "pay my bill", run_id="bill-1", session=session)
    return result.final_output


@pytest.mark.parametrize(("way", "kind"), [("run", "sqlalchemy"), ("run_streamed", "sqlite")])
@pytest.mark.parametrize(
    ("where", "billed"),
    [
        ("before-effect", ["model 1", "model 3"]),
        ("after-effect", ["model 1", "model 3"]),
        # The reply that the worker took to its grave is asked for again: nobody ever had it.
        ("before-final", ["model 1", "model 3", "model 3"]),
        ("after-write-of-1", ["model 1", "model 3"]),
        ("after-write-of-2", ["model 1", "model 3"]),
    ],
)
def test_a_crash_leaves_one_effect_and_a_clean_session(tmp_path, where, billed, way, kind):
    """Wherever the process dies, the card is charged once, the session holds each item once, no reply is paid twice."""
    died = in_process(paid, tmp_path, where, way, kind, True)

    ended = in_process(paid, tmp_path, where, way, kind, True)

    world = World(tmp_path)
    assert died.code == DEATH, died
    assert ended.value == "Paid 100.", ended
    assert world.effects.lines() == ["charged 100"]
    assert world.held() == CLEAN
    assert world.bill.lines() == billed


@pytest.mark.parametrize("way", ["run", "run_streamed"])
def test_what_nothing_can_settle_stops_the_run(tmp_path, way):
    """Without ``recover`` the run stops before anything else happens, and the session holds no half of a turn."""
    died = in_process(paid, tmp_path, "after-effect", way, "sqlite", False)

    ended = in_process(paid, tmp_path, "after-effect", way, "sqlite", False)

    world = World(tmp_path)
    assert died.code == DEATH
    assert ended.error[:2] == ("SideEffectRetryBlockedError", "_Passing"), ended
    assert (world.effects.lines(), world.bill.lines(), world.held()) == (
        ["charged 100"],
        ["model 1"],
        ["user"],
    )


def lost(effects: Log, slow: bool) -> Any:
    """A tool whose first call fails after its effect: the answer was lost, or took too long."""
    options = {"timeout": 60} if slow else {}

    @function_tool(**options)
    async def pay(amount: int) -> str:
        effects.add(f"charged {amount}")
        if len(effects.lines()) == 1:
            if slow:
                let_time_pass(60)
                await asyncio.Event().wait()
            raise ConnectionError("response lost after the charge went through")
        return "ok"

    return pay


def stubborn(given: Any) -> Any:
    """A model that tries again as long as it is told of a failure."""
    last = given[-1]
    if last.get("role") == "user" or "ok" not in str(last.get("output")):
        return [call("pay", f"call_{len(given)}", amount=100)]
    return [said()]


STOPPING = {"once_per": {"once_per": "args"}, "settle_failures": {"settle_failures": True}}


@pytest.mark.parametrize("option", STOPPING)
@pytest.mark.parametrize("slow", [False, True], ids=["failed", "timed-out"])
def test_the_second_charge_is_stopped(journal, effects, slow, option, durable):
    """A model that calls again under a new id after an unclear failure does not charge twice: the run stops."""
    runner = DurableRunner(journal, policies={"pay": never(**STOPPING[option])})

    with pytest.raises(Exception, match="may have happened"):
        durable(runner, agent(stubborn, lost(effects, slow)), "pay", run_id="bill-1")

    assert effects.lines() == ["charged 100"]


@pytest.mark.parametrize("option", STOPPING)
@pytest.mark.parametrize("slow", [False, True], ids=["failed", "timed-out"])
def test_recover_answers_the_second_charge(journal, effects, slow, option, durable):
    """Where ``recover`` knows that the first charge went through, the second call gets its outcome."""
    policy = never(**STOPPING[option], recover=lambda call: Done("ok, charged before"))
    runner = DurableRunner(journal, policies={"pay": policy})

    result = durable(runner, agent(stubborn, lost(effects, slow)), "pay", run_id="bill-1")

    assert result.final_output == "Done."
    assert effects.lines() == ["charged 100"]


def test_a_person_decides_about_the_second_charge(journal, effects, durable):
    """The second call waits for a person, who says that neither has happened; then it runs, once."""
    runner = DurableRunner(journal, policies={"pay": never(settle_failures=True)})
    with pytest.raises(SideEffectRetryBlockedError):
        durable(runner, agent(stubborn, lost(effects, slow=False)), "pay", run_id="bill-1")
    journal.resolve("bill-1", "pay", NotDone(), by="ada")

    result = durable(runner, agent(stubborn, lost(effects, slow=False)), "pay", run_id="bill-1")

    assert result.final_output == "Done."
    assert effects.lines() == ["charged 100"] * 2


def test_equal_calls_that_were_both_meant_run(journal, effects, durable):
    """Without a failure, two equal calls are two calls."""
    runner = DurableRunner(journal, policies={"pay": never(settle_failures=True)})
    effects.add("before")
    both = [call("pay", "c1", amount=100), call("pay", "c2", amount=100)]

    durable(runner, agent(turns(both, [said()]), lost(effects, slow=False)), "pay", run_id="bill-1")

    assert effects.lines() == ["before", "charged 100", "charged 100"]


def test_a_failure_that_proves_that_nothing_happened_frees_the_call(journal, effects, durable):
    """``not_performed`` errors settle themselves: the call may be made again."""
    policy = never(settle_failures=True, not_performed=(ConnectionError,))
    runner = DurableRunner(journal, policies={"pay": policy})

    durable(runner, agent(stubborn, lost(effects, slow=False)), "pay", run_id="bill-1")

    assert effects.lines() == ["charged 100"] * 2
