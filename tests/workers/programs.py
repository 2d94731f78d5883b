"""Workers at one run, with a lock or without; what they do in the world are lines of a file."""

import asyncio
import contextlib
import os
import uuid
from collections import Counter
from pathlib import Path
from typing import Any

from gnl_middleware import (
    Done,
    GnlError,
    Journal,
    LeaseLostError,
    NotDone,
    RunBusyError,
    journaled,
    never,
    safe,
)
from tests.leases.clocks import TurnedClock
from tests.processes.children import Line

RUN = "order-7"


def note(effects: str, line: str) -> None:
    """Let something happen; many processes may do so at once."""
    descriptor = os.open(effects, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(descriptor, f"{line}\n".encode())
    os.close(descriptor)


def happened(effects: str) -> Counter[str]:
    """How often each thing has happened."""
    return Counter(Path(effects).read_text(encoding="utf-8").split() if Path(effects).exists() else [])


class Order:
    """An order whose effects and results tell who had them.

    Args:
        effects: Where they happen.
        number: Which order.
    """

    def __init__(self, effects: str, number: int) -> None:
        self._effects, self._number = effects, number

    def _does(self, what: str) -> str:
        note(self._effects, f"{what}-{self._number}")
        return f"{what} by {os.getpid()} {uuid.uuid4()}"

    async def work(self, run: Any) -> list[str]:
        """Look up, charge, fail to print, and mail; gives what each gave."""
        deadline = str(run.uuid4())
        charge = journaled(lambda: self._does("charge"), replay=never, name="charge")

        @journaled(replay=safe)
        async def look_up() -> str:
            return self._does("look_up")

        @journaled(replay=never)
        def print_label() -> str:
            raise ValueError(self._does("print"))

        @journaled(replay=never)
        async def mail() -> str:
            return self._does("mail")

        found = [deadline, await look_up(), charge()]
        try:
            print_label()
        except ValueError as error:
            found.append(str(error))
        return [*found, await mail()]


def race(line: Line, place: str, effects: str, runs: int, options: dict[str, Any]) -> None:
    """On the word of the test, begin each run at once with another worker; say what it gave, or who was busy."""
    with Journal(place) as journal:
        journal.runs()
        for number in range(runs):
            line.say("ready")
            line.hear()
            line.say(_worked(journal, effects, number, options))


def _worked(journal: Journal, effects: str, number: int, options: dict[str, Any]) -> Any:
    async def work() -> list[str]:
        async with journal.run(f"order-{number}", **options) as run:
            return await Order(effects, number).work(run)

    try:
        return asyncio.run(work())
    except RunBusyError:
        return "busy"
    except GnlError as error:
        return f"{type(error).__name__}: {error}"


def claim(  # noqa: PLR0917 - the test says it in one line
    line: Line, place: str, effects: str, lease: float, who: str, answer: str | None = None
) -> None:
    """Charge without a lock, then mail; the body of the first to charge ends when the test says with what."""

    def recover(_call: object) -> Any:
        note(effects, "asked")
        return Done(answer) if answer != "not done" else NotDone()

    @journaled(replay=never(recover=recover) if answer else never)
    def charge() -> str:
        note(effects, "charge")
        line.say("charging")
        return line.hear()

    @journaled(replay=never)
    def mail() -> str:
        note(effects, "mail")
        return f"mailed by {who}"

    with Journal(place) as journal:
        line.say("begins")
        try:
            with journal.run(RUN, lock=False, lease=lease):
                line.say(_told(charge))
                line.hear()
                line.say(_told(mail))
        except GnlError as error:
            line.say(type(error).__name__)
        else:
            line.say("left")


def _told(function: Any) -> str:
    try:
        return function()
    except GnlError as error:
        return (
            f"{type(error).__name__} {error.reason}"
            if isinstance(error, LeaseLostError)
            else type(error).__name__
        )


def sleep_without_renewal(line: Line, place: str, effects: str, locked: bool, lease: float) -> None:
    """Charge for longer than the lease, which nobody renews; the body ends when the test says so."""
    from gnl_middleware.session import renewal

    renewal._renew = lambda _session: None

    @journaled(replay=never)
    def charge() -> str:
        note(effects, "charge")
        line.say("charging")
        return line.hear()

    with Journal(place) as journal, contextlib.suppress(GnlError), journal.run(RUN, lock=locked, lease=lease):
        charge()
    line.say("left")


def open_and_charge(line: Line, place: str, effects: str, ahead: float, options: dict[str, Any]) -> None:
    """With a clock that is ahead, open the run, charge when told to, and say what came of it."""

    @journaled(replay=never)
    def charge() -> str:
        note(effects, "charge")
        return f"charged by {os.getpid()}"

    with Journal(place, clock=TurnedClock(ahead=ahead)) as journal:
        try:
            with journal.run(RUN, **options):
                line.say("open")
                line.hear()
                line.say(charge())
        except GnlError as error:
            line.say(type(error).__name__)
        else:
            line.say("left")
        line.hear()


def fork_and_go_on(line: Line, place: str, effects: str) -> None:
    """Fork in the middle of a run; parent and child each finish a run of their own."""

    @journaled(replay=never)
    def charge(who: str) -> str:
        note(effects, who)
        return who

    journal = Journal(place)
    with journal.run("before"):
        charge("before")
    if (child := os.fork()) == 0:
        with journal.run("child"):
            charge("child")
        with journal.run("both", lock=False):
            charge("both")
        journal.close()
        os._exit(0)
    with journal.run("parent"):
        charge("parent")
    with journal.run("both", lock=False):
        charge("both")
    _, status = os.waitpid(child, 0)
    journal.close()
    line.say(status)


def sweep(line: Line, place: str, effects: str) -> None:
    """On the word of the test, sweep until nothing is left; say which runs were handled."""
    handled: list[str] = []

    def handle(job: Any) -> None:
        @journaled(replay=never)
        def mail() -> None:
            note(effects, job.run_id)

        with journal.run(job.run_id):
            assert journaled(lambda: "again", replay=never, name="charge")() == "charged"
            mail()

    with Journal(place) as journal:
        line.say("ready")
        line.hear()
        while journal.runs(status="interrupted"):
            handled += journal.sweep(handle)
    line.say(handled)
