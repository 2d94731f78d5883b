"""`gnl crash-matrix`, run as a process of its own on an agent in a module."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gnl_middleware import Journal

ROOT = Path(__file__).parents[2]
BUILD = "tests.toolkit.shop_agent:build"
AROUND = ("--step", "mail", "--point", "before_body", "--point", "after_body")


@pytest.fixture
def crash_matrix_command(tmp_path):
    """Run `gnl crash-matrix` in the folder of the agent."""

    def run(*arguments, label="never", build=BUILD):
        return subprocess.run(
            [sys.executable, "-m", "gnl_middleware.cli", "crash-matrix", build, *arguments],
            cwd=ROOT,
            env=os.environ | {"SHOP_LOG": str(tmp_path / "effects"), "SHOP_LABEL": label},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )

    return run


def test_a_safe_agent_ends_with_0_and_a_table(crash_matrix_command):
    """The table has the steps, the points and a word for each cell; what the agent prints is not in it."""
    ended = crash_matrix_command(*AROUND)

    assert ended.returncode == 0, ended.stderr
    assert "Undisturbed: 0 model calls; effects: mail 1; reply: 10, mailed ann, 20" in ended.stdout
    assert " 2 mail never  blocked  blocked" in ended.stdout
    assert "Safe at 2 crash points" in ended.stdout
    assert "2 blocked (a person decides)" in ended.stdout
    assert "the agent prints this" not in ended.stdout + ended.stderr


def test_an_unsafe_agent_ends_with_1_and_the_cure(crash_matrix_command, tmp_path):
    """A wrong label is named with its counts and its cure, and with the command that shows the kept run."""
    kept = tmp_path / "kept.db"

    ended = crash_matrix_command(*AROUND, "--journal", str(kept), label="safe")

    assert ended.returncode == 1, ended.stderr
    assert "Not safe at 1 of 2 crash points" in ended.stdout
    assert "mail happened 2 times instead of 1, when the worker died at 2:after_body (mail)." in ended.stdout
    assert "Relabel it never; add recover=" in ended.stdout
    with Journal(kept) as journal:
        (shown,) = [record.run_id for record in journal.runs() if record.run_id.endswith("-2-after_body")]
    assert f"gnl show {shown} --journal {kept}" in ended.stdout


def test_json_is_the_only_output(crash_matrix_command):
    """With --json standard output is one object, whatever the agent prints; the exit code says whether it is safe."""
    ended = crash_matrix_command(*AROUND, "--json", label="safe")

    found = json.loads(ended.stdout)
    assert (ended.returncode, found["safe"], found["version"]) == (1, False, 1)
    assert [(cell["step"]["name"], cell["point"], cell["effects"]) for cell in found["cells"]] == [
        ("mail", "before_body", {"mail": 1}),
        ("mail", "after_body", {"mail": 2}),
    ]


def test_the_page_is_written(crash_matrix_command, tmp_path):
    """--html leaves the page beside the table."""
    page = tmp_path / "matrix.html"

    ended = crash_matrix_command("--step", "2", "--point", "after_body", "--html", str(page))

    assert ended.returncode == 0, ended.stderr
    assert "Crash matrix: safe at 1 crash point" in page.read_text(encoding="utf-8")


def test_the_functions_can_be_chosen(crash_matrix_command):
    """--effects may count all runs together, and --resolve lets a blocked job go on."""
    ended = crash_matrix_command(
        *AROUND, "--effects", "count", "--resolve", "tests.toolkit.shop_agent:look", "--json"
    )

    assert ended.returncode == 0, ended.stderr + ended.stdout
    cells = json.loads(ended.stdout)["cells"]
    assert [(cell["ending"], cell["effects"]) for cell in cells] == [("finished", {"effects": 1})] * 2
    assert [cell["settled"][0]["by"] for cell in cells] == ["person", "person"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--run", "no_such_run"], "no_such_run cannot be loaded: AttributeError"),
        (["--run", "no_function"], "no_function is no function"),
        (["--effects", "tests.no_such_module:count"], "tests.no_such_module:count cannot be loaded"),
        (["--run", "run_badly"], "OSError: the shop is closed"),
        (["--step", "male"], "no crash point of 'male'"),
        (["--html", "no/such/folder/page.html"], "the folder no/such/folder does not exist"),
        (["--journal", "oracle://host/runs"], "a journal is a path, sqlite:///path or postgresql://"),
        (["--point", "after_lunch"], "Invalid value for '--point'"),
    ],
)
def test_what_cannot_be_checked_ends_with_2(crash_matrix_command, arguments, told):
    """Where nothing can be said of the agent the exit code is 2, with a paragraph and no traceback of ours."""
    ended = crash_matrix_command(*arguments)

    assert ended.returncode == 2, ended.stdout + ended.stderr
    assert told in " ".join(ended.stderr.split())
    assert "gnl_middleware/cli" not in ended.stderr


def test_an_agent_that_is_not_there_ends_with_2(crash_matrix_command):
    """A misspelt MODULE:BUILD is said as such."""
    ended = crash_matrix_command(build="tests.toolkit.shop_agent:buidl")

    assert ended.returncode == 2
    assert "shop_agent:buidl cannot be loaded: AttributeError" in " ".join(ended.stderr.split())
