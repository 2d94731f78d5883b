"""One worker works on a run: a restart is instant, a second worker is told who is at it."""

import asyncio
import os
import socket
import threading
import time

import pytest

from gnl_middleware import NotDone, RunBusyError
from tests.leases import workers
from tests.leases.workers import RUN, Shop, effects_in
from tests.processes.children import Child

LEASE = 30.0
"""Longer than any of these tests may last: nothing here waits for a lease to run out."""


@pytest.fixture
def path(place):
    """A journal on either database."""
    return place


def test_killed_worker_is_replaced_at_once(path, effects, open_journal):
    """After `kill -9` the next worker goes on at once: the lease of a dead process is void, however long it was."""
    with Child(workers.hold, path, effects, LEASE) as first:
        first.hear()
        (before,) = open_journal().runs()
        first.kill()

    shop = Shop(effects, answer=workers.RECOVERED)
    with open_journal().run(RUN) as run:
        taken_at = time.time()
        answers = [shop.charge(), shop.mail()]

    assert taken_at < before.lease_ends_at
    assert (run.attempt, answers, shop.asked) == (2, ["recovered", "mailed"], 1)
    assert effects_in(effects) == ["charge", "mail"]


def test_killed_worker_is_replaced_by_another_process(path, effects, open_journal):
    """The same from a process of its own, as a supervisor restarts a worker."""
    with Child(workers.hold, path, effects, LEASE) as first:
        first.hear()
        first.kill()

    with Child(workers.take, path, effects) as second:
        attempt, charged, mailed, asked = second.hear()
        ended = second.end()

    assert (attempt, charged, mailed, asked) == (2, "charged", "mailed", 1)
    assert (ended.code, ended.errors) == (0, "")
    assert [record.status for record in open_journal().runs()] == ["completed"]


def test_second_process_is_told_who_holds_the_run(path, effects, open_journal):
    """A second live worker gets RunBusyError, which names the holder and the end of its lease, and runs nothing."""
    with Child(workers.hold, path, effects, LEASE) as first:
        first.hear()
        (record,) = open_journal().runs()

        with pytest.raises(RunBusyError) as caught, open_journal().run(RUN):
            pytest.fail("two workers on one run")

        assert caught.value.run_id == RUN
        assert caught.value.holder == record.holder == f"pid {first.pid} on {socket.gethostname()}"
        assert caught.value.lease_ends_at == record.lease_ends_at > time.time()
        for part in (RUN, f"pid {first.pid}", 'on_busy="wait"'):
            assert part in str(caught.value)
    assert effects_in(effects) == ["charge"]


def test_refused_worker_changes_nothing(path, effects, open_journal):
    """Being refused leaves no trace: same attempt, same holder, same lease, and the holder goes on."""
    with Child(workers.hold, path, effects, LEASE) as first:
        first.hear()
        before = open_journal().runs()

        with pytest.raises(RunBusyError):
            open_journal().run(RUN).__enter__()

        assert open_journal().runs() == before
        first.tell("charged")
        assert first.hear() == {"charge": "charged", "lost": None}
        first.tell()
        assert [first.hear(), first.hear()] == [{"mail": "mailed", "lost": None}, {"left": None}]


def test_same_process_is_refused_too(open_journal):
    """Being the same process is no right to the run: a second worker in it is refused as any other."""
    with open_journal().run(RUN), pytest.raises(RunBusyError) as caught, open_journal().run(RUN):
        pytest.fail("two workers on one run")

    assert caught.value.holder == f"pid {os.getpid()} on {socket.gethostname()}"


def test_same_process_is_refused_from_a_task(open_journal):
    """The same for two tasks of one event loop."""
    journal = open_journal()

    async def work():
        async with journal.run(RUN):
            with pytest.raises(RunBusyError):
                async with journal.run(RUN):
                    pytest.fail("two workers on one run")

    asyncio.run(work())


@pytest.mark.parametrize("word", ["leave", "fail"])
def test_clean_exit_releases_at_once(path, open_journal, word):
    """Who leaves a run, by its end or by an error, gives it free at once, though its process lives on."""
    with Child(workers.keep, path, LEASE) as first:
        first.hear()
        first.tell(word)
        assert first.hear() == "left"

        with open_journal().run(RUN) as run:
            assert run.attempt == 2


def test_clean_exit_in_the_same_process_releases_at_once(open_journal):
    """The same for the next worker of the same process."""
    journal = open_journal()
    for attempt in (1, 2, 3):
        with journal.run(RUN) as run:
            assert run.attempt == attempt


def test_waiting_worker_gets_the_run_when_it_is_left(path, open_journal):
    """With on_busy="wait" a worker starts when the holder leaves."""
    with Child(workers.keep, path, LEASE) as first:
        first.hear()
        with Child(workers.wait, path) as second:
            second.hear()
            first.tell("leave")

            assert second.hear() == 2
            assert second.end() == (0, "")
    assert open_journal().runs()[0].attempts == 2


def test_waiting_worker_gets_the_run_when_its_holder_is_killed(path):
    """With on_busy="wait" a worker starts when the holder dies; it does not sit the lease out."""
    with Child(workers.keep, path, LEASE) as first:
        first.hear()
        with Child(workers.wait, path) as second:
            second.hear()
            first.kill()

            assert second.hear() == 2


def test_waiting_tasks_let_the_holder_leave(path):
    """However many tasks wait for a run, the task that holds it can leave it: they hold no thread that it needs."""
    tasks = 2 * (os.cpu_count() + 4)  # twice as many as the event loop's executor has threads

    with Child(workers.take_turns, path, tasks, patience=10) as child:
        assert child.hear() == list(range(tasks))
        assert child.end() == (0, "")


def test_waiting_task_can_be_cancelled(path):
    """A task that waits for a run can be cancelled meanwhile: it does not have to get the run first."""
    with Child(workers.keep, path, LEASE) as holder:
        holder.hear()
        with Child(workers.give_up_waiting, path, patience=10) as child:
            assert child.hear() == "cancelled"
            assert child.end() == (0, "")


def test_many_workers_take_turns(open_journal):
    """Threads that all wait for one run get it one after the other, each alone."""
    journal = open_journal()
    inside, most = [], []

    def work(number):
        with journal.run(RUN, on_busy="wait"):
            inside.append(number)
            most.append(len(inside))
            inside.remove(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert most == [1] * 8
    assert journal.runs()[0].attempts == 8


def test_interrupted_effect_is_asked_about_by_the_next_worker(path, effects, open_journal):
    """A new worker that took over at once still asks first: `kill -9` left an effect without outcome."""
    with Child(workers.hold, path, effects, LEASE) as first:
        first.hear()
        first.kill()

    shop = Shop(effects, answer=NotDone())
    with open_journal().run(RUN):
        shop.charge()

    assert shop.asked == 1
    assert effects_in(effects) == ["charge", "charge"]
