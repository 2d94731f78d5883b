"""Clocks that a test turns by hand."""

import time


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
