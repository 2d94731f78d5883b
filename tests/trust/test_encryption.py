"""Encryption: payloads cannot be read or moved without a key, keys can change, and a missing one is told as such."""

import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest

from gnl_middleware import Done, Encryption, JournalError, JournalKeyError
from tests.trust import stored
from tests.trust.order import RUN, SECRET, Order, blocked, decided

KEYS = {"2026-11": b"n" * 32, "2027-01": b"j" * 32}
OLD = Encryption(current="2026-11", key=KEYS.__getitem__)
NEW = Encryption(current="2027-01", key=KEYS.__getitem__)


def test_nothing_of_a_payload_can_be_read(url, open_journal):
    """Arguments, messages, values, errors, reasons and notes are in no table of the journal, not even compressed."""
    with open_journal(url, encryption=OLD) as journal:
        decided(journal)
        with pytest.raises(RuntimeError), journal.run("other"):
            raise RuntimeError(f"died with {SECRET}")
    with stored.connected(url) as connection:
        connection.execute(
            stored.sa.text("UPDATE gnl_runs SET metadata = ''")
        )  # metadata is for finding runs: readable

    told = stored.everything(url)

    assert b"2026-11" in told
    assert SECRET.encode() not in told
    assert b"interrupted" in told  # what a run is, and what it called, stays readable
    assert b"charge" in told
    for body in [row[0] for row in stored.found(url, "SELECT body FROM gnl_blobs")]:
        assert bytes(body).startswith(b"\x00gnl-aes")


def test_metadata_stays_readable(file_url, open_journal):
    """What a run is found by is not encrypted, as documented."""
    with open_journal(file_url, encryption=OLD) as journal:
        Order().run(journal)

    assert SECRET.encode() in stored.found(file_url, "SELECT metadata FROM gnl_runs")[0][0]


@pytest.mark.parametrize("key", [None, b"k" * 32], ids=["plain", "keyed"])
def test_replay_is_the_same(url, open_journal, key):
    """An encrypted journal replays, resumes and is decided as any other; a second process reads it with the key."""
    with open_journal(url, encryption=OLD, integrity_key=key) as journal:
        blocked(journal)
        waiting = next(step for step in journal.steps(RUN) if step.blocked)
        assert waiting.blocked == "the tool has no recover="
    with open_journal(url, encryption=OLD, integrity_key=key) as journal:
        decided_by = journal.resolve(RUN, "charge", Done({"by": "hand"}), by="ops")
        order = Order()
        live = order.run(journal)
        assert decided_by.value == {"by": "hand"}
    with open_journal(url, encryption=OLD, integrity_key=key) as journal:
        again = Order()
        assert again.run(journal, replay="strict") == live
        assert again.ran == []
        assert journal.verify_integrity(RUN).intact


def test_keys_change(url, open_journal):
    """New payloads are written with the current key; old ones stay readable while the callable knows their key."""
    with open_journal(url, encryption=OLD) as journal:
        Order().run(journal)
        before = [step.value for step in journal.steps(RUN)]
    with open_journal(url, encryption=NEW) as journal:
        assert [step.value for step in journal.steps(RUN)] == before
        with journal.run("other") as run:
            run.value("new", lambda: 1)
    ids = {run: ids_of(url, run) for run in (RUN, "other")}

    assert ids == {RUN: {b"2026-11"}, "other": {b"2027-01"}}
    only_new = Encryption(current="2027-01", key={"2027-01": KEYS["2027-01"]}.__getitem__)
    with open_journal(url, encryption=only_new) as journal:
        assert [step.value for step in journal.steps("other")] == [1]
        with pytest.raises(JournalKeyError, match="gives no key '2026-11'"):
            journal.steps(RUN)


def ids_of(url, run_id):
    """The ids of the keys that a run's payloads name."""
    rows = stored.found(url, "SELECT body FROM gnl_blobs WHERE run_id = :run", run=run_id)
    return {bytes(body)[10 : 10 + bytes(body)[9]] for (body,) in rows}


@pytest.mark.parametrize(
    ("encryption", "says", "key_id"),
    [
        (None, "opened without encryption", "2026-11"),
        (Encryption(current="2026-11", key=lambda _: b"w" * 32), "does not open it", "2026-11"),
        (Encryption(current="x", key={"x": b"w" * 32}.__getitem__), "gives no key '2026-11'", "2026-11"),
    ],
    ids=["none", "wrong", "unknown"],
)
def test_a_missing_or_wrong_key_is_told(url, open_journal, encryption, says, key_id):
    """Without the right key nothing is read and nothing runs, and the error names the key and what to do."""
    with open_journal(url, encryption=OLD) as journal:
        Order().run(journal)
    order = Order()

    with open_journal(url, encryption=encryption) as journal:
        with pytest.raises(JournalKeyError, match=says) as raised:
            order.run(journal)
        found = journal.verify_integrity(RUN)

    assert (order.ran, raised.value.key_id) == ([], key_id)
    assert RUN in raised.value.where
    assert "encryption=" in str(raised.value)
    assert any(says in problem for problem in found.problems)
    with open_journal(url, encryption=OLD) as journal:
        assert journal.verify_integrity(RUN).intact


