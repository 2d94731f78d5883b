"""Workers in processes of their own, to which a test talks; they are forked from a server that imported everything once."""

import multiprocessing
import os
import signal

from tests.once.world import PATIENCE

_PROCESSES = multiprocessing.get_context("forkserver")
_PROCESSES.set_forkserver_preload(
    ["pytest", "asyncio", "gnl_middleware.journal", "tests.langchain.preloaded"]
)


class Worker:
    """A program ``program(line, *arguments)`` of a module, in a process of its own.

    Its end of the line has ``send`` and ``recv``.
    """

    def __init__(self, program, *arguments):
        self._line, theirs = _PROCESSES.Pipe()
        self._process = _PROCESSES.Process(target=program, args=(theirs, *arguments), daemon=True)
        self._process.start()
        theirs.close()

    def hear(self):
        """Wait for what the worker says next."""
        assert self._line.poll(PATIENCE), "the worker says nothing"
        return self._line.recv()

    def tell(self, word="go on"):
        """Say something to the worker."""
        self._line.send(word)

    def stop(self):
        """Suspend the process."""
        os.kill(self._process.pid, signal.SIGSTOP)

    def go_on(self):
        """Let a suspended process go on."""
        os.kill(self._process.pid, signal.SIGCONT)

    def kill(self):
        """Kill the process as `kill -9` does."""
        self._process.kill()
        self._process.join(PATIENCE)

    def __enter__(self):
        return self

    def __exit__(self, kind, error, traceback):
        self.kill()
        self._process.close()
        self._line.close()
