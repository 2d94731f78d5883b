"""Workers of the lease tests: an order that is charged and then mailed, each effect a line in a file.

The body of ``charge`` tells the test that it runs and ends when the test says with what.
"""

import asyncio
import sys
from pathlib import Path
from typing import Any

from gnl_middleware import Done, GnlError, Journal, NotDone, current_run, journaled, never
from tests.leases.clocks import SharedClock, TurnedClock
from tests.processes.children import Line

RUN = "order-7"
RECOVERED = Done("recovered")


class Shop:
    """The effects of one worker.

    Attributes:
        asked: How often ``recover`` was asked.
    """

    def __init__(self, effects: str | Path, *, line: Line | None = None, answer: Any = None) -> None:
        self._effects, self._line, self._answer = Path(effects), line, answer
        self.asked = 0

        @journaled(replay=never(recover=self._recover))
        def charge() -> str:
            self._note("charge")
            if self._line is None:
                return "charged"
            self._line.say("charging")
            return self._line.hear()

        @journaled(replay=never)
        def mail() -> str:
            self._note("mail")
            return "mailed"

        self.charge, self.mail = charge, mail

    def _recover(self, call: object) -> Any:
        self.asked += 1
        return self._answer or NotDone()

    def _note(self, effect: str) -> None:
        with self._effects.open("a", encoding="utf-8") as effects:
            effects.write(f"{effect}\n")


def effects_in(path: Path) -> list[str]:
    """What has happened in the world, in order."""
    return path.read_text(encoding="utf-8").split() if path.exists() else []


def hold(line: Line, path: str, effects: str, lease: float, frozen: bool = False) -> None:
    """Charge and mail; say what came of each, and how the run was left."""
    clock = TurnedClock(frozen=frozen)
    shop = Shop(effects, line=line)
    with Journal(path, clock=clock) as journal:
        try:
            with journal.run(RUN, lease=lease) as run:
                line.say({"charge": _told(shop.charge), "lost": run.session.lease.lost})
                line.hear()
                line.say({"mail": _told(shop.mail), "lost": run.session.lease.lost})
        except GnlError as error:
            line.say({"left": type(error).__name__})
        else:
            line.say({"left": None})


def _told(function: Any) -> str:
    try:
        return function()
    except GnlError as error:
        return type(error).__name__


def take(line: Line, path: str, effects: str) -> None:
    """Open the run at once, charge, mail, and say how often ``recover`` was asked."""
    shop = Shop(effects)
    with Journal(path) as journal, journal.run(RUN) as run:
        line.say([run.attempt, shop.charge(), shop.mail(), shop.asked])


def keep(line: Line, path: str, lease: float) -> None:
    """Open the run and keep it until the test says so; then leave it as told: cleanly, or by an error."""
    with Journal(path) as journal:
        try:
            with journal.run(RUN, lease=lease):
                line.say("held")
                if line.hear() == "fail":
                    raise RuntimeError("told to fail")  # noqa: TRY301 - what the run is left with
        except RuntimeError:
            pass
        line.say("left")
        line.hear()


def wait(line: Line, path: str) -> None:
    """Wait for the run, then say that it was got."""
    with Journal(path) as journal:
        line.say("waiting")
        with journal.run(RUN, on_busy="wait") as run:
            line.say(run.attempt)


def block_the_loop(line: Line, path: str, effects: str, lease: float, clock: str | None = None) -> None:
    """Charge within an event loop that the body blocks until the test says so; by the machine's clock, or a shared one."""
    shop = Shop(effects, line=line)
    shared = None if clock is None else SharedClock(clock)

    @journaled(replay=never, name="blocking")
    async def blocking() -> str:
        return shop.charge()

    async def work() -> None:
        async with Journal(path, clock=shared).run(RUN, lease=lease):
            line.say(await blocking())
            line.say(shop.mail())

    asyncio.run(work())


def never_bury(line: Line, path: str) -> None:
    """Hold the run in this process and go no further."""
    run = Journal(path).run(RUN)
    run.__enter__()
    assert current_run() is run
    line.say("held")
    line.hear()
    sys.exit("never told to go on")


def take_turns(line: Line, path: str, tasks: int) -> None:
    """Hold the run until so many tasks wait for it, and say in the end which of them had it."""
    journal = Journal(path)
    got: list[int] = []

    async def work(number: int) -> None:
        async with journal.run(RUN, on_busy="wait"):
            got.append(number)

    async def hold_first() -> None:
        async with journal.run(RUN):
            waiting = [asyncio.create_task(work(number)) for number in range(tasks)]
            await _refusals(journal, tasks // 2)
        await asyncio.gather(*waiting)

    asyncio.run(hold_first())
    line.say(sorted(got))


def give_up_waiting(line: Line, path: str) -> None:
    """Wait in a task for a run that is held, and cancel the task."""
    journal = Journal(path)

    async def work() -> None:
        async with journal.run(RUN, on_busy="wait"):
            line.say("got the run")

    async def cancel() -> None:
        task = asyncio.create_task(work())
        await _refusals(journal, 1)
        task.cancel()
        await asyncio.wait([task])
        line.say("cancelled" if task.cancelled() else "not cancelled")

    asyncio.run(cancel())


async def _refusals(journal: Journal, number: int) -> None:
    """Wait until the journal was asked for the run so many times more, each time in vain."""
    counters = journal._database().counters
    commits = counters.commits
    while counters.commits < commits + number:  # noqa: ASYNC110 - commits of another thread
        await asyncio.sleep(0.01)
