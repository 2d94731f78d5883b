"""The examples of graphs: run as a reader would run them, against a scripted server, and killed half way."""

import json
import os
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from gnl_langchain.demo.desk import HelpDesk
from tests.servers.scripted_openai import Reply, ScriptedOpenAI, ToolCall

EXAMPLES = Path(__file__).parents[2] / "examples"
NAMES = ("langgraph_graph", "langgraph_handoffs", "langgraph_refund_approval", "langgraph_streaming_chat")
CRASHING = """
import runpy, sys
from gnl_middleware.testing import install_crash_points
install_crash_points()
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def script(request: dict[str, Any]) -> Reply:
    """Calls each tool that it is shown once, then says that all is done."""
    shown = [tool["function"]["name"] for tool in request.get("tools", ())]
    called = {
        call["function"]["name"]
        for message in request["messages"]
        for call in message.get("tool_calls") or ()
    }
    arguments = {
        "create_ticket": {"customer_id": "C-1042", "subject": "Order 8841"},
        "lookup_customer": {"customer_id": "C-1042"},
        "hand_to_billing": {},
    }
    for name in shown:
        if name not in called:
            return Reply(calls=(ToolCall(f"call_{name}", name, arguments[name]),))
    return Reply("All of it is done.")


@pytest.fixture
def server():
    with ScriptedOpenAI(script) as server:
        yield server


def run(server, folder, name, *arguments, crash_at=None):
    """Start an example in this folder, as it is or with a crash point."""
    settings = {"OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": "none"}
    environment = os.environ | settings | ({} if crash_at is None else {"GNL_CRASH_AT": crash_at})
    program = [str(EXAMPLES / f"{name}.py"), *arguments]
    if crash_at is not None:
        program = ["-c", CRASHING, *program]
    return subprocess.run(
        [sys.executable, *program], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("name", NAMES)
def test_examples_are_short(name):
    """Each stays under 80 lines."""
    assert len((EXAMPLES / f"{name}.py").read_text(encoding="utf-8").splitlines()) < 80


@pytest.mark.parametrize(("name", "asked"), [("langgraph_graph", 2), ("langgraph_handoffs", 3)])
def test_a_graph_goes_on_after_its_crash(server, tmp_path, name, asked):
    """Killed when the ticket is open and not yet recorded, it finds the ticket and goes on; run again, nothing happens."""
    died = run(server, tmp_path, name, crash_at="create_ticket:after_body")

    outputs = [run(server, tmp_path, name) for _ in range(2)]

    assert died.stdout == ""
    assert [output.stdout for output in outputs] == ["All of it is done.\n"] * 2, outputs[0].stderr
    assert len(server.requests) == asked
    assert len(HelpDesk(tmp_path / "helpdesk").tickets()) == 1


def test_a_refund_waits_for_its_approval(server, tmp_path):
    """Nothing happens before the approval; approving twice, the first time with a crash, opens one ticket."""
    name = "langgraph_refund_approval"
    waiting = run(server, tmp_path, name)
    before = HelpDesk(tmp_path / "helpdesk").tickets()

    run(server, tmp_path, name, "approve", crash_at="create_ticket:after_body")
    approved = [run(server, tmp_path, name, "approve").stdout for _ in range(2)]

    assert (waiting.stdout, list(before)) == ("waits for approval\n", []), waiting.stderr
    assert approved == ["All of it is done.\n"] * 2
    assert len(HelpDesk(tmp_path / "helpdesk").tickets()) == 1
    assert len(server.requests) == 2


def test_a_chat_streams_and_repeats_itself(server, tmp_path):
    """A message that is posted again is answered with the same stream, and the model is not asked again."""
    settings = {"OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": "none"}
    program = [sys.executable, str(EXAMPLES / "langgraph_streaming_chat.py"), "0"]
    with subprocess.Popen(
        program,
        cwd=tmp_path,
        env=os.environ | settings,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as chat:
        try:
            port = chat.stdout.readline().split()[-1]
            url = f"http://127.0.0.1:{port}/chats/42/messages"
            replies = []
            for number in (1, 1, 2):
                body = json.dumps([{"role": "user", "content": f"Who is C-1042? ({number})"}]).encode()
                with urllib.request.urlopen(f"{url}/{number}", data=body) as answer:  # noqa: S310 - on loopback
                    replies.append(answer.read().decode())
        finally:
            chat.terminate()

    assert replies == ["All of it is done."] * 3
    assert len(server.requests) == 4
