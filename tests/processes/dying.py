"""Runs whose process is killed at random moments, again and again, until they get to their end.

The processes are forked from a parent that has no thread, so that a death costs milliseconds; it is as final as any.
"""

import asyncio
import contextvars
import gc
import json
import os
import random
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from gnl_middleware import Done, InterruptedCall, Journal, NotDone, Run, current_step, journaled, never, safe
from tests.processes.children import Line

RUN = "order-7"
STEPS = 6
_PATIENCE = 20


class World:
    """What outlives the processes: effects, and what was acknowledged to the agent.

    Attributes:
        path: The journal's file.
    """

    def __init__(self, folder: str) -> None:
        self.path = Path(folder) / "runs.db"
        self._effects, self._acknowledged = Path(folder) / "effects", Path(folder) / "acknowledged"

    def happen(self, effect: list[Any]) -> None:
        """Something happens in the world, at once or not at all."""
        _append(self._effects, effect)

    def acknowledge(self, answer: list[Any]) -> None:
        """The agent has seen this answer."""
        _append(self._acknowledged, answer)

    def effects(self) -> list[Any]:
        """What has happened."""
        return _lines(self._effects)

    def acknowledged(self) -> list[Any]:
        """What agents have seen."""
        return _lines(self._acknowledged)


def _append(path: Path, line: list[Any]) -> None:
    # One system call: a killed process leaves the whole line or none.
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, json.dumps(line).encode() + b"\n")
    os.close(file)


def _lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


class Agent:
    """Functions that ship and look up, and a `recover` that tells the truth."""

    def __init__(self, world: World) -> None:
        self._world = world

        def recover(call: InterruptedCall) -> Done | NotDone:
            found = [receipt for key, _, receipt in world.effects() if key == call.idempotency_key]
            return Done(found[0]) if found else NotDone()

        @journaled(replay=never(recover=recover))
        def ship(number: int) -> str:
            return self._ship(number)

        @journaled(replay=never(recover=recover))
        async def ship_async(number: int) -> str:
            await asyncio.sleep(0)
            return self._ship(number)

        @journaled(replay=safe)
        def look_up(number: int) -> str:
            return f"found {number} {random.random()}"

        self.ship, self.ship_async, self.look_up = ship, ship_async, look_up

    def _ship(self, number: int) -> str:
        step = current_step()
        assert step is not None
        receipt = f"receipt {number} {random.random()}"
        self._world.happen([step.idempotency_key, number, receipt])
        return receipt

    def see(self, name: str, number: int, answer: str) -> None:
        """The agent sees an answer."""
        self._world.acknowledge([name, number, answer])


def sequential(agent: Agent, journal: Journal) -> None:
    """One step after the other."""
    with journal.run(RUN):
        for number in range(STEPS):
            agent.see("look_up", number, agent.look_up(number))
            agent.see("ship", number, agent.ship(number))


def parallel(agent: Agent, journal: Journal) -> None:
    """All at once, in threads; each branch has a name."""

    def both(number: int) -> None:
        with run.scope(f"order-{number}"):
            agent.see("look_up", number, agent.look_up(number))
            agent.see("ship", number, agent.ship(number))

    with journal.run(RUN) as run, ThreadPoolExecutor(STEPS) as threads:
        for work in [threads.submit(contextvars.copy_context().run, both, number) for number in range(STEPS)]:
            work.result()


def asynchronous(agent: Agent, journal: Journal) -> None:
    """All at once, in tasks; each branch has a name."""

    async def both(run: Run, number: int) -> None:
        with run.scope(f"order-{number}"):
            agent.see("look_up", number, agent.look_up(number))
            agent.see("ship_async", number, await agent.ship_async(number))

    async def work() -> None:
        async with journal.run(RUN) as run:
            await asyncio.gather(*[both(run, number) for number in range(STEPS)])

    asyncio.run(work())


PROGRAMS = {program.__name__: program for program in (sequential, parallel, asynchronous)}


def _attempt(program: Callable[[Agent, Journal], None], world: World, begun: int) -> None:
    code = 1
    signal.alarm(_PATIENCE)
    try:
        with Journal(world.path) as journal:
            os.write(begun, b".")
            program(Agent(world), journal)
        code = 0
    except BaseException:  # noqa: BLE001
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def _fork(program: Callable[[Agent, Journal], None], world: World) -> int:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        _attempt(program, world, writing)
    os.close(writing)
    os.read(reading, 1)
    os.close(reading)
    return child


def _ending(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def die(line: Line, folder: str, name: str, seeds: Sequence[int], deaths: int) -> None:
    """For each seed, kill the processes of a run at random moments, so often; then let one reach its end."""
    rehearsed = World(f"{folder}/rehearsed")
    rehearsed.path.parent.mkdir()
    # Children find everything imported; nothing of this is open when they are forked.
    with Journal(rehearsed.path) as journal:
        PROGRAMS[name](Agent(rehearsed), journal)
    # Two hooks of one name would be none: nobody could tell which of them to ask about a call that was interrupted.
    gc.collect()
    duration = max(_duration(name, f"{folder}/timed-{turn}") for turn in range(2))
    line.say(threading.active_count())
    for seed in seeds:
        generator = random.Random(seed)
        world = World(f"{folder}/{seed}")
        world.path.parent.mkdir()
        killed = 0
        for _death in range(deaths):
            child = _fork(PROGRAMS[name], world)
            time.sleep(generator.uniform(0, duration))  # the moment of death is what is drawn
            os.kill(child, signal.SIGKILL)
            killed += _ending(child) == -signal.SIGKILL
        line.say([killed, _ending(_fork(PROGRAMS[name], world))])


def _duration(name: str, folder: str) -> float:
    world = World(folder)
    world.path.parent.mkdir()
    child = _fork(PROGRAMS[name], world)
    started = time.monotonic()
    assert _ending(child) == 0
    return time.monotonic() - started
