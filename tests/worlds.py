"""The world outside of the agents that tests run: what happened there stays on the disk, and outlives every process."""

import os
from dataclasses import dataclass
from pathlib import Path

DEATH = 9
"""The exit code of a process that the world has killed."""


@dataclass(frozen=True, slots=True)
class Log:
    """What happened, one line each."""

    path: Path

    def add(self, line: str) -> None:
        """Let something happen; it is on the disk when this returns, and several processes may do so at once."""
        with self.path.open("a", encoding="utf-8") as file:
            file.write(f"{line}\n")
            file.flush()
            os.fsync(file.fileno())

    def lines(self) -> list[str]:
        """All that happened, the oldest first."""
        return self.path.read_text(encoding="utf-8").splitlines() if self.path.exists() else []


class World:
    """What tools did and models billed, and what kills a process there.

    Args:
        folder: Outlives the processes.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.effects, self.bill = Log(folder / "effects"), Log(folder / "bill")

    def die_once(self, where: str) -> None:
        """End this process at once, the first time that any comes here."""
        marker = self.folder / f"died-{where}"
        if not marker.exists():
            marker.touch()
            os._exit(DEATH)
