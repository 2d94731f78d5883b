"""Where the sweeps run, and what must be true of each."""

import json
import subprocess
import sys

import pytest

from tests.recorded.recordings import ROOT


@pytest.fixture(scope="module")
def sweep(tmp_path_factory):
    """Sweep a recording in a process that stays warm between the tests and has no thread when it forks."""
    command = [sys.executable, "-m", "tests.recorded.sweep"]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as sweeper:

        def ask(recording, way, **options):
            folder = tmp_path_factory.mktemp(f"{recording}-{way}") / "sweep"
            asked = {"recording": recording, "synchronous": way == "sync", "folder": str(folder), **options}
            sweeper.stdin.write(json.dumps(asked) + "\n")
            sweeper.stdin.flush()
            return json.loads(sweeper.stdout.readline())

        yield ask
        sweeper.stdin.close()
