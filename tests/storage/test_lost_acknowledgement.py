"""A commit whose acknowledgement was lost has happened: whoever asked for it must recognise its own writes.

The commit reaches the file, and then the connection breaks before it says so.
"""

import sqlite3

import pytest
import sqlalchemy as sa

from gnl_middleware import Done, Journal, journaled, never, safe
from tests.storage import rows

RUN = "order-7"


@pytest.fixture
def lose(journal):
    """Lose the acknowledgement of the next commit; gives a list that is empty once it is lost."""
    left = []

    @sa.event.listens_for(journal._database().engine, "after_cursor_execute")
    def fail(_connection, _cursor, statement, *_rest):
        if statement == "COMMIT" and left:
            left.pop()
            raise sqlite3.OperationalError("disk I/O error")

    def lose_next():
        left.append("acknowledgement")
        return left

    return lose_next


def test_own_intent_is_won(journal, lose):
    """An intent whose acknowledgement was lost is the caller's own: the body runs, once."""
    ran = []
    charge = journaled(lambda: ran.append("charge"), replay=never, name="charge")

    with journal.run(RUN):
        left = lose()
        charge()

    assert (left, ran) == ([], ["charge"])
    assert [(step.status, step.attempts) for step in journal.steps(RUN)] == [("done", 1)]


@pytest.mark.parametrize("policy", [never, safe], ids=["never", "safe"])
def test_own_outcome_is_won(journal, lose, policy):
    """An outcome whose acknowledgement was lost is recorded, and the run goes on."""
    left = []

    def body():
        left.append(lose())
        return "charged"

    call = journaled(body, replay=policy, name="charge")
    with journal.run(RUN):
        assert call() == "charged"

    assert left == [[]]
    assert [(step.status, step.value) for step in journal.steps(RUN)] == [("done", "charged")]


def test_own_lease_is_taken(journal, lose):
    """A lease whose acknowledgement was lost is held: its owner is not refused by its own ghost."""
    journal.runs()  # the file exists from here on, so the next commit is that of the lease
    left = lose()
    with journal.run(RUN) as run:
        assert run.attempt == 1

    assert left == []
    assert [(record.status, record.attempts) for record in journal.runs()] == [("completed", 1)]


def test_own_lease_of_a_later_attempt_is_taken(journal, lose, path):
    """The same on a retry; it counts as one attempt."""
    with journal.run(RUN):
        pass
    left = lose()
    with journal.run(RUN) as run:
        assert run.attempt == 2

    assert left == []
    assert rows.value(path, "SELECT count(*) FROM gnl_attempts") == 2


def test_own_release_is_done(journal, lose):
    """A release whose acknowledgement was lost has released: leaving is no error."""
    with journal.run(RUN):
        left = lose()

    assert left == []
    assert journal.runs()[0].holder is None


def test_own_decision_is_taken(journal, lose, path):
    """A person's decision whose acknowledgement was lost was taken: the person is not told that somebody else decided."""

    def cut():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), journal.run(RUN):
        journaled(cut, replay=never, name="charge")()
    left = lose()

    step = journal.resolve(RUN, "charge", Done("seen"), by="ops")

    assert left == []
    assert (step.value, step.resolution) == ("seen", "happened")
    assert rows.rows(path, "SELECT decision, decided_by FROM gnl_resolutions") == [("happened", "ops")]


def test_first_commit_of_a_file(path):
    """The same where the journal's tables are being created."""
    with Journal(path) as journal:
        engine = journal._database().engine
        left = ["acknowledgement"]

        @sa.event.listens_for(engine, "after_cursor_execute")
        def fail(_connection, _cursor, statement, *_rest):
            if statement == "COMMIT" and left:
                left.pop()
                raise sqlite3.OperationalError("disk I/O error")

        with journal.run(RUN) as run:
            assert run.attempt == 1
    assert left == []
