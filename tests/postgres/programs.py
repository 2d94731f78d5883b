"""Workers that share a journal in PostgreSQL; what they do in the world are lines of a file."""

import asyncio
import os
from pathlib import Path

from gnl_middleware import GnlError, Journal, journaled, never, safe
from tests.processes.children import Line


def note(effects: str | Path, line: str) -> None:
    """Let something happen; many processes may do so at once."""
    descriptor = os.open(effects, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(descriptor, f"{line}\n".encode())
    os.close(descriptor)


def happened(effects: Path) -> list[str]:
    """What has happened, in order."""
    return effects.read_text(encoding="utf-8").split() if effects.exists() else []


def work(line: Line, url: str, effects: str, worker: int, runs: int) -> None:
    """Do so many runs of two side effects; say each when it has ended, with what went wrong."""

    @journaled(replay=never)
    def charge(number: int) -> str:
        note(effects, f"charge-{worker}-{number}")
        return f"charged {number}"

    @journaled(replay=never)
    async def mail(number: int) -> str:
        note(effects, f"mail-{worker}-{number}")
        return f"mailed {number}"

    async def job(journal: Journal, number: int) -> list[str]:
        async with journal.run(f"order-{worker}-{number}"):
            return [
                journaled(lambda: "looked", replay=safe, name="look")(),
                charge(number),
                await mail(number),
            ]

    with Journal(url) as journal:
        for number in range(runs):
            try:
                asyncio.run(job(journal, number))
            except GnlError as error:
                line.say(f"{type(error).__name__}: {error}")
            else:
                line.say(None)
