"""Keeps connections from being carried over a fork of the process."""

import threading


class Gate:
    """Whoever uses a connection stands inside; a fork waits until nobody does.

    SQLite's locks belong to a process, and what it knows of them does not survive a fork: a connection that the child
    inherits makes it read without locks, wait for locks that nobody holds, or write to a log that another process has
    deleted (https://sqlite.org/howtocorrupt.html, section 2.6).
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._inside = 0
        self._shut = False

    def __enter__(self) -> None:
        """Stand inside for as long as a connection is used."""
        with self._changed:
            while self._shut:
                self._changed.wait()
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        """Step out."""
        with self._changed:
            self._inside -= 1
            if self._shut:
                self._changed.notify_all()

    def shut(self) -> None:
        """Wait until nobody is inside, and let nobody in."""
        with self._changed:
            self._shut = True
            while self._inside:
                self._changed.wait()

    def open(self) -> None:
        """Let everybody in again."""
        with self._changed:
            self._shut = False
            self._changed.notify_all()
