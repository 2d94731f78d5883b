"""`gnl resolve`: a person's decision about a call that may have happened."""

import json
import os
import re
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from gnl_middleware import Journal, NotDone, journaled, never
from gnl_middleware.testing import CRASH_EXIT_CODE


def waiting_step(journal_path):
    """The only step of the test's run that is no read."""
    with Journal(journal_path) as journal:
        return next(step for step in journal.steps("order-1") if step.policy == "never")


@pytest.mark.parametrize(
    ("died_at", "decision", "answer"),
    [
        ("after_body", ["--happened"], "confirmed by ops"),
        ("after_body", ["--happened", "--result", '"mailed ann"'], "mailed ann"),
        ("before_body", ["--did-not-happen"], "mailed ann"),
        ("after_body", ["--failed", "ask ann"], "told: ask ann"),
    ],
)
def test_a_dead_agent_is_resolved_and_finished(agent, gnl_process, died_at, decision, answer):
    """A process really dies at its mail; its restart stops; one command decides; the same code finishes: one mail."""
    died = agent.run(crash_at=f"send_email:{died_at}")
    stopped = agent.run()

    resolved = gnl_process("resolve", "order-1", "send_email", *decision, "--by", "ops")
    finished = agent.run()

    assert died.returncode == CRASH_EXIT_CODE
    assert stopped.returncode == 1
    assert "SideEffectRetryBlockedError" in stopped.stderr
    assert resolved.returncode == 0, resolved.stderr
    assert "Run the same code again" in resolved.stdout
    assert finished.returncode == 0, finished.stderr
    assert finished.stdout == f"{answer}\n"
    assert agent.mails() == ["ann"]


def test_the_printed_command_does_what_it_says(agent, gnl_process, journal_path):
    """The command that `gnl show` prints works as it stands in a shell, with a name in the place of YOU."""
    agent.run(crash_at="send_email:after_body")
    agent.run()
    shown = gnl_process("show", "order-1", "--journal", str(journal_path)).stdout
    command = next(line for line in shown.splitlines() if "--happened --by" in line)

    scripts = str(Path(sys.executable).parent)
    resolved = subprocess.run(
        ["/bin/sh", "-c", command.replace("YOU", "ops")],
        env=os.environ | {"PATH": os.pathsep.join([scripts, os.environ["PATH"]])},
        check=False,
    )
    finished = agent.run()

    assert resolved.returncode == 0
    assert finished.returncode == 0, finished.stderr
    assert agent.mails() == ["ann"]


@pytest.mark.parametrize("attribute", ["name", "key", "number"])
def test_a_step_is_named_by_tool_key_or_number(gnl, blocked, journal_path, attribute):
    """The tool's name, the step's key and its number all name the step."""
    blocked()
    named = str(getattr(waiting_step(journal_path), attribute))

    result = gnl("resolve", "order-1", named, "--happened", "--by", "ops")

    assert result.output.startswith("Step 1, send_email, is decided: happened, by ops.\n")
    assert waiting_step(journal_path).status == "done"


def test_a_result_keeps_its_json_type(gnl, blocked, journal_path):
    """`--result` is JSON: an object is recorded as an object, not as its text."""
    blocked()

    gnl(
        "resolve",
        "order-1",
        "send_email",
        "--happened",
        "--result",
        '{"id": "T-7", "n": [1, 2.5, null]}',
        "--by",
        "ops",
    )

    assert waiting_step(journal_path).value == {"id": "T-7", "n": [1, 2.5, None]}


def test_without_a_result_the_decision_itself_is_recorded(gnl, blocked, journal_path):
    """`--happened` alone gives the agent the text that somebody confirmed it, with the name."""
    blocked()

    gnl("resolve", "order-1", "send_email", "--happened", "--by", "ops")

    assert waiting_step(journal_path).value == "confirmed by ops"


def test_who_decided_and_why_is_kept(gnl, blocked, journal_path):
    """Name, note and decision stand in the journal for audit."""
    blocked()

    gnl("resolve", "order-1", "1", "--did-not-happen", "--by", "ops", "--note", "looked into the mailbox")

    with sqlite3.connect(journal_path) as connection:
        kept = connection.execute("SELECT decision, decided_by, note FROM gnl_resolutions").fetchall()
    connection.close()
    assert kept == [("not_done", "ops", "looked into the mailbox")]


def test_resolve_as_json(gnl, blocked, journal_path):
    """`--json` prints the documented object: the step as it stands after the decision."""
    blocked()

    answer = json.loads(
        gnl("resolve", "order-1", "1", "--happened", "--result", "7", "--by", "ops", "--json").output
    )

    step = waiting_step(journal_path)
    assert answer == {
        "step": {
            "run_id": "order-1",
            "key": step.key,
            "number": 1,
            "scope": "",
            "kind": "tool",
            "name": "send_email",
            "policy": "never",
            "status": "done",
            "blocked": None,
            "attempts": 1,
            "started_at": step.started_at,
            "finished_at": step.finished_at,
            "arguments": {"to": "ann"},
            "value": 7,
            "error": None,
            "drifted": False,
            "resolution": "happened",
            "attempt": 1,
            "tokens": 0,
            "origin": None,
        }
    }


