"""Programs in processes of their own, to which a test talks by lines; they can be stopped, killed and left unburied.

A program is a function ``program(line, *arguments)`` of a module in this tree. Every warning is an error there, what it
writes to standard error is kept, and it ends as interpreters end. Its process is forked from a parent without threads
that has imported everything, and so begins in milliseconds.
"""

import atexit
import contextlib
import functools
import json
import os
import signal
import socket
import sys
import tempfile
from collections.abc import Callable
from types import TracebackType
from typing import Any, NamedTuple, Self

from tests.processes.nursery import Nursery


class Line:
    """The program's end of the conversation."""

    def say(self, word: Any) -> None:
        """Tell the test something."""
        # One system call: what a killed process has said half way, nobody could read.
        os.write(1, json.dumps(word).encode() + b"\n")

    def hear(self) -> Any:
        """Wait for a word of the test."""
        return json.loads(sys.stdin.readline())


class End(NamedTuple):
    """How a program ended: its exit code, or a negative signal, and what it wrote to standard error."""

    code: int
    errors: str


@functools.cache
def _nursery() -> Nursery:
    nursery = Nursery()
    atexit.register(nursery.close)
    return nursery


class Child:
    """A program that runs in a process of its own.

    Args:
        program: A function of a module.
        arguments: Plain data for it.
        patience: Seconds after which the program's alarm clock kills it, so that what hangs fails its test.

    Attributes:
        pid: Its process id.
    """

    def __init__(self, program: Callable[..., object], *arguments: Any, patience: int = 60) -> None:
        self._end: End | None = None
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115
        self._talk, its_talk = socket.socketpair()
        self._said = self._talk.makefile("rb")
        with its_talk:
            self.pid = _nursery().fork(program, arguments, patience, its_talk.fileno(), self._errors.fileno())

    def hear(self) -> Any:
        """Wait for what the program says next."""
        said = self._said.readline()
        assert said, f"the program ended instead of speaking: {self.end()}"
        return json.loads(said)

    def tell(self, word: Any = "go on") -> None:
        """Say something to the program."""
        self._talk.sendall(json.dumps(word).encode() + b"\n")

    def end(self) -> End:
        """Wait until the program has ended."""
        if self._end is None:
            code = _nursery().bury(self.pid)
            self._errors.seek(0)
            self._end = End(code, self._errors.read().decode())
        return self._end

    def stop(self) -> None:
        """Suspend the process; it stands still when this returns."""
        _nursery().stop(self.pid)

    def go_on(self) -> None:
        """Let a suspended process go on."""
        os.kill(self.pid, signal.SIGCONT)

    def kill(self, *, bury: bool = True) -> None:
        """Kill the process as `kill -9` does; an unburied one stays in the process table as a zombie."""
        os.kill(self.pid, signal.SIGKILL)
        if bury:
            self.end()
        else:
            _nursery().wait_for_death(self.pid)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        # Also what it has forked.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self.end()
        for stream in (self._said, self._talk, self._errors):
            stream.close()
