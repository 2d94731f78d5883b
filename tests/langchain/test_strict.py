"""Strict replay over two processes: what is the same stays the same, what changed is refused before anything runs."""

import os
import subprocess
import sys
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.tools import tool

from gnl_langchain import JournalMiddleware
from gnl_middleware import DivergenceError, Journal, never, safe
from tests.langchain.driving import WAYS, drive
from tests.langchain.processes import in_process
from tests.langchain.scripted import ScriptedModel, calling, said, turns
from tests.worlds import Log

PLAIN: dict[str, Any] = {}
CHANGES: dict[str, tuple[dict[str, Any], str]] = {
    "prompt": ({"prompt": "Be verbose."}, "messages"),
    "model": ({"model_name": "scripted-2"}, "setup"),
    "tool description": ({"description": "Pay the money back."}, "setup"),
    "another tool": ({"more_tools": True}, "setup"),
}

PROGRAM = """
import sys
from pathlib import Path
from tests.langchain.test_strict import worked
print(*worked(Path(sys.argv[1]), "invoke", "strict", {})["keys"])
"""


def agent_of(
    folder: Any,
    *,
    prompt: str | None = "Be brief.",
    model_name: str = "scripted",
    description: str = "Refund.",
    more_tools: bool = False,
) -> tuple[ScriptedModel, Any]:
    def refund(order: int, reason: str) -> dict[str, Any]:
        Log(folder / "effects").add("refund")
        return {"refunded": order, "reason": reason}

    def look(order: int) -> str:
        """Look an order up."""
        return str(order)

    model = ScriptedModel(
        script=turns(
            calling("refund", order=7, reason="damaged", text="I refund it."), said("It is refunded.")
        ),
        model_name=model_name,
        bill=Log(folder / "bill"),
    )
    tools = [tool(description=description)(refund), *([look] if more_tools else [])]
    journaling = JournalMiddleware(policies={"refund": never}, default_policy=safe)
    return model, create_agent(model, tools, system_prompt=prompt, middleware=[journaling])


def worked(folder, way, replay, changes):
    """Runs in a process of its own."""
    _, agent = agent_of(folder, **changes)
    with Journal(folder / "runs.db") as journal:
        driven = drive(journal, agent, way, replay=replay)
        steps = journal.steps("run")
    return {
        "reply": driven.reply.strip(),
        "ran": driven.ran,
        "keys": [step.key for step in steps],
        "drifted": [step.name for step in steps if step.drifted],
    }


@pytest.mark.parametrize("replayed_by", WAYS)
@pytest.mark.parametrize("recorded_by", WAYS)
def test_another_process_asks_the_same_however_it_is_run(tmp_path, recorded_by, replayed_by):
    """Whatever way the agent is run in, a strict replay in another process finds every record and no difference."""
    first = in_process(worked, tmp_path, recorded_by, "strict", PLAIN)

    second = in_process(worked, tmp_path, replayed_by, "strict", PLAIN)

    assert (first.value["ran"], second.value["ran"]) == (3, 0)
    assert second.value["reply"] == first.value["reply"]
    assert second.value["drifted"] == []
    assert (len(Log(tmp_path / "bill").lines()), len(Log(tmp_path / "effects").lines())) == (2, 1)


def test_keys_are_the_same_in_every_interpreter(tmp_path):
    """No key depends on the process: an interpreter with another hash seed gives the same keys to the same run."""
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    keys = worked(here, "invoke", "strict", PLAIN)["keys"]

    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM, there],
        env=os.environ | {"PYTHONHASHSEED": "1"},
        capture_output=True,
        text=True,
        check=True,
    )

    assert ended.stdout.split() == keys
    assert len(keys) == 3


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("way", ["invoke", "astream"])
def test_a_change_is_refused_before_anything_runs(tmp_path, change, way):
    """A changed prompt, model or tool ends a strict replay; the error says which part, and nobody was asked again."""
    changes, part = CHANGES[change]
    in_process(worked, tmp_path, way, "strict", PLAIN)

    changed = in_process(worked, tmp_path, way, "strict", changes)

    assert changed.error[:2] == ("DivergenceError", "DivergenceError")
    assert f"(part: {part})" in changed.text
    assert (len(Log(tmp_path / "bill").lines()), len(Log(tmp_path / "effects").lines())) == (2, 1)


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_passes_a_lenient_replay_and_is_marked(tmp_path, change):
    """Lenient, the record answers all the same, and the steps that drifted say so."""
    changes, _ = CHANGES[change]
    in_process(worked, tmp_path, "invoke", "lenient", PLAIN)

    changed = in_process(worked, tmp_path, "invoke", "lenient", changes)

    assert (changed.value["reply"], changed.value["ran"]) == ("It is refunded.", 0)
    assert len(changed.value["drifted"]) == 2
    assert (len(Log(tmp_path / "bill").lines()), len(Log(tmp_path / "effects").lines())) == (2, 1)


def test_the_difference_is_shown(journal, tmp_path):
    """The error holds what was recorded and what is asked, and shows the lines that differ."""
    drive(journal, agent_of(tmp_path)[1])

    with pytest.raises(DivergenceError) as caught:
        drive(journal, agent_of(tmp_path, prompt="Be verbose.")[1], replay="strict")

    assert caught.value.part == "messages"
    assert caught.value.diff.splitlines()[2:] == ["@@ messages[0].content @@", "-Be brief.", "+Be verbose."]
    assert caught.value.recorded[0]["content"] == "Be brief."
    assert caught.value.asked[0]["content"] == "Be verbose."


@pytest.mark.parametrize("replay", ["strict", "lenient"])
def test_a_request_is_compared_with_a_request(journal, tmp_path, replay):
    """A prompt where there was none is shown as that, though it is the recorded side effect that was not asked for."""
    drive(journal, agent_of(tmp_path, prompt=None)[1])

    with pytest.raises(DivergenceError) as caught:
        drive(journal, agent_of(tmp_path, prompt="Be verbose.")[1], replay=replay)

    assert caught.value.recorded[0]["role"] == "user"
    assert "@@ messages[0] @@" in caught.value.diff
    assert "Be verbose." in caught.value.diff


def test_another_question_is_never_served_the_recorded_reply(journal, tmp_path):
    """A changed user message is another question: even lenient, the run stops rather than answer it from the record."""
    drive(journal, agent_of(tmp_path)[1])

    with pytest.raises(DivergenceError):
        drive(journal, agent_of(tmp_path)[1], given={"messages": [("user", "please refund order 8")]})

    assert len(Log(tmp_path / "effects").lines()) == 1
    assert len(Log(tmp_path / "bill").lines()) == 2
