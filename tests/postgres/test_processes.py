"""Many processes on one PostgreSQL: no work is done twice, whoever dies, freezes or loses its connection."""

import contextlib
from collections import Counter

import pytest
from psycopg import sql

from gnl_middleware import Journal, NotDone, RunBusyError
from tests.leases import workers
from tests.leases.workers import RUN, Shop, effects_in
from tests.postgres import programs
from tests.postgres.server import administer, create_database
from tests.processes import crowding
from tests.processes.children import Child

LEASE = 1.0
TERMINATE = sql.SQL(
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
)


@pytest.fixture
def effects(tmp_path):
    """Where the workers note what happened."""
    return tmp_path / "effects"


@contextlib.contextmanager
def children(program, *arguments):
    """A process for each tuple of arguments."""
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(Child(program, *each, patience=120)) for each in arguments]


def test_many_processes_create_and_write_one_journal(url):
    """8 processes that create one journal at once, 20 runs each, meet no error; every run is there."""
    with children(crowding.write, *((url, process, 20) for process in range(8))) as crowd:
        assert [child.hear() for child in crowd] == ["ready"] * 8
        for child in crowd:
            child.tell()
        assert [child.hear() for child in crowd] == [[]] * 8

    with Journal(url) as journal:
        assert len(journal.runs(status="completed")) == 160


def test_worker_that_was_killed_is_replaced_at_once(url, effects):
    """After kill -9 a worker on the same machine takes the run over without waiting for the lease."""
    with Child(workers.hold, url, effects, 3600.0) as child:
        assert child.hear() == "charging"
        with Journal(url) as journal:
            with pytest.raises(RunBusyError):
                journal.run(RUN).__enter__()
            child.kill()
            (record,) = journal.runs(status="interrupted")
            shop = Shop(effects, answer=NotDone())
            with journal.run(RUN) as run:
                assert (run.attempt, shop.charge(), shop.mail()) == (2, "charged", "mailed")

    assert record.run_id == RUN


def test_frozen_worker_that_wakes_starts_nothing_more(url, effects):
    """A worker stopped past its lease is replaced; when it wakes, its outcome, renewal and next effect are refused."""
    with Child(workers.hold, url, effects, 3.0) as frozen, Journal(url) as journal:
        assert frozen.hear() == "charging"
        frozen.stop()
        shop = Shop(effects, answer=NotDone())
        with journal.run(RUN, on_busy="wait") as run:
            assert (run.attempt, shop.charge(), shop.mail()) == (2, "charged", "mailed")
        before = effects_in(effects)

        frozen.go_on()
        frozen.tell("too late")
        frozen.hear()
        frozen.tell()
        told = frozen.hear(), frozen.hear()

        assert told == ({"mail": "LeaseLostError", "lost": told[0]["lost"]}, {"left": "LeaseLostError"})
        assert effects_in(effects) == before
        assert [step.value for step in journal.steps(RUN)] == ["charged", "mailed"]


def test_tool_that_blocks_the_event_loop_keeps_the_lease(url, effects):
    """A body that blocks its event loop for longer than the lease does not lose the run."""
    with Child(workers.block_the_loop, url, effects, LEASE) as child, Journal(url) as journal:
        assert child.hear() == "charging"
        (first,) = journal.runs()
        while journal.runs()[0].lease_ends_at < first.lease_ends_at + 2 * LEASE:
            pass  # renewed past the length of the lease
        with pytest.raises(RunBusyError):
            journal.run(RUN).__enter__()
        child.tell("charged")
        assert (child.hear(), child.hear()) == ("charged", "mailed")


def check_disturbed(url, effects, runs, every, disturb):
    """Four workers work while something disturbs the server after every so many runs."""
    with children(programs.work, *((url, str(effects), worker, runs) for worker in range(4))) as crowd:
        for number in range(runs):
            said = [child.hear() for child in crowd]
            assert said == [None] * 4
            if number % every == 0:
                disturb()

    expected = {
        f"{what}-{worker}-{number}"
        for what in ("charge", "mail")
        for worker in range(4)
        for number in range(runs)
    }
    assert Counter(programs.happened(effects)) == dict.fromkeys(expected, 1)
    with Journal(url) as journal:
        assert len(journal.runs(status="completed")) == 4 * runs
        for number in range(runs):
            assert [step.value for step in journal.steps(f"order-0-{number}")] == [
                "looked",
                f"charged {number}",
                f"mailed {number}",
            ]


def test_connections_that_are_cut(url, effects):
    """Connections cut by the server at any moment: each write is made on a fresh one, and no effect happens twice."""
    check_disturbed(url, effects, 12, 1, lambda: administer(url, TERMINATE))


def test_server_that_is_killed(own_server, effects):
    """A server that crashes and restarts: every run ends, no effect twice, no acknowledged outcome lost."""
    check_disturbed(
        create_database(own_server.url), effects, 6, 3, lambda: (own_server.kill(), own_server.start())
    )


@pytest.mark.long
def test_server_that_is_killed_during_a_hundred_runs(own_server, effects):
    """The same, after every twentieth of a hundred runs."""
    check_disturbed(
        create_database(own_server.url), effects, 25, 1, lambda: (own_server.kill(), own_server.start())
    )
