"""The incidents as a reader would run them: what happens without the journal, and what with it."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

INCIDENTS = Path(__file__).parents[2] / "examples" / "incidents"
COUNTED = {
    "five_equal_calls.py": [(5, 1), (5, 5)],
    "redelivered_job.py": [(2, 1)] * 4,
    "approval_handled_twice.py": [(2, 1)] * 2,
}
_ROW = re.compile(r"^  \S.*\s+(\d+)\s+(\d+)$", re.MULTILINE)


@pytest.mark.parametrize("script", sorted(COUNTED))
def test_an_incident(script, tmp_path):
    """Each script prints, row by row, that the journal makes one effect of what is otherwise as many as were asked for."""
    ended = subprocess.run(
        [sys.executable, "-W", "error", INCIDENTS / script],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )

    rows = [(int(unprotected), int(protected)) for unprotected, protected in _ROW.findall(ended.stdout)]
    assert (ended.returncode, ended.stderr, rows) == (0, "", COUNTED[script]), ended.stdout
    assert list(tmp_path.iterdir()) == []


def test_every_incident_is_counted():
    """No script of the folder goes without its test."""
    scripts = {path.name for path in INCIDENTS.glob("*.py")} - {"stage.py"}

    assert scripts == set(COUNTED)


@pytest.mark.parametrize("script", [*sorted(COUNTED), "stage.py"])
def test_an_incident_is_short(script):
    """A reader takes each script in at a glance."""
    assert len((INCIDENTS / script).read_text(encoding="utf-8").splitlines()) <= 120
