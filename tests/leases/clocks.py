"""Clocks that a test turns by hand."""

import time
from pathlib import Path


class TurnedClock:
    """The machine's clock, ahead by as many seconds as the test says; it can also stand still.

    Attributes:
        ahead: Seconds by which both times are ahead.
    """

    def __init__(self, ahead: float = 0.0, *, frozen: bool = False) -> None:
        self.ahead = ahead
        self._frozen = (time.time(), time.monotonic()) if frozen else None

    def time(self) -> float:
        """Seconds since the epoch."""
        return (self._frozen[0] if self._frozen else time.time()) + self.ahead

    def monotonic(self) -> float:
        """Seconds that never go back."""
        return (self._frozen[1] if self._frozen else time.monotonic()) + self.ahead


class SharedClock:
    """A clock of several processes: it stands still in all of them until one turns it.

    Attributes:
        path: The file that holds its reading; it begins at the machine's time.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = str(path)
        if not Path(path).exists():
            self._show(time.time())

    def _show(self, reading: float) -> None:
        # At once: nobody reads half a number.
        fresh = Path(f"{self.path}.next")
        fresh.write_text(repr(reading), encoding="ascii")
        fresh.replace(self.path)

    def advance(self, seconds: float) -> None:
        """Let time pass for everybody."""
        self._show(self.time() + seconds)

    def time(self) -> float:
        """Seconds since the epoch."""
        return float(Path(self.path).read_text(encoding="ascii"))

    monotonic = time
