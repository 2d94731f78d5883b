"""What the commands say about a journal that is protected."""

import json
import subprocess
import sys

import pytest

from gnl_middleware import Encryption, Journal
from gnl_middleware.cli.integrity import report_integrity
from tests.trust import stored
from tests.trust.order import RUN, Order, blocked

KEYS = {"integrity_key": bytes(range(32)), "encryption": Encryption(current="k", key=lambda _: bytes(32))}
OPENING = """
from gnl_middleware import Encryption, Journal

def open_journal(url):
    return Journal(url, integrity_key=bytes(range(32)), encryption=Encryption(current="k", key=lambda _: bytes(32)))
"""


def test_a_report_that_nothing_was_changed(file_url, open_journal, capsys):
    """An intact run ends with code 0; the report gives the head to keep, and says what it cannot prove without a key."""
    journal = open_journal(file_url)
    Order().run(journal)
    head = journal.verify_integrity(RUN).head

    assert report_integrity(journal, RUN) == 0
    told = capsys.readouterr().out
    assert report_integrity(journal, RUN, expect=head) == 0

    assert "nothing was changed" in told
    assert f"Head: {head}" in told
    assert "not somebody who computes the digests anew" in told
    assert "--expect" in told


def test_a_report_of_changes(file_url, open_journal, capsys):
    """A changed run ends with code 1 and names what was changed; so do another head and an unknown run."""
    journal = open_journal(file_url, **KEYS)
    Order().run(journal)
    head = journal.verify_integrity(RUN).head
    assert report_integrity(journal, RUN, expect="0" * 64) == 1
    assert head in capsys.readouterr().out
    stored.changed(file_url, "DELETE FROM gnl_steps WHERE name = 'look_up'")

    assert report_integrity(journal, RUN) == 1
    told = capsys.readouterr()
    assert "CHANGED" in told.out
    assert "step look_up/" in told.out
    assert "is gone" in told.out
    assert "No integrity key" not in told.out
    assert report_integrity(journal, RUN, as_json=True) == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["intact"], found["keyed"], found["head"]) == (False, True, head)
    assert report_integrity(journal, "unknown") == 1


def gnl(tmp_path, *arguments, opening="opening:open_journal"):
    """Run a command in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "gnl_middleware.cli", *arguments],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={"GNL_OPEN_WITH": opening, "PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"},
        check=False,
    )


def test_a_person_decides_in_a_protected_journal(tmp_path):
    """The commands open a protected journal through the function that the environment names: also to decide a call."""
    (tmp_path / "opening.py").write_text(OPENING)
    with Journal(tmp_path / "gnl.db", **KEYS) as journal:
        blocked(journal)

    refused = gnl(tmp_path, "show", RUN, opening="")
    shown = gnl(tmp_path, "show", RUN)
    decided = gnl(tmp_path, "resolve", RUN, "charge", "--happened", "--by", "ops")

    assert (refused.returncode, shown.returncode, decided.returncode) == (1, 0, 0), decided.stderr
    assert "GNL_OPEN_WITH" in refused.stderr
    assert "seven" in shown.stdout
    with Journal(tmp_path / "gnl.db", **KEYS) as journal:
        assert journal.verify_integrity(RUN).intact
        order = Order()
        assert order.run(journal)[0] == "confirmed by ops"
        assert "charge" not in order.ran


@pytest.mark.parametrize("opening", ["nowhere:open", "opening:missing", "opening", ":", "opening:OPENED"])
def test_a_function_that_is_not_there(tmp_path, opening):
    """A name that leads to no function that opens a journal ends in a sentence, not a traceback."""
    (tmp_path / "opening.py").write_text("OPENED = str\n")
    Journal(tmp_path / "gnl.db").runs()

    ended = gnl(tmp_path, "runs", opening=opening)

    assert ended.returncode == 2
    assert "GNL_OPEN_WITH" in ended.stderr
    assert "Traceback" not in ended.stderr
