"""The example in the README: run as a reader would run it, against the scripted server instead of a provider."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from gnl_langchain.demo.desk import HelpDesk
from tests.servers.scripted_openai import ScriptedOpenAI
from tests.servers.support_turn import support_turn

EXAMPLE = Path(__file__).parents[2] / "examples" / "langchain_support_agent.py"
CRASHING = f"""
import runpy
from gnl_middleware.testing import install_crash_points
install_crash_points()
runpy.run_path({str(EXAMPLE)!r}, run_name="__main__")
"""
REPLY = (
    "Ticket T-1001 is open, and orders@harbour-books.example has been told that a reprint is on its way.\n"
)


@pytest.fixture
def server():
    with ScriptedOpenAI(support_turn) as server:
        yield server


def run(server, folder, *, crash_at=None):
    """Start the example in this folder, as it is or with a crash point."""
    settings = {"OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": "none"}
    environment = os.environ | settings | ({} if crash_at is None else {"GNL_CRASH_AT": crash_at})
    program = [str(EXAMPLE)] if crash_at is None else ["-c", CRASHING]
    return subprocess.run(
        [sys.executable, *program], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def test_the_example_is_short():
    """The example stays under 40 lines."""
    assert len(EXAMPLE.read_text(encoding="utf-8").splitlines()) < 40


def test_running_it_again_reads_the_finished_run_back(server, tmp_path):
    """The second run prints the same reply without asking the model or touching the world."""
    outputs = [run(server, tmp_path) for _ in range(2)]

    assert [output.stdout for output in outputs] == [REPLY, REPLY], outputs[0].stderr
    assert len(server.requests) == 4
    desk = HelpDesk(tmp_path / "helpdesk")
    assert (len(desk.tickets()), len(desk.mails())) == (1, 1)


def test_it_resumes_after_a_crash_behind_an_effect(server, tmp_path):
    """Killed when the ticket is open but not yet recorded, it finds the ticket and goes on: nothing is done twice."""
    crashed = run(server, tmp_path, crash_at="create_ticket:after_body")
    resumed = run(server, tmp_path)

    assert crashed.returncode not in (0, 1)
    assert resumed.stdout == REPLY, resumed.stderr
    assert len(server.requests) == len(set(server.requests)) == 4
    desk = HelpDesk(tmp_path / "helpdesk")
    assert (len(desk.tickets()), len(desk.mails())) == (1, 1)


def test_it_stops_where_only_a_person_can_know_and_says_what_to_type(server, tmp_path):
    """Killed when the email is out but not recorded, it does not send it again; the command that it prints settles it."""
    run(server, tmp_path, crash_at="send_email:after_body")

    stopped = run(server, tmp_path)
    (command,) = re.findall(r"^ *(gnl resolve .* --happened --by )YOU", stopped.stderr, re.MULTILINE)
    decided = subprocess.run(
        [sys.executable, "-m", "gnl_middleware.cli", *shlex.split(command)[1:], "somebody"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    resumed = run(server, tmp_path)

    assert (stopped.returncode, "SideEffectRetryBlockedError" in stopped.stderr) == (1, True)
    assert decided.returncode == 0, decided.stderr
    assert resumed.stdout == REPLY, resumed.stderr
    assert len(server.requests) == 4
    assert len(HelpDesk(tmp_path / "helpdesk").mails()) == 1
