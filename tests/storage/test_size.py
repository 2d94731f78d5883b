"""What a journal weighs: linear in the steps, each payload once, large ones compressed (B20)."""

import base64
import random
import sqlite3

import pytest

from gnl_middleware import Journal, journaled, safe
from tests.storage import rows
from tests.storage.conversations import Conversation


def weight(path):
    """Bytes of a closed journal's file."""
    connection = sqlite3.connect(path)
    connection.execute("VACUUM")
    connection.close()
    return path.stat().st_size


def journal_of(path, turns, size=1024):
    """A closed journal of one growing conversation."""
    with Journal(path) as journal, journal.run("order-7"):
        conversation = Conversation(size=size)
        conversation.turns(turns)
    return path


def test_growing_conversation_is_linear(tmp_path):
    """200 model steps of a growing conversation, each adding 1 KB, weigh at most 2.2 times as much as 100."""
    hundred = weight(journal_of(tmp_path / "hundred.db", 100))
    two_hundred = weight(journal_of(tmp_path / "two_hundred.db", 200))

    assert two_hundred <= 2.2 * hundred


def test_step_stores_what_is_new(tmp_path):
    """A late step of a long conversation stores no more than an early one: only the messages that are new."""
    path = journal_of(tmp_path / "runs.db", 100)

    sizes = [
        size
        for (size,) in rows.rows(
            path,
            "SELECT length(body) FROM gnl_steps JOIN gnl_blobs"
            " ON arguments_hash = hash AND gnl_blobs.run_id = gnl_steps.run_id ORDER BY number",
        )
    ]

    assert len(sizes) == 100
    assert max(sizes[90:]) <= 1.2 * max(sizes[1:11])


def test_read_back_conversation_is_whole(tmp_path):
    """Storing only what is new loses nothing: a second attempt asks the same and is answered from the record."""
    path = journal_of(tmp_path / "runs.db", 50)

    with Journal(path) as journal, journal.run("order-7") as run:
        conversation = Conversation()
        conversation.turns(50)

    assert conversation.asked == 0
    assert run.steps_read_back == 50


def test_replay_adds_nothing(tmp_path):
    """Reading a run back ten times makes the journal no heavier, but for the attempts."""
    path = journal_of(tmp_path / "runs.db", 50)
    before = weight(path)

    for _attempt in range(10):
        journal_of(path, 50)

    assert weight(path) <= 1.05 * before


def test_equal_payload_is_stored_once(path):
    """A payload that is seen again in a run is stored once, however many steps return it."""
    result = "the same page, fetched again and again " * 100
    fetch = journaled(lambda number: result, replay=safe, name="fetch")

    with Journal(path) as journal, journal.run("order-7"):
        results = [fetch(number) for number in range(20)]

    assert results == [result] * 20
    assert rows.value(path, "SELECT count(*) FROM gnl_blobs WHERE length(body) > 50") == 1


def test_equal_payloads_of_one_batch_are_stored_once(path):
    """The same where the equal payloads meet in one commit."""
    call = journaled(lambda: {"answer": "x" * 50}, replay=safe, name="call")

    with Journal(path) as journal:
        runs = [journal.run("order-7")]
        with runs[0]:
            for _time in range(5):
                call()

    assert rows.value(path, "SELECT count(*) FROM gnl_blobs WHERE body LIKE '%answer%'") == 0
    assert rows.value(path, "SELECT count(*) FROM gnl_blobs WHERE CAST(body AS TEXT) LIKE '%answer%'") == 1


def test_large_payloads_are_compressed(path):
    """A large payload is compressed, and read back as it was."""
    result = "all work and no play " * 10_000
    call = journaled(lambda: result, replay=safe, name="call")

    for _attempt in range(2):
        with Journal(path) as journal, journal.run("order-7"):
            assert call() == result

    assert weight(path) < len(result)
    assert rows.value(path, "SELECT max(length(body)) FROM gnl_blobs WHERE compressed = 1") < len(result) / 20


def test_payload_that_compressing_would_not_shrink_is_stored_as_it_is(path):
    """What is compressed already is not made larger."""
    result = random.Random(1).randbytes(1 << 16)
    call = journaled(lambda: result, replay=safe, name="call")

    for _attempt in range(2):
        with Journal(path) as journal, journal.run("order-7"):
            assert call() == result

    assert rows.value(path, "SELECT max(length(body)) FROM gnl_blobs") <= len(result) * 4 / 3 + 100


@pytest.mark.parametrize("length", [0, 1, 1023, 1024, 1025, 1 << 20])
def test_payload_of_every_length_comes_back(path, length):
    """Around the size from which payloads are compressed, each comes back as it was."""
    result = "ä" * length
    call = journaled(lambda: result, replay=safe, name="call")

    for _attempt in range(2):
        with Journal(path) as journal, journal.run("order-7"):
            assert call() == result


def test_image_in_every_later_turn_is_stored_once(path):
    """A 5 MB image that stands in the history of every later turn is stored once."""
    image = base64.b64encode(random.Random(1).randbytes(5 << 20)).decode()

    with Journal(path) as journal, journal.run("order-7"):
        conversation = Conversation()
        conversation.say(image)
        conversation.turns(20)

    assert weight(path) < 1.1 * len(image)
