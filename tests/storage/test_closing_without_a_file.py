"""A journal whose file is gone can still be closed, and a process that held it ends."""

import subprocess
import sys

PROGRAM = """
import sys
from pathlib import Path
from gnl_middleware import Journal, JournalUnavailableError, journaled, safe

path = Path(sys.argv[1])

@journaled(replay=safe)
def read():
    return "read"

journal = Journal(path)
try:
    with journal.run("order-7"):
        read()
        path.unlink()
except JournalUnavailableError:
    print("unavailable")
journal.close()
print("closed")
"""


def test_closing_ends_where_the_last_commit_cannot_be_synced(tmp_path):
    """What could not be synced is given up on closing: the writer thread does not try it for ever."""
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM, tmp_path / "runs.db"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert (ended.returncode, ended.stdout.split()) == (0, ["unavailable", "closed"]), ended.stderr
