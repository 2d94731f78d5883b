"""Time as a thing handed in, so that tests turn it by hand."""

import time
from typing import Protocol


class Clock(Protocol):
    """Where the library reads the time."""

    def time(self) -> float:
        """Wall-clock time in seconds since the epoch."""
        ...

    def monotonic(self) -> float:
        """Seconds that never go back; only differences mean something."""
        ...


class SystemClock:
    """The machine's clock."""

    def time(self) -> float:
        """Wall-clock time in seconds since the epoch."""
        return time.time()

    def monotonic(self) -> float:
        """Seconds that never go back; only differences mean something."""
        return time.monotonic()
