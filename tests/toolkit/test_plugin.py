"""The toolkit as its users meet it: a test file of theirs, run by pytest, with nothing imported from us."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCUMENT = Path(__file__).parents[2] / "docs" / "testing.md"

TEST_FILE = """
import pytest
from gnl_middleware import journaled, never, safe

@pytest.mark.parametrize("label", [never, safe], ids=["never", "safe"])
def test_my_agent(crash_matrix, effect_log, label):
    def build():
        return journaled(lambda: effect_log.note("send_invoice"), replay=label, name="send_invoice")

    def run(send_invoice, run_id, journal):
        with journal.run(run_id):
            send_invoice()

    crash_matrix(build, run, effect_log).assert_safe()

def test_fixtures(crash_at, manual_clock, effect_log):
    manual_clock.advance(1)
    effect_log.note("anything")
    assert callable(crash_at)
"""


@pytest.fixture
def their_pytest(tmp_path):
    """Run pytest on a file of the user's, in a folder of the user's."""

    def run(source, *arguments):
        (tmp_path / "test_theirs.py").write_text(source, encoding="utf-8")
        return subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-W", "error", *arguments],
            cwd=tmp_path,
            env={name: value for name, value in os.environ.items() if name != "PYTEST_ADDOPTS"},
            capture_output=True,
            text=True,
            check=False,
        )

    return run


def test_pytest_finds_the_fixtures_by_itself(their_pytest):
    """A wrong label fails the user's test with the tool, the crash point, the counts and the cure; the right one passes."""
    ended = their_pytest(TEST_FILE)

    assert ended.returncode == 1, ended.stdout + ended.stderr
    assert "2 passed" in ended.stdout
    assert "1 failed" in ended.stdout
    assert "test_my_agent[safe]" in ended.stdout
    assert "send_invoice happened 2 times instead of 1, when the worker died at 1:after_body" in ended.stdout
    assert "Relabel it never; add recover=" in ended.stdout


def test_the_plugin_costs_nothing_until_it_is_used(their_pytest):
    """Every start of pytest loads the plugin: it must load neither the toolkit nor the journal."""
    ended = their_pytest(
        "import sys\n\ndef test_nothing():\n"
        "    assert 'gnl_middleware.pytest_plugin' in sys.modules\n"
        "    assert not {'gnl_middleware.testing', 'gnl_middleware.journal', 'sqlalchemy'} & set(sys.modules)\n"
    )

    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_the_plugin_can_be_left_out(their_pytest):
    """`-p no:gnl` takes the fixtures away."""
    ended = their_pytest("def test_nothing(crash_matrix): pass\n", "-p", "no:gnl")

    assert ended.returncode == 1
    assert "fixture 'crash_matrix' not found" in ended.stdout


def documented():
    """The test file that the documentation shows, and what it says of the wrong label."""
    text = DOCUMENT.read_text(encoding="utf-8")
    source = re.search(r"```python\n(.*?)```", text, re.DOTALL)
    told = re.search(r"```text\n(.*?)```", text, re.DOTALL)
    return source[1], " ".join(told[1].split())


def test_the_documented_test_passes(their_pytest):
    """The first example of the documentation is a whole test file, and it passes."""
    source, _ = documented()

    ended = their_pytest(source)

    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "1 passed" in ended.stdout


def test_the_documented_failure_is_what_is_said(their_pytest):
    """With the wrong label the example fails with the very message that the documentation shows."""
    source, told = documented()

    ended = their_pytest(source.replace("never=[", "safe=["))

    assert ended.returncode == 1, ended.stdout + ended.stderr
    raised = [line.removeprefix("E").strip() for line in ended.stdout.splitlines() if line.startswith("E ")]
    assert told in " ".join(" ".join(raised).removeprefix("AssertionError: ").split())
