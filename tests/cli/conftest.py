"""Journals made through the public API, and the command line run on them."""

import contextlib
import contextvars
import io
import os
import pty
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from click.testing import CliRunner

from gnl_middleware import Journal, SideEffectRetryBlockedError, journaled, never, safe
from gnl_middleware.cli.app import app

PROGRAM = Path(__file__).with_name("order_agent.py")


@pytest.fixture
def journal_path(tmp_path):
    """Where the journal of a test is, or will be."""
    return tmp_path / "runs.db"


@pytest.fixture
def gnl(journal_path):
    """Run a command on the test's journal, in this process."""

    def run(*arguments, exit_code=0, journal=journal_path):
        result = CliRunner().invoke(app, arguments, env={"GNL_JOURNAL": str(journal)}, prog_name="gnl")
        assert result.exit_code == exit_code, result.output
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        return result

    return run


@pytest.fixture
def gnl_process(tmp_path, journal_path):
    """Run `gnl` on the test's journal as a process of its own, as a person would."""

    def run(*arguments, environment=None, **options):
        return subprocess.run(
            [sys.executable, "-m", "gnl_middleware.cli", *arguments],
            cwd=tmp_path,
            env=os.environ | {"GNL_JOURNAL": str(journal_path)} | (environment or {}),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            **options,
        )

    return run


@pytest.fixture
def gnl_terminal(journal_path):
    """Run `gnl` on a terminal of 80 columns that understands colours, and give all that it wrote there."""

    def run(*arguments, environment=None):
        terminal, its_end = pty.openpty()
        child = subprocess.Popen(
            [sys.executable, "-m", "gnl_middleware.cli", *arguments],
            env=os.environ
            | {"GNL_JOURNAL": str(journal_path), "TERM": "xterm", "COLUMNS": "80"}
            | (environment or {}),
            stdin=its_end,
            stdout=its_end,
            stderr=its_end,
        )
        os.close(its_end)
        with child, contextlib.closing(io.FileIO(terminal)) as screen:
            written = b"".join(_chunks(screen))
        return child.returncode, written.decode()

    return run


def _chunks(screen):
    # Linux ends a terminal whose other end is closed with an error, other systems with an empty read.
    with contextlib.suppress(OSError):
        while chunk := screen.read(4096):
            yield chunk


class Agent:
    """The agent's program, run as a process each time.

    Attributes:
        mailbox: The file into which it mails: the effect that must happen once.
    """

    def __init__(self, journal, mailbox):
        self.journal, self.mailbox = journal, mailbox

    def run(self, *, crash_at=None):
        """Run it to its end, or to the crash point at which it dies."""
        return subprocess.run(
            [sys.executable, PROGRAM, self.journal, self.mailbox],
            env=os.environ | ({} if crash_at is None else {"GNL_CRASH_AT": crash_at}),
            capture_output=True,
            text=True,
            check=False,
        )

    def mails(self):
        """Who was mailed, in order."""
        return self.mailbox.read_text(encoding="utf-8").split()


@pytest.fixture
def agent(journal_path, tmp_path):
    """An agent of its own for the test."""
    return Agent(journal_path, tmp_path / "mailbox")


@pytest.fixture
def one_run(journal_path):
    """Journal one run of one step with these contents."""

    def record(run_id="order-1", *, name="look_up", policy=safe, value="found", arguments=(), **marks):
        def body(*given):
            if isinstance(value, BaseException):
                raise value
            return value

        with Journal(journal_path) as journal, journal.run(run_id, **marks):
            journaled(body, replay=policy, name=name)(*arguments)

    return record


@pytest.fixture
def interrupted(journal_path):
    """Leave side effects of a run without outcome: they began together and were cut off, which no attempt has seen yet."""

    def record(run_id="order-1", *, names=("send_email",)):
        began = threading.Barrier(len(names), timeout=30)

        def body(to):
            began.wait()
            raise KeyboardInterrupt

        effects = [journaled(body, replay=never, name=name) for name in names]
        with Journal(journal_path) as journal, pytest.raises(KeyboardInterrupt):
            _call_at_once(journal.run(run_id), effects)

    return record


def _call_at_once(run, effects):
    with run, ThreadPoolExecutor() as threads:
        calls = [threads.submit(contextvars.copy_context().run, effect, "ann") for effect in effects]
        for call in calls:
            call.result()


@pytest.fixture
def blocked(interrupted, journal_path):
    """The same, after an attempt that stopped there."""

    def record(run_id="order-1", **options):
        interrupted(run_id, **options)
        with (
            Journal(journal_path) as journal,
            pytest.raises(SideEffectRetryBlockedError),
            journal.run(run_id),
        ):
            pass

    return record