@pytest.mark.parametrize(
    ("key", "says"),
    [
        (lambda _: b"short", "are not 32 bytes"),
        (lambda _: "x" * 32, "are not 32 bytes"),
        ({}.__getitem__, "KeyError"),
    ],
    ids=["short", "a text", "unknown"],
)
def test_a_key_to_write_with_is_asked_for_at_once(file_url, open_journal, key, says):
    """A journal that could write nothing is refused when it is made, not when the first tool is about to run."""
    with pytest.raises(JournalKeyError, match=says):
        open_journal(file_url, encryption=Encryption(current="2026-11", key=key))


def test_payloads_cannot_be_moved(url, open_journal):
    """A payload, an error or a reason that is moved to another run or step cannot be read there, even with its digest."""
    with open_journal(url, encryption=OLD) as journal:
        Order().run(journal)
        with journal.run("other") as run:
            run.value("moment", lambda: "tea time")
    ((digest, body),) = stored.found(
        url,
        "SELECT b.hash, b.body FROM gnl_blobs b JOIN gnl_steps s ON s.value_hash = b.hash AND s.run_id = b.run_id "
        "WHERE s.name = 'moment' AND s.run_id = 'other'",
    )
    with stored.connected(url) as connection:
        moved = "INSERT INTO gnl_blobs (run_id, hash, compressed, body) VALUES (:run, :hash, 0, :body)"
        connection.execute(stored.sa.text(moved), {"run": RUN, "hash": digest, "body": body})
        pointed = "UPDATE gnl_steps SET value_hash = :hash WHERE run_id = :run AND name = 'moment'"
        connection.execute(stored.sa.text(pointed), {"run": RUN, "hash": digest})

    with (
        open_journal(url, encryption=OLD) as journal,
        pytest.raises(JournalKeyError, match="belong elsewhere"),
    ):
        journal.steps(RUN)


@pytest.mark.parametrize("cut", [5, 12, 25, 40])
def test_bytes_that_are_cut_off_are_told(file_url, open_journal, cut):
    """An encrypted payload that lost its end is an error that names the step, whatever is left of it."""
    with open_journal(file_url, encryption=OLD) as journal, journal.run(RUN) as run:
        run.value("moment", lambda: "noon")
    with closing(sqlite3.connect(file_url)) as connection, connection:
        connection.execute("UPDATE gnl_blobs SET body = substr(body, 1, ?)", (cut,))

    with open_journal(file_url, encryption=OLD) as journal, pytest.raises(JournalError, match="moment"):
        journal.steps(RUN)


def test_an_unencrypted_journal_can_go_on_encrypted(url, open_journal):
    """Runs from before stay readable; what is new is encrypted."""
    with open_journal(url) as journal:
        Order().run(journal)
    with open_journal(url, encryption=OLD) as journal:
        order = Order()
        order.run(journal, replay="strict")
        with journal.run("other") as run:
            run.value("moment", lambda: SECRET)

    assert order.ran == []
    assert ids_of(url, "other") == {b"2026-11"}


def test_what_is_encrypted_is_compressed_before(file_url, open_journal):
    """Large payloads stay small: they are compressed first, as encrypted bytes could not be."""
    with open_journal(file_url, encryption=OLD) as journal:
        Order().run(journal)

    assert max(len(row[0]) for row in stored.found(file_url, "SELECT body FROM gnl_blobs")) < 500


@pytest.mark.parametrize(
    "statement", ["import gnl_middleware", "from gnl_middleware import Encryption, Journal; Journal('x.db')"]
)
def test_the_library_is_loaded_by_those_who_encrypt(tmp_path, statement):
    """Neither importing the package nor a plain journal loads the cryptography library."""
    code = f"import sys\n{statement}\nassert not [name for name in sys.modules if name.startswith('cryptography')]"

    assert subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=False).returncode == 0


def test_without_the_library_it_says_what_to_install(tmp_path):
    """Where the extra is not installed, Encryption says so when it is made."""
    code = (
        "import sys\nsys.modules['cryptography'] = None\nimport importlib.util\nimportlib.util.find_spec = lambda name: None\n"
        "from gnl_middleware import Encryption\n"
        "try:\n    Encryption(current='a', key=lambda _: b'')\nexcept ModuleNotFoundError as error:\n    print(error)"
    )

    told = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=True
    ).stdout

    assert "pip install 'gnl-middleware[encryption]'" in told