@pytest.mark.parametrize(
    "decision",
    [
        [],
        ["--happened", "--did-not-happen"],
        ["--happened", "--failed", "no"],
        ["--did-not-happen", "--failed", "no"],
        ["--did-not-happen", "--result", "1"],
        ["--failed", "no", "--result", "1"],
        ["--failed", " "],
        ["--happened", "--result", "sent"],
        ["--happened", "--result", "NaN"],
        ["--happened", "--result", "[" * 100_000],
    ],
)
def test_a_decision_that_is_not_clear_is_a_usage_error(gnl, blocked, journal_path, decision):
    """None or two decisions, a result of what did not happen, no text, or no JSON: refused, and nothing is decided."""
    blocked()

    gnl("resolve", "order-1", "send_email", *decision, "--by", "ops", exit_code=2)

    assert waiting_step(journal_path).resolution is None


def test_the_first_decision_wins(gnl, blocked, journal_path):
    """A second decision is refused with exit code 1, and the first one stands."""
    blocked()
    gnl("resolve", "order-1", "1", "--happened", "--result", '"first"', "--by", "ops")

    result = gnl("resolve", "order-1", "1", "--happened", "--result", '"second"', "--by", "dev", exit_code=1)

    assert "was not decided" in result.stderr
    assert waiting_step(journal_path).value == "first"


def test_what_is_still_running_is_not_decided(gnl, journal_path):
    """A call under a live lease is refused: it will tell itself how it ended."""
    refused = []

    def send_email():
        refused.append(gnl("resolve", "order-1", "1", "--did-not-happen", "--by", "ops", exit_code=1).stderr)
        return "mailed"

    with Journal(journal_path) as journal, journal.run("order-1"):
        answer = journaled(send_email, replay=never)()

    assert "still running" in refused[0]
    assert answer == "mailed"


def test_a_name_that_fits_several_steps_is_refused_with_their_numbers(gnl, interrupted):
    """One name for two waiting calls is no decision: both are listed, and the number says which."""
    interrupted(names=("send_email", "send_email"))

    result = gnl("resolve", "order-1", "send_email", "--did-not-happen", "--by", "ops", exit_code=1)

    assert re.search(r"1 \(.*\), 2 \(.*\)", result.stderr)


def test_what_still_waits_is_said(gnl, interrupted):
    """After the first of two decisions the command says that one more waits, and how to see it."""
    interrupted(names=("send_email", "refund"))

    first = gnl("resolve", "order-1", "send_email", "--did-not-happen", "--by", "ops").output
    second = gnl("resolve", "order-1", "refund", "--did-not-happen", "--by", "ops").output

    assert first.endswith("The run waits for 1 more: gnl show order-1\n")
    assert second.endswith("Run the same code again with run id 'order-1': it goes on from there.\n")


@pytest.mark.parametrize(
    ("run_id", "step"), [("order-2", "send_email"), ("order-1", "refund"), ("order-1", "7")]
)
def test_what_is_not_there_cannot_be_decided(gnl, blocked, run_id, step):
    """An unknown run or step is exit code 1, with the command that lists what there is."""
    blocked()

    result = gnl("resolve", run_id, step, "--happened", "--by", "ops", exit_code=1)

    assert re.search(r"\bgnl (runs|show .*order-1)", result.stderr)


def test_somebody_must_have_decided(gnl, blocked, journal_path):
    """Without a terminal there is no login name to fall back on: `--by` is required."""
    blocked()

    result = gnl("resolve", "order-1", "send_email", "--happened", exit_code=2)

    assert "--by NAME" in result.stderr
    assert waiting_step(journal_path).resolution is None


def test_on_a_terminal_the_login_name_decides(gnl_terminal, blocked, journal_path):
    """A person at a terminal may leave `--by` out: the login name stands for it."""
    blocked()

    exit_code, screen = gnl_terminal(
        "resolve", "order-1", "1", "--happened", environment={"LOGNAME": "nightshift"}
    )

    assert exit_code == 0, screen
    assert waiting_step(journal_path).value == "confirmed by nightshift"


def test_a_name_in_another_encoding_is_refused(gnl_process, blocked, journal_path):
    """Bytes that are no UTF-8 cannot be kept for audit: a usage error, and nothing is decided."""
    blocked()

    refused = gnl_process("resolve", "order-1", "1", "--happened", "--by", b"J\xfcrgen")

    assert refused.returncode == 2
    assert "not UTF-8" in refused.stderr
    assert waiting_step(journal_path).resolution is None


def test_a_recover_that_could_not_tell_is_overruled(gnl, blocked, journal_path):
    """A person may decide what a hook could not: the hook is not asked again."""
    blocked()
    gnl("resolve", "order-1", "1", "--happened", "--result", '"mailed"', "--by", "ops")
    effect = journaled(lambda to: "twice", replay=never(recover=lambda call: NotDone()), name="send_email")

    with Journal(journal_path) as journal, journal.run("order-1"):
        answer = effect("ann")

    assert answer == "mailed"
