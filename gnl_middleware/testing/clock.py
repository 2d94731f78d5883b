"""Time that a test turns by hand."""

import threading


class ManualClock:
    """A clock for ``Journal(clock=...)`` that stands still until it is turned.

    It decides when leases end and what the journal writes down. What waits for real (``time.sleep``, the renewal of a lease)
    still takes its time.

    Args:
        start: The first reading of the wall clock, in seconds since the epoch.

    Example:
        >>> clock = ManualClock(start=1_700_000_000.0)
        >>> clock.advance(30)
        >>> clock.time(), clock.monotonic()
        (1700000030.0, 30.0)
    """

    def __init__(self, start: float = 1_700_000_000.0) -> None:
        self._lock = threading.Lock()
        self._time, self._monotonic = start, 0.0

    def time(self) -> float:
        """The wall clock, in seconds since the epoch.

        Example:
            >>> ManualClock().time()     # doctest: +SKIP
        """
        with self._lock:
            return self._time

    def monotonic(self) -> float:
        """Seconds since the clock was made, never fewer than before.

        Example:
            >>> ManualClock().monotonic()     # doctest: +SKIP
        """
        with self._lock:
            return self._monotonic

    def advance(self, seconds: float) -> None:
        """Let time pass.

        Raises:
            ValueError: The seconds are negative: time does not go back. See ``set_time``.

        Example:
            >>> manual_clock.advance(30)     # doctest: +SKIP
        """
        if seconds < 0:
            raise ValueError(
                f"time does not go back by {-seconds} s; a wall clock that is set does: set_time()"
            )
        with self._lock:
            self._time += seconds
            self._monotonic += seconds

    def set_time(self, time: float) -> None:
        """Set the wall clock alone, also back, as an administrator or a time server does.

        Example:
            >>> manual_clock.set_time(1_800_000_000)     # doctest: +SKIP
        """
        with self._lock:
            self._time = time
