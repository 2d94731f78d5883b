"""A recorded run is replayed against today's code: nothing runs, and the first difference is told."""

import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from gnl_middleware import Journal, JournalError
from gnl_middleware.testing import CrashToolkitError, EffectLog, verify
from tests.divergence import mail_agent
from tests.langchain.scripted import QUESTION

ROOT = Path(__file__).parents[2]


@pytest.fixture
def world(tmp_path, monkeypatch):
    """Where the agent mails and is billed, and a way to change its code."""
    monkeypatch.setenv("MAIL_FOLDER", str(tmp_path))
    monkeypatch.delenv("CHANGED", raising=False)
    return lambda change: monkeypatch.setenv("CHANGED", change)


@pytest.fixture
def recorded(journal, world):
    """The journal of a finished run."""
    mail_agent.run(mail_agent.build(), "order-7", journal)
    return journal


def counted(tmp_path):
    logs = (EffectLog(tmp_path / name) for name in (mail_agent.BILL, mail_agent.EFFECTS))
    return [sum(log("order-7").values()) for log in logs]


def everything(journal):
    (run,) = journal.runs()
    return run, journal.steps("order-7")


@pytest.mark.parametrize("run", [mail_agent.run, mail_agent.run_async], ids=["sync", "async"])
def test_the_same_code_is_the_same(recorded, tmp_path, run):
    """Code that has not changed comes to every recorded step; nobody is asked, nothing happens, nothing is written."""
    before = everything(recorded)

    found = verify(mail_agent.build, run, "order-7", recorded)

    found.assert_same()
    assert (found.recorded, found.read_back) == (4, 4)
    assert counted(tmp_path) == [2, 1]
    assert everything(recorded) == before


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("prompt", "+Be verbose."),
        ("nothing asked", "no longer to 1 (scripted), 2 (mail), 3 (scripted) and 1 more"),
        ("swallowed", "no longer to 4 (archive)"),
        ("one call more", "The code calls archive"),
    ],
)
def test_a_change_is_told(recorded, tmp_path, world, change, told):
    """A changed prompt, a step that is gone and a step that is new are each told, and nothing happens."""
    world(change)
    before = everything(recorded)

    found = verify(mail_agent.build, mail_agent.run, "order-7", recorded)

    assert not found.same
    assert told in found.verdict
    with pytest.raises(AssertionError, match="not the same"):
        found.assert_same()
    assert counted(tmp_path) == [2, 1]
    assert everything(recorded) == before


def test_another_input_is_told(journal, world):
    """Code that now begins with another input than the record differs from it."""
    mail_agent.run_durably(mail_agent.build(), "order-7", journal)

    def another(agent, run_id, journal):
        with journal.run(run_id, input="another"):
            pass

    assert not verify(mail_agent.build, another, "order-7", journal).same


def test_what_the_code_itself_raises_is_a_difference(recorded):
    """Code that now fails where the recorded run ended well does not do the same."""
    found = verify(mail_agent.build, mail_agent.run_badly, "order-7", recorded)

    assert "The code ended with OSError: the disk is full" in found.verdict


def test_a_run_that_has_not_ended_is_the_same_as_far_as_it_goes(journal, world, tmp_path):
    """Of an interrupted run what is recorded is compared, and what comes next is named, not run."""
    with pytest.raises(KeyboardInterrupt), journal.run("order-7"):
        mail_agent.build().invoke(QUESTION)
        raise KeyboardInterrupt

    found = verify(mail_agent.build, mail_agent.run, "order-7", journal)

    assert found.same
    assert found.went_on == "archive"
    assert counted(tmp_path) == [2, 1]


def test_it_does_not_disturb_who_works_on_the_run(recorded):
    """A run that a worker holds can be verified meanwhile; the worker keeps its lease."""
    with recorded.run("order-7") as held:
        found = verify(mail_agent.build, mail_agent.run, "order-7", recorded)
        held.session.check_lease()

    assert found.same


def test_what_says_nothing_is_an_error(recorded, world):
    """An unknown run, and code that does not open it, prove nothing and say so."""
    with pytest.raises(CrashToolkitError, match="There is no run 'order-8'"):
        verify(mail_agent.build, mail_agent.run, "order-8", recorded)
    with pytest.raises(CrashToolkitError, match="did not open run 'order-7'"):
        verify(mail_agent.build, mail_agent.run_without, "order-7", recorded)


def test_a_journal_that_cannot_be_read_is_no_difference(tmp_path, recorded, world):
    """A damaged record is reported as damage, not as changed code."""
    recorded.close()
    with closing(sqlite3.connect(tmp_path / "runs.db")) as connection, connection:
        connection.execute("UPDATE gnl_steps SET name = 'another'")
    with Journal(tmp_path / "runs.db") as damaged, pytest.raises(JournalError):
        verify(mail_agent.build, mail_agent.run, "order-7", damaged)


class TestTheCommand:
    """`gnl verify`, as a process of its own."""

    def verified(self, tmp_path, *options, run_id="order-7", **environment):
        command = [
            sys.executable,
            "-m",
            "gnl_middleware.cli",
            "verify",
            run_id,
            "tests.divergence.mail_agent:build",
        ]
        return subprocess.run(
            [*command, "--journal", str(tmp_path / "runs.db"), *options],
            cwd=ROOT,
            env=os.environ | {"MAIL_FOLDER": str(tmp_path)} | environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )

    def test_it_ends_with_0_where_nothing_changed(self, recorded, tmp_path):
        """The sentence says how much was compared."""
        ended = self.verified(tmp_path)

        assert (ended.returncode, ended.stdout) == (
            0,
            "Run 'order-7': the same, in 4 of 4 recorded steps.\n",
        ), ended.stderr

    def test_it_ends_with_1_and_the_difference(self, recorded, tmp_path):
        """The difference stands there for people, and as JSON for programs."""
        ended = self.verified(tmp_path, CHANGED="prompt")
        told = json.loads(self.verified(tmp_path, "--json", CHANGED="prompt").stdout)

        assert ended.returncode == 1
        assert "@@ messages[0].content @@\n-Be brief.\n+Be verbose." in ended.stdout
        assert (told["same"], told["difference"]["part"]) == (False, "messages")

    def test_it_ends_with_2_where_nothing_can_be_said(self, recorded, tmp_path):
        """An unknown run is neither the same nor different."""
        ended = self.verified(tmp_path, run_id="order-8")

        assert ended.returncode == 2
        assert "There is no run 'order-8'" in ended.stderr
        assert "Traceback" not in ended.stderr

    def test_it_checks_the_record_instead(self, recorded, tmp_path):
        """With --integrity the record is checked; a row that somebody changed is named."""
        command = [sys.executable, "-m", "gnl_middleware.cli", "verify", "order-7", "--integrity"]
        command += ["--journal", str(tmp_path / "runs.db")]

        def checked():
            return subprocess.run(command, capture_output=True, text=True, check=False)

        before = checked()
        with closing(sqlite3.connect(tmp_path / "runs.db")) as connection, connection:
            connection.execute("UPDATE gnl_attempts SET status = 'failed'")
        after = checked()

        assert (before.returncode, after.returncode) == (0, 1), before.stderr + after.stderr
        assert "nothing was changed" in before.stdout
        assert "attempt 1" in after.stdout

    def test_it_wants_to_know_which(self, recorded, tmp_path):
        """Neither code to replay nor --integrity says nothing."""
        command = [sys.executable, "-m", "gnl_middleware.cli", "verify", "order-7"]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)

        assert ended.returncode == 2
        assert "Give MODULE:BUILD" in ended.stderr
