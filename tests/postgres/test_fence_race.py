"""At READ COMMITTED a zombie's insert that overlaps a takeover leaves no row that the new owner has not seen."""

import contextlib
import contextvars
import time
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from psycopg import sql
from psycopg.types.json import Jsonb

from gnl_middleware import Journal, LeaseLostError, NotDone, journaled, never
from tests.leases.clocks import TurnedClock
from tests.postgres.server import administer
from tests.storage import writers

RUN = "order-7"
WAITING = sql.SQL(
    "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
)
EXPIRE = sql.SQL("UPDATE gnl.gnl_runs SET lease_ends_at = 0")


@pytest.fixture
def zombie(url):
    """A worker whose clock stands still: it does not notice that its lease has ended."""
    with Journal(url, clock=TurnedClock(frozen=True)) as journal:
        yield journal


@pytest.fixture
def owner(url):
    """The worker that takes over, with connections of its own."""
    with Journal(f"{url}&application_name=owner") as journal:
        journal.runs()
        yield journal


@pytest.fixture
def pool():
    """Threads for what waits for a lock."""
    with ThreadPoolExecutor(2) as threads:
        yield threads


def wait_for_locks(url, number):
    """Until the server says that so many connections of this database wait for locks."""
    patience = time.monotonic() + 60
    while len(administer(url, WAITING)) < number:
        assert time.monotonic() < patience, "nobody waits: the fence was not locked"


def charging(journal, ran, asked, **options):
    """Open the run and charge."""

    def recover(call):
        asked.append(call.step_key)
        return NotDone()

    def work():
        with journal.run(RUN, **options):
            return journaled(
                lambda: ran.append(journal.url) or "charged", replay=never(recover=recover), name="charge"
            )()

    return contextvars.Context().run(work)


@contextlib.contextmanager
def in_the_way(url, like):
    """Somebody else inserts the run's step of this other run's kind, and has not committed: whoever claims it must wait."""
    row = "SELECT (jsonb_populate_record(step, %s)).* FROM gnl.gnl_steps AS step WHERE run_id = %s"
    with psycopg.connect(url) as connection:
        connection.execute(f"INSERT INTO gnl.gnl_steps {row}", (Jsonb({"run_id": RUN}), like))
        yield
        connection.rollback()


def test_takeover_waits_for_an_intent_that_is_being_written(url, zombie, owner, pool):
    """The zombie's intent is written and not yet committed: the takeover waits for it, and the new owner sees it."""
    ran, asked = [], []
    charge = journaled(lambda: "by the zombie", replay=never, name="charge")
    with zombie.run("the same elsewhere"):
        charge()

    with pytest.raises(LeaseLostError), zombie.run(RUN, lease=3600.0):
        # At the last moment, since the zombie renews its lease from time to time.
        writers.before_statement(zombie._database(), "WITH ", lambda: administer(url, EXPIRE))
        with in_the_way(url, "the same elsewhere"):
            intent = pool.submit(contextvars.copy_context().run, charge)
            wait_for_locks(url, 1)
            taken = pool.submit(charging, owner, ran, asked)
            wait_for_locks(url, 2)

        assert intent.result() == "by the zombie"
        # In one process the new owner even waits for the body; had it not seen the row, it would have charged itself.
        assert taken.result() == "by the zombie"

    assert (ran, asked) == ([], [])
    assert [step.value for step in owner.steps(RUN)] == ["by the zombie"]


def test_intent_waits_for_a_takeover_that_is_being_written(url, zombie, owner, pool):
    """The takeover is written and not yet committed: the zombie's intent waits for it, and is refused."""
    ran, asked, intents = [], [], []

    with pytest.raises(LeaseLostError), zombie.run(RUN, lease=3600.0) as run:
        charge = journaled(lambda: ran.append("zombie"), replay=never, name="charge")
        administer(url, EXPIRE)
        context = contextvars.copy_context()

        def write_the_intent_now():
            intents.append(pool.submit(context.run, charge))
            wait_for_locks(url, 1)

        writers.before_statement(owner._database(), "COMMIT", write_the_intent_now)
        assert charging(owner, ran, asked) == "charged"
        with pytest.raises(LeaseLostError) as caught:
            intents[0].result()
        assert caught.value.reason == "fence"
        assert run.session.lease.lost == "fence"

    assert (ran, asked) == ([owner.url], [])


def test_run_that_two_workers_create_at_once(url, zombie, owner):
    """A run that another worker creates and works on, between looking for it and creating it, is no damaged one."""
    ran, asked, given = [], [], []
    writers.before_statement(
        zombie._database(),
        ("INSERT INTO gnl.gnl_runs", "SELECT gnl.gnl_steps"),
        lambda: given.append(charging(owner, ran, asked)),
    )

    assert charging(zombie, ran, asked, on_busy="wait") == given[0] == "charged"
    assert ran == [owner.url]
