"""A sweeper takes up the runs whose workers died, and no others; several of them do no harm."""

import contextlib
import itertools

import pytest

from gnl_middleware import Journal, RunBusyError, SideEffectRetryBlockedError, journaled, keyed, never
from tests.workers import programs


class Killed(BaseException):
    """The worker ends here."""


@pytest.fixture
def journal(place):
    """A journal on either database."""
    with Journal(place) as opened:
        yield opened


def interrupt(journal, run_id, **options):
    """A run whose worker is killed in the middle of its second call."""
    with contextlib.suppress(Killed), journal.run(run_id, **options):
        journaled(lambda: "charged", replay=never, name="charge")()
        raise Killed


def fail(journal, run_id, error):
    """A run that ends by this error."""
    with contextlib.suppress(Exception), journal.run(run_id):
        raise error


def test_only_interrupted_runs_are_swept(journal):
    """Completed, failed, blocked and running runs are left alone; the interrupted ones are handled, each once."""
    interrupt(journal, "order-1", metadata={"order": 7})
    interrupt(journal, "order-2", lock=False)
    fail(journal, "failed", ValueError("no"))
    with journal.run("completed"):
        pass
    with contextlib.suppress(Killed), journal.run("blocked"):
        journaled(_killed, replay=never, name="charge")()
    with contextlib.suppress(SideEffectRetryBlockedError), journal.run("blocked"):
        pass
    seen = []

    def handle(job):
        seen.append((job.run_id, job.metadata))
        with journal.run(job.run_id, lock=job.run_id != "order-2"):
            assert journaled(lambda: "again", replay=never, name="charge")() == "charged"

    with journal.run("running"):
        assert sorted(journal.sweep(handle)) == ["order-1", "order-2"]
        assert journal.sweep(handle) == []

    assert sorted(seen) == [("order-1", {"order": 7}), ("order-2", {})]
    assert len(journal.runs(status="completed")) == 4


def _killed():
    raise Killed


def test_asynchronous_handler(journal):
    """A handler may be a coroutine function."""
    interrupt(journal, "order-1")

    async def handle(job):
        async with journal.run(job.run_id):
            pass

    assert journal.sweep(handle) == ["order-1"]
    assert journal.runs()[0].status == "completed"


def test_one_bad_job_does_not_keep_the_others(journal):
    """Whatever the handler raises for one run, the others have their turn; then all errors are raised, or told."""
    for number in range(3):
        interrupt(journal, f"order-{number}")

    def handle(job):
        if job.run_id == "order-1":
            raise ValueError("bad order")
        with journal.run(job.run_id):
            pass

    with pytest.raises(ExceptionGroup) as caught:
        journal.sweep(handle)
    told = []
    assert journal.sweep(handle, on_error=lambda job, error: told.append((job.run_id, str(error)))) == []

    assert [str(error) for error in caught.value.exceptions] == ["bad order"]
    assert "order-1" in caught.value.exceptions[0].__notes__[0]
    assert told == [("order-1", "bad order")]
    assert len(journal.runs(status="completed")) == 2


def test_run_that_is_busy_by_now_is_no_error(journal, place):
    """A run that another sweeper has taken since it was found is skipped; a busy run of the handler's own is its error."""
    interrupt(journal, "order-1")
    with journal.run("other"):

        def busy(job):
            raise RunBusyError(run_id=job.run_id, holder="another", lease_ends_at=0.0)

        def busy_inside(_job):
            with journal.run("other"):
                pass

        assert journal.sweep(busy) == []
        with pytest.raises(ExceptionGroup):
            journal.sweep(busy_inside)


def test_sweepers_at_once(crowd, place, effects, journal):
    """Four sweepers in processes of their own at once: each interrupted run is finished, each effect happens once."""
    runs = 12
    for number in range(runs):
        interrupt(journal, f"order-{number}")
    sweepers = crowd(programs.sweep, *[(place, effects)] * 4)
    assert [sweeper.hear() for sweeper in sweepers] == ["ready"] * 4
    for sweeper in sweepers:
        sweeper.tell()

    handled = list(itertools.chain.from_iterable(sweeper.hear() for sweeper in sweepers))

    assert programs.happened(effects) == {f"order-{number}": 1 for number in range(runs)}
    assert set(handled) == {f"order-{number}" for number in range(runs)}
    assert len(journal.runs(status="completed")) == runs


def test_run_of_a_killed_process_is_swept_at_once(crowd, place, effects, journal):
    """A worker killed by the system is noticed by the first sweep on its machine, without waiting for its lease."""
    (worker,) = crowd(programs.claim, (place, effects, 600.0, "first"))
    assert (worker.hear(), worker.hear()) == ("begins", "charging")
    assert journal.sweep(lambda _job: None) == []
    worker.kill()

    assert journal.sweep(lambda _job: None) == [programs.RUN]


def test_listing_takes_a_status_and_a_limit(journal):
    """Runs are listed by status, the latest first, at most so many; a status that does not exist is refused."""
    for number in range(4):
        with journal.run(f"order-{number}"):
            journaled(lambda: 1, replay=keyed, name="call")()
    interrupt(journal, "cut off")

    assert [run.run_id for run in journal.runs(status="completed", limit=2)] == ["order-3", "order-2"]
    assert [run.run_id for run in journal.runs(limit=1)] == ["cut off"]
    assert [run.run_id for run in journal.runs(status="interrupted", limit=5)] == ["cut off"]
    assert journal.runs(status="running") == []
    with pytest.raises(ValueError, match="finished"):
        journal.runs(status="finished")


def test_busy_says_who_since_when_and_until_when(journal, place):
    """RunBusyError names the holder, when it took the run, and when its lease ends."""
    with journal.run("order-1") as run, pytest.raises(RunBusyError) as caught:
        journal.run("order-1").__enter__()
    with contextlib.suppress(RunBusyError):
        assert run.attempt == 1

    busy = caught.value
    assert busy.lease_ends_at - busy.held_since == pytest.approx(30.0, abs=5.0)
    assert "pid" in busy.holder
    for part in (busy.holder, "since 20", "until 20"):
        assert part in str(busy)
