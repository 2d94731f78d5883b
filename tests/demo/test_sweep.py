"""The acceptance test of the whole: every crash point of the demo, with real processes that die and real files."""

import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from gnl_middleware import Journal

STEPS = ["model", "lookup_customer", "model", "create_ticket", "model", "send_email", "model"]
PHASES = ["before_intent", "after_intent", "before_body", "after_body", "before_outcome", "after_outcome"]
POINTS = [f"{number}:{phase}" for number in range(1, 8) for phase in PHASES]
IN_DOUBT = ["after_intent", "before_body", "after_body", "before_outcome"]


@dataclass
class Swept:
    """A sweep that has ended: its exit code, what it printed, and the folder that it left behind."""

    code: int
    report: dict[str, Any]
    folder: Path

    @property
    def points(self) -> dict[str, dict[str, Any]]:
        return {point["point"]: point for point in self.report["points"]}

    def requests(self, run: str, *processes: int) -> list[str]:
        """The request bodies that these processes of a run sent, as they went out."""
        folder = self.folder / run.replace(":", "-")
        logs = [folder / f"requests-{process}.jsonl" for process in processes]
        return [json.loads(line) for log in logs if log.exists() for line in log.read_text().splitlines()]


def sweep(temporary: Path, *options: str) -> Swept:
    """Run `gnl demo --json --keep` with its folder inside this one."""
    finished = subprocess.run(
        [sys.executable, "-m", "gnl_middleware.cli", "demo", "--json", "--keep", *options],
        env=os.environ | {"TMPDIR": str(temporary)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.returncode in (0, 1), finished.stderr
    (folder,) = temporary.glob("gnl-demo-*")
    return Swept(finished.returncode, json.loads(finished.stdout), folder)


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    return sweep(tmp_path_factory.mktemp("sweep"))


@pytest.fixture(scope="module")
def relabelled(tmp_path_factory):
    return sweep(tmp_path_factory.mktemp("relabelled"), "--relabel", "send_email=safe")


def test_every_crash_point_ends_as_the_clean_run_did(swept):
    """At each of 42 crash points no finished model call is repeated, and there is one ticket, one email, one reply."""
    measured = {
        name: (
            point["model_calls_repeated"],
            point["tickets"],
            point["emails"],
            point["same_reply"],
            point["error"],
        )
        for name, point in swept.points.items()
    }

    assert measured == dict.fromkeys(POINTS, (0, 1, 1, True, None))
    assert swept.code == 0


def test_the_report_says_what_the_files_say(swept):
    """Tickets and emails are counted where they are: in the desk's database and in the mailbox file."""
    counted = {}
    for name in POINTS:
        folder = swept.folder / f"demo-{name.replace(':', '-')}"
        with closing(sqlite3.connect(folder / "desk.db")) as desk:
            (tickets,) = desk.execute("SELECT count(*) FROM tickets").fetchone()
        counted[name] = (tickets, len((folder / "mailbox.jsonl").read_text().splitlines()))

    assert counted == dict.fromkeys(POINTS, (1, 1))


@pytest.mark.parametrize("number", range(1, 8))
@pytest.mark.parametrize("phase", PHASES)
def test_requests_after_a_resume_are_those_of_the_clean_run(swept, number, phase):
    """What is sent after a restart is, byte for byte, what the clean run sent from there on."""
    clean = swept.requests("demo:clean", 1)
    last_finished = number if phase == "after_outcome" else number - 1
    finished = STEPS[:last_finished].count("model")

    before = swept.requests(f"demo:{number}:{phase}", 1)
    after = swept.requests(f"demo:{number}:{phase}", 2, 3, 4)

    assert len(clean) == 4
    assert before == clean[: len(before)]
    assert after == clean[finished:]


def test_the_first_worker_of_every_run_died(swept):
    """A crash point is a real death: the process leaves no report, and the next one finds its attempt in the journal."""
    reports = [path for path in swept.folder.glob("demo-*-*/report-1.json") if "clean" not in str(path)]
    with Journal(swept.report["journal"]) as journal:
        attempts = {run.run_id: run.attempts for run in journal.runs()}

    assert reports == []
    assert set(attempts) == {"demo:clean", *(f"demo:{name}" for name in POINTS)}
    assert attempts.pop("demo:clean") == 1
    assert min(attempts.values()) >= 2


def test_only_an_email_in_doubt_needs_a_person(swept):
    """The run stops where nobody can be asked whether the effect happened, and nowhere else."""
    blocked = {name: point["resolved_by"] for name, point in swept.points.items() if point["blocked"]}

    assert blocked == {f"6:{phase}": "demo" for phase in IN_DOUBT}


def test_a_ticket_in_doubt_is_settled_by_asking_the_desk(swept):
    """`recover` is asked once for each interrupted ticket, and never when nothing is in doubt."""
    asked = {}
    for name in POINTS:
        with closing(sqlite3.connect(swept.folder / f"demo-{name.replace(':', '-')}" / "desk.db")) as desk:
            if answers := [answer for (answer,) in desk.execute("SELECT answer FROM inquiries")]:
                asked[name] = answers

    assert asked == {
        "4:after_intent": [None],
        "4:before_body": [None],
        "4:after_body": ["T-1001"],
        "4:before_outcome": ["T-1001"],
    }


def test_a_kept_journal_can_be_looked_into(swept):
    """`gnl show`, which the demo offers as the next thing to try, shows a killed run with the decision taken in it."""
    shown = subprocess.run(
        [
            sys.executable,
            "-m",
            "gnl_middleware.cli",
            "show",
            "demo:6:after_body",
            "--journal",
            swept.report["journal"],
        ],
        capture_output=True,
        text=True,
        check=False,
    )

    assert shown.returncode == 0, shown.stderr
    assert "send_email" in shown.stdout


def test_the_json_report_has_its_documented_shape(swept):
    """Scripts can rely on one object with the clean run and one entry for each crash point, in order."""
    clean, points = swept.report["clean"], swept.report["points"]

    assert clean["reply"].startswith("Ticket T-1001 is open")
    assert (clean["model_calls"], clean["tickets"], clean["emails"], clean["steps"]) == (4, 1, 1, STEPS)
    assert [point["point"] for point in points] == POINTS
    assert [point["step"] for point in points] == [step for step in STEPS for _ in PHASES]
    assert points[POINTS.index("4:after_body")] == {
        "point": "4:after_body",
        "step": "create_ticket",
        "model_calls_repeated": 0,
        "requests_identical": True,
        "tickets": 1,
        "emails": 1,
        "same_reply": True,
        "blocked": False,
        "resolved_by": None,
        "error": None,
    }


def test_relabelling_the_email_lets_the_duplicate_happen(relabelled):
    """With `send_email=safe` the customer is mailed twice wherever the mail was out before the crash, and it is said."""
    doubled = {name: point["emails"] for name, point in relabelled.points.items() if point["emails"] != 1}

    assert doubled == {"6:after_body": 2, "6:before_outcome": 2}
    assert not any(point["blocked"] for point in relabelled.points.values())
    assert {point["tickets"] for point in relabelled.points.values()} == {1}
    assert relabelled.code == 1
