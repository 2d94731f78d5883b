"""The examples, run as a reader would run them, against the scripted server instead of a provider."""

import contextlib
import io
import os
import re
import runpy
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.openai_agents.processes import Ended, in_process
from tests.servers.scripted_openai import Reply, ScriptedOpenAI, ToolCall

EXAMPLES = Path(__file__).parents[2] / "examples"


def script(request: dict[str, Any]) -> Reply:
    """What a model would do: look up, open a ticket and mail; or refund, by hand-off where it must."""
    answers = [message for message in request["messages"] if message["role"] == "tool"]
    tools = [tool["function"]["name"] for tool in request.get("tools", ())]
    plans = {
        "create_ticket": [
            ToolCall("c1", "lookup_customer", {"customer_id": "C-1042"}),
            ToolCall("c2", "create_ticket", {"customer_id": "C-1042", "subject": "Water damage"}),
            ToolCall("c3", "send_email", {"to": "c-1042@customers.example", "body": "We are on it."}),
        ],
        "transfer_to_refunds": [ToolCall("h1", "transfer_to_refunds", {})],
        "refund": [ToolCall("c1", "refund", {"order": "8841"})],
    }
    plan = next((plan for name, plan in plans.items() if name in tools), [])
    done = [message["tool_call_id"] for message in answers]
    left = [call for call in plan if call.id not in done]
    return Reply(calls=(left[0],)) if left else Reply("All is done.")


@pytest.fixture
def server():
    with ScriptedOpenAI(script) as server:
        yield server


def played(folder: Path, base_url: str, name: str, arguments: list[str]) -> str:
    """Runs in a process of its own, in this folder; what the example prints."""
    import agents

    os.environ |= {"OPENAI_BASE_URL": base_url, "OPENAI_API_KEY": "none"}
    os.chdir(folder)
    agents.set_default_openai_api("chat_completions")
    agents.set_tracing_disabled(True)
    sys.argv = [str(EXAMPLES / f"openai_agents_{name}.py"), *arguments]
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        runpy.run_path(sys.argv[0], run_name="__main__")
    return printed.getvalue()


def start(
    server: ScriptedOpenAI, folder: Path, name: str, *arguments: str, crash_at: str | None = None
) -> Ended:
    """Start an example in this folder."""
    return in_process(played, folder, server.base_url, name, list(arguments), crash_at=crash_at)


def test_they_are_short():
    """Each example fits on a screen."""
    for path in EXAMPLES.glob("openai_agents_*.py"):
        assert len(path.read_text(encoding="utf-8").splitlines()) < 50, path.name


def test_the_support_agent(server, tmp_path):
    """Killed behind the ticket, it finds it; killed behind the mail, it stops, and the command that it prints settles it."""
    assert start(server, tmp_path, "support_agent", crash_at="create_ticket:after_body").died
    assert start(server, tmp_path, "support_agent", crash_at="send_email:after_body").died

    stopped = start(server, tmp_path, "support_agent")
    (command,) = re.findall(r"^ *(gnl resolve .* --happened --by )YOU", stopped.text, re.MULTILINE)
    decided = subprocess.run(
        [sys.executable, "-m", "gnl_middleware.cli", *shlex.split(command)[1:], "somebody"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    resumed = start(server, tmp_path, "support_agent")

    assert (stopped.error[0], decided.returncode) == ("SideEffectRetryBlockedError", 0), decided.stderr
    assert resumed.value == "All is done.\n", resumed.text
    assert len(list((tmp_path / "tickets").iterdir())) == 1
    assert (tmp_path / "mails.txt").read_text().count("We are on it.") == 1
    assert len(server.requests) == len(set(server.requests)) == 4


def test_the_handoffs(server, tmp_path):
    """Killed in the second agent, the run goes on there."""
    died = start(server, tmp_path, "handoffs", crash_at="refund:after_outcome")

    ended = start(server, tmp_path, "handoffs")

    assert died.died
    assert ended.value == "All is done.\n", ended.text
    assert (tmp_path / "refunds.txt").read_text() == "8841\n"
    assert len(server.requests) == 3


def test_the_approval(server, tmp_path):
    """It stops; approved, killed and approved again, it refunds once."""
    asked = start(server, tmp_path, "approval")
    died = start(server, tmp_path, "approval", "approve", crash_at="refund:after_outcome")

    ended = [start(server, tmp_path, "approval", "approve") for _ in range(2)]

    assert asked.value == "waits for an approval of refund\n", asked.text
    assert died.died
    assert [each.value for each in ended] == ["All is done.\n"] * 2, ended[0].text
    assert (tmp_path / "refunds.txt").read_text() == "8841\n"
    assert len(server.requests) == 2


def test_the_stream(server, tmp_path):
    """Cut off in the middle of an answer, it asks for that again; a finished one costs nothing more."""
    died = start(server, tmp_path, "streaming", crash_at="gpt-5-mini:mid_stream")

    ended = [start(server, tmp_path, "streaming") for _ in range(2)]

    assert died.died
    assert [each.value for each in ended] == ["All is done.\n"] * 2, ended[0].text
    assert (tmp_path / "refunds.txt").read_text() == "8841\n"
    assert len(server.requests) == 3
