"""Where the children come from: a process without threads that has imported everything, forks, and buries the dead."""

import gc
import importlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
_LONGEST = 1 << 16


class Nursery:
    """Speaks with that process: one question, one answer."""

    def __init__(self) -> None:
        self._talk, its_talk = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with its_talk:
            self._process = subprocess.Popen(
                [sys.executable, "-W", "error", "-m", "tests.processes.nursery", str(its_talk.fileno())],
                cwd=ROOT,
                pass_fds=[its_talk.fileno()],
            )

    def fork(
        self, program: Callable[..., object], arguments: Any, patience: int, talk: int, errors: int
    ) -> int:
        """Start a program; gives its process id."""
        question = ["fork", program.__module__, program.__qualname__, arguments, patience]
        socket.send_fds(self._talk, [json.dumps(question, default=str).encode()], [talk, errors])
        return json.loads(self._talk.recv(_LONGEST))

    def stop(self, pid: int) -> None:
        """Suspend a child and wait until it stands still."""
        self._ask("stop", pid)

    def wait_for_death(self, pid: int) -> None:
        """Wait until a child is dead, and leave it unburied."""
        self._ask("wait_for_death", pid)

    def bury(self, pid: int) -> int:
        """Wait until a child is dead and take it out of the process table; gives its exit code."""
        return self._ask("bury", pid)

    def _ask(self, *question: Any) -> Any:
        self._talk.sendall(json.dumps(question).encode())
        return json.loads(self._talk.recv(_LONGEST))

    def close(self) -> None:
        """End the process."""
        self._talk.close()
        self._process.wait()


def _stop(pid: int) -> None:
    os.kill(pid, signal.SIGSTOP)
    os.waitpid(pid, os.WUNTRACED)


def _wait_for_death(pid: int) -> None:
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)


def _bury(pid: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


_ANSWERS: dict[str, Callable[[int], Any]] = {"stop": _stop, "wait_for_death": _wait_for_death, "bury": _bury}


def _serve(talk: socket.socket) -> None:
    """Answer until the other end closes; in a forked child, run its program and come back from here to end."""
    while True:
        question, files, *_ = socket.recv_fds(talk, _LONGEST, 2)
        if not question:
            return
        name, *arguments = json.loads(question)
        if name != "fork":
            talk.sendall(json.dumps(_ANSWERS[name](*arguments)).encode())
            continue
        if child := os.fork():
            for file in files:
                os.close(file)
            talk.sendall(json.dumps(child).encode())
            continue
        talk.close()
        _run(files, *arguments)
        return


def _run(files: list[int], module: str, name: str, arguments: list[Any], patience: int) -> None:
    signal.alarm(patience)
    os.setpgid(0, 0)
    for file, place in zip((files[0], files[0], files[1]), (0, 1, 2), strict=True):
        os.dup2(file, place)
    for file in files:
        os.close(file)
    from tests.processes.children import Line

    getattr(importlib.import_module(module), name)(Line(), *arguments)


def _rehearse() -> None:
    """Do once what programs do, so that children find everything imported; nothing of it is left open."""
    import asyncio

    from gnl_middleware import Journal, journaled, never

    async def work() -> None:
        async with Journal(f"{folder}/runs.db").run("rehearsal"):
            journaled(lambda: None, replay=never, name="rehearse")()

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(work())
        gc.collect()
    assert threading.active_count() == 1


if __name__ == "__main__":
    _rehearse()
    gc.freeze()  # keeps the collector of a child from copying the pages that it shares with its parent
    with socket.socket(fileno=int(sys.argv[1])) as talking:
        _serve(talking)
