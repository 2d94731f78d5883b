"""`gnl demo` as a command: its options, its refusals, and what it costs those who do not run it."""

import subprocess
import sys

import pytest
from click.testing import CliRunner

from gnl_langchain.demo import command


@pytest.mark.parametrize("given", ["send_email", "send_email=sometimes", "send_fax=safe", "=safe"])
def test_a_mistaken_label_is_refused_with_the_choices(given):
    """A tool or label that does not exist is named before anything runs, together with those that do."""
    result = CliRunner().invoke(command, ["--relabel", given])

    assert result.exit_code == 2
    assert "send_email" in result.output
    assert "never" in result.output


def test_help_does_not_wait_for_langchain():
    """`gnl --help` lists the demo without importing the framework that the demo needs."""
    program = """
import sys
from gnl_middleware.cli import main
try:
    main(["--help"])
except SystemExit:
    pass
print(sorted({"langchain", "langchain_core", "openai", "vcr", "sqlalchemy"} & set(sys.modules)), file=sys.stderr)
"""

    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert "demo" in finished.stdout
    assert finished.stderr.strip() == "[]"


def test_a_rehearsal_leaves_no_thread():
    """The process that forks the demo's workers has no thread that a fork could break."""
    program = """
import threading
from pathlib import Path
from gnl_langchain.demo.worker import rehearse
rehearse()
tasks = Path("/proc/self/task")
print(threading.active_count(), len(list(tasks.iterdir())) if tasks.exists() else 1)
"""

    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert finished.stdout.split() == ["1", "1"]


def test_a_used_journal_keeps_its_earlier_runs(tmp_path):
    """A second demo on the same journal takes other run ids, so it neither replays nor disturbs the first."""
    program = f"""
from pathlib import Path
from gnl_langchain.demo.sweep import World, run_clean
for folder in ("first", "second"):
    clean = run_clean(World(Path({str(tmp_path)!r}, folder), {str(tmp_path / "journal.db")!r}))
    print(clean.run_id, len(clean.requests))
"""

    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert finished.stdout.splitlines() == ["demo:clean 4", "demo-2:clean 4"]


def test_a_journal_that_cannot_be_opened_is_no_verdict():
    """When the demo cannot play at all it says why and exits with 2: 1 is kept for a point that did not hold."""
    result = CliRunner().invoke(command, ["--journal", "nonsense://somewhere"])

    assert result.exit_code == 2
    assert "nonsense" in result.output
