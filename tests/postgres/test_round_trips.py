"""On a server a commit costs one round trip, however many rows it writes and however many there are."""

import psycopg

from gnl_middleware import Journal, codec, journaled, never
from gnl_middleware.storage.protocol import Intent
from tests.storage.conversations import Conversation
from tests.storage.writers import committed, sent_statements, tried

RUN = "order-7"
MANY = 3000
SCANS = "SELECT relname, seq_scan FROM pg_stat_all_tables WHERE relname IN ('gnl_steps', 'gnl_blobs')"


@journaled(replay=never)
def charge(number):
    """A side effect."""
    return number


def work(session, turns):
    """So many turns of a model, each with a side effect."""
    conversation = Conversation()
    for number in range(turns):
        conversation.turns(1)
        charge(number)


def other(step, number):
    """Another step, with arguments of its own."""
    arguments = codec.encode({"number": number})
    hashed = {"arguments": arguments, "arguments_hash": codec.content_hash(arguments)}
    return tried(step, f"other {number}", **hashed)


def test_commit_is_one_round_trip(journal):
    """Each commit of a step is one statement, which no other one begins or ends."""
    with journal.run(RUN) as run:
        charge(-1)
        counters = run.session.database.counters
        before, sent = counters.commits, sent_statements(run.session.database)
        work(run.session, 10)
        statements, commits = list(sent), counters.commits - before

    assert len(statements) == commits >= 3 * 10


def test_commit_looks_its_rows_up(url):
    """What a commit costs does not grow with the journal: the server reads no table whole to find what it is about."""
    with Journal(url) as journal, journal.run(RUN) as run:
        charge(-1)
        (step,) = run.session.record.steps.values()
        committed(run.session.database, *[Intent(other(step, number)) for number in range(MANY)])
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("ANALYZE")
        before = dict(connection.execute(SCANS).fetchall())

    with Journal(url) as journal, journal.run("another run") as run:
        work(run.session, 10)

    with psycopg.connect(url, autocommit=True) as connection:
        # What a connection has counted is known once it has gone.
        others = (
            "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        while connection.execute(others).fetchall():
            pass
        assert dict(connection.execute(SCANS).fetchall()) == before
