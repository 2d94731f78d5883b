"""`gnl` on a real terminal, with a person who types."""

import contextlib
import os
import pty
import signal
import subprocess
import sys

import pytest

from gnl_middleware import Journal
from tests.cli.interrupts import hear_interrupts


class Terminal:
    """A terminal with `gnl` in it.

    Attributes:
        screen: All that was written so far.
    """

    def __init__(self, journal_path, *arguments):
        self._end, its_end = pty.openpty()
        settings = {"GNL_JOURNAL": str(journal_path), "TERM": "xterm", "COLUMNS": "100", "NO_COLOR": "1"}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "gnl_middleware.cli", *arguments],
            env=os.environ | settings,
            stdin=its_end,
            stdout=its_end,
            stderr=its_end,
            start_new_session=True,
            preexec_fn=hear_interrupts,  # noqa: PLW1509 - it takes no lock
        )
        os.close(its_end)
        self.screen = ""

    def wait_for(self, text):
        """Read until this has been written since the last time."""
        seen = len(self.screen)
        while text not in self.screen[seen:]:
            self.screen += os.read(self._end, 4096).decode(errors="replace")

    def type(self, line):
        """Type a line."""
        os.write(self._end, f"{line}\n".encode())

    def ended(self):
        """How it ended, with all that it has written."""
        with contextlib.suppress(OSError):  # Linux ends a terminal whose other end is closed with an error
            while chunk := os.read(self._end, 4096):
                self.screen += chunk.decode(errors="replace")
        os.close(self._end)
        return self.process.wait(timeout=30)


@pytest.fixture
def terminal(journal_path):
    """Start `gnl` in a terminal; whatever happens, it ends with the test."""
    started = []

    def start(*arguments):
        started.append(Terminal(journal_path, *arguments))
        return started[-1]

    yield start
    for one in started:
        one.process.kill()
        one.process.wait()


def test_a_person_is_asked_and_decides(terminal, blocked, journal_path):
    """What may have happened is shown, the answers are taken as they are typed, and the decision stands in the journal."""
    blocked()
    screen = terminal("resolve", "order-1", "--by", "ada")

    screen.wait_for("What is it")
    screen.type("h")
    screen.wait_for("as JSON")
    screen.type('{"id": 7}')
    screen.wait_for("for the audit")
    screen.type("saw it")

    assert screen.ended() == 0
    assert "idempotency key" in screen.screen
    assert "it goes on from there" in screen.screen
    with Journal(journal_path) as journal:
        assert journal.steps("order-1")[0].value == {"id": 7}
        assert [(found.by, found.note) for found in journal.resolutions("order-1")] == [("ada", "saw it")]


def test_a_list_that_follows(terminal, one_run):
    """`--watch` draws the table anew when runs come, and Ctrl-C is the way out."""
    one_run("order-1")
    screen = terminal("runs", "--watch")

    screen.wait_for("order-1")
    one_run("order-2")
    screen.wait_for("order-2")
    os.killpg(screen.process.pid, signal.SIGINT)

    assert screen.ended() == 0


def test_removing_asks_first(terminal, one_run, journal_path):
    """Nothing is removed before a person has agreed."""
    one_run("order-1")
    refused = terminal("erase", "order-1")
    refused.wait_for("cannot be brought back")
    refused.type("n")
    assert refused.ended() == 1

    agreed = terminal("erase", "order-1")
    agreed.wait_for("cannot be brought back")
    agreed.type("y")
    assert agreed.ended() == 0

    with Journal(journal_path) as journal:
        assert len(journal.removals("order-1")) == 1
