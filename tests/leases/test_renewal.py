"""A lease is renewed while its worker works, whatever the worker's code blocks."""

import gc

import pytest

from gnl_middleware import RunBusyError, journaled, never
from tests.leases import workers
from tests.leases.workers import RUN, effects_in
from tests.processes.children import Child
from tests.storage.writers import sent_statements

LEASE = 0.5


def test_blocked_event_loop_keeps_its_lease(path, effects, open_journal, shared_clock, eventually):
    """A tool that blocks the event loop for longer than the lease keeps the run; who polls it meanwhile gets nothing."""
    journal, refused = open_journal(clock=shared_clock), 0

    def refused_until_renewed():
        nonlocal refused
        with pytest.raises(RunBusyError):
            journal.run(RUN).__enter__()
        refused += 1
        return journal.runs()[0].lease_ends_at == shared_clock.time() + LEASE

    with Child(workers.block_the_loop, path, effects, LEASE, shared_clock.path) as worker:
        assert worker.hear() == "charging"
        (begun,) = journal.runs()
        while shared_clock.time() < begun.lease_ends_at + LEASE:
            shared_clock.advance(LEASE / 2)
            eventually(refused_until_renewed)

        worker.tell("charged")

        assert [worker.hear(), worker.hear()] == ["charged", "mailed"]
        assert worker.end() == (0, "")
    assert refused > 1
    assert effects_in(effects) == ["charge", "mail"]


def outlast(clock, eventually, *runs):
    """Let more time pass than a lease takes, each bit of it as soon as all of them were renewed in the last one."""
    first_end = max(run.session.lease.deadline for run in runs)
    while clock.monotonic() <= first_end:
        clock.advance(0.3)
        eventually(lambda: all(run.session.lease.deadline > clock.monotonic() + 0.4 for run in runs))


def test_renewal_moves_the_deadline(open_journal, eventually, manual_clock):
    """What is renewed in the journal is renewed for the worker too: work longer than the lease goes on."""
    journal = open_journal(clock=manual_clock)
    call = journaled(lambda: "charged", replay=never, name="charge")

    with journal.run(RUN, lease=0.5) as run:
        outlast(manual_clock, eventually, run)

        assert call() == "charged"


def test_idle_run_keeps_its_lease(open_journal, eventually, manual_clock):
    """A run in which nothing happens for long, as during a model call, is not handed to another worker."""
    journal = open_journal(clock=manual_clock)

    with journal.run(RUN, lease=0.5) as run:
        outlast(manual_clock, eventually, run)

        with pytest.raises(RunBusyError):
            journal.run(RUN).__enter__()


def test_renewal_passes_the_writers_queue(open_journal, eventually, held_writer, manual_clock):
    """Renewals do not stand in the writer's queue: behind a commit that takes long, the lease holds."""
    journal = open_journal(clock=manual_clock)

    with journal.run(RUN, lease=0.5) as run, held_writer(run.session.database):
        outlast(manual_clock, eventually, run)

        assert run.session.lease.lost is None


def test_every_run_of_a_process_is_renewed(open_journal, eventually, manual_clock):
    """One thread renews all the runs that a process holds."""
    journal = open_journal(clock=manual_clock)
    runs = [journal.run(f"order-{number}", lease=0.5) for number in range(20)]
    for run in runs:
        run.__enter__()

    outlast(manual_clock, eventually, *runs)

    assert all(run.session.lease.lost is None for run in runs)
    assert {record.status for record in journal.runs()} == {"running"}
    for run in reversed(runs):
        run.__exit__(None, None, None)


def test_forgotten_run_is_renewed_no_more(open_journal, eventually):
    """A run that was dropped without being left runs out, as that of a dead process would."""
    journal = open_journal()
    run = journal.run(RUN, lease=0.5)
    run._open()

    del run
    gc.collect()

    def can_be_taken():
        try:
            with journal.run(RUN):
                return True
        except RunBusyError:
            return False

    eventually(can_be_taken)


def test_left_run_is_renewed_no_more(open_journal, eventually):
    """Leaving ends the renewal: nothing writes to the run afterwards."""
    journal = open_journal()
    with journal.run(RUN, lease=0.5):
        pass
    with journal.run("order-8", lease=0.5) as other:
        first_end = other.session.lease.deadline
        eventually(lambda: other.session.lease.deadline > first_end)

    assert [record.lease_ends_at for record in journal.runs()] == [None, None]


def test_lease_must_be_long_enough_to_be_renewed(open_journal):
    """A lease that could run out between two renewals is refused before anything is opened."""
    with pytest.raises(ValueError, match=r"at least 0\.5 s"):
        open_journal().run(RUN, lease=0.1)


def test_runs_that_join_are_not_renewed_at_once(open_journal):
    """To open a run renews no lease, neither its own nor those of the runs that are open already."""
    journal = open_journal()
    with journal.run(RUN):
        sent = sent_statements(journal._database())
        for number in range(20):
            with journal.run(f"another-{number}"):
                pass
        renewals = [text for text in sent if text.startswith("UPDATE gnl_runs SET lease_ends_at")]

    assert renewals == []


def test_shorter_lease_that_joins_is_renewed_in_time(open_journal, eventually):
    """A run with a short lease is renewed as often as it needs, though the thread slept for the sake of a long one."""
    journal = open_journal()
    with journal.run(RUN, lease=3600.0), journal.run("order-8", lease=0.5) as run:
        deadline = run.session.lease.deadline

        eventually(lambda: run.session.lease.deadline > deadline)


def test_thread_that_slept_without_runs_renews_the_next_ones(open_journal, eventually):
    """Runs that come long after the last one has gone are renewed as the first ones were."""
    journal = open_journal()
    for number in range(3):
        with journal.run(f"order-{number}", lease=0.5) as run:
            lease, deadline = run.session.lease, run.session.lease.deadline
            eventually(lambda lease=lease, deadline=deadline: lease.deadline > deadline)
