"""A test that hangs must fail instead."""

import signal
from types import TracebackType


class alarm:  # noqa: N801
    """Raise in the main thread after so many seconds, wherever it stands."""

    def __init__(self, seconds: int) -> None:
        self._seconds = seconds

    def __enter__(self) -> None:
        self._before = signal.signal(signal.SIGALRM, self._ring)
        signal.alarm(self._seconds)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, self._before)

    def _ring(self, *_signal: object) -> None:
        raise TimeoutError(f"hung for {self._seconds} s")
