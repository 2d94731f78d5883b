"""Without a lock each call is claimed: by one worker, for as long as it lives and renews (DESIGN 3.1, 3.5)."""

import asyncio
import contextvars
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from gnl_middleware import (
    Done,
    EffectCycleError,
    Journal,
    NotDone,
    ResolutionRefusedError,
    SideEffectRetryBlockedError,
    journaled,
    never,
    safe,
)
from tests.workers import programs
from tests.workers.programs import RUN

LONG, SHORT = 600.0, 2.0


@pytest.fixture
def journal(place):
    """The journal that the workers share."""
    with Journal(place) as opened:
        yield opened


def begin(crowd, *arguments):
    """Workers that have begun, one after the other."""
    workers = []
    for each in arguments:
        workers += crowd(programs.claim, each)
        assert workers[-1].hear() == "begins"
    return workers


def charge(journal):
    """What the journal says of the charge."""
    return next(step for step in journal.steps(RUN) if step.name == "charge")


def finish(worker):
    """Let a worker that has charged mail and leave; gives what it says."""
    worker.tell()
    return [worker.hear(), worker.hear()]


def test_loser_of_a_claim_gets_the_winners_outcome(crowd, place, effects, journal):
    """While one worker charges, the other waits; then both have the same outcome, and mail once."""
    first, *_ = begin(crowd, (place, effects, LONG, "first"))
    assert first.hear() == "charging"
    second, *_ = begin(crowd, (place, effects, LONG, "second"))
    first.tell("charged")

    assert [first.hear(), second.hear()] == ["charged", "charged"]
    mailed = finish(first)
    assert finish(second) == mailed == ["mailed by first", "left"]
    assert programs.happened(effects) == {"charge": 1, "mail": 1}
    assert [record.status for record in journal.runs()] == ["completed"]


@pytest.mark.parametrize(
    ("answer", "says", "charged"),
    [(None, "SideEffectRetryBlockedError", 1), ("found", "found", 1), ("not done", "charged again", 2)],
)
def test_claim_of_a_killed_worker_is_void_at_once(crowd, place, effects, answer, says, charged):  # noqa: PLR0917
    """Whoever waits for a worker that is killed settles its call at once: it asks recover, else it stops."""
    first, *_ = begin(crowd, (place, effects, LONG, "first"))
    assert first.hear() == "charging"
    second, *_ = begin(crowd, (place, effects, LONG, "second", answer))
    first.kill()

    if answer == "not done":
        assert second.hear() == "charging"
        second.tell("charged again")
    assert second.hear() == says
    assert programs.happened(effects)["charge"] == charged


def test_body_longer_than_the_claim_keeps_it(crowd, place, effects, journal, eventually):
    """A claim is renewed while its body runs: the other worker goes on waiting, and asks nobody whether it happened."""
    first, *_ = begin(crowd, (place, effects, SHORT, "first"))
    assert first.hear() == "charging"
    second, *_ = begin(crowd, (place, effects, SHORT, "second", "not done"))
    (begun,) = journal.runs()
    eventually(lambda: journal.runs()[0].lease_ends_at > begun.lease_ends_at + SHORT)
    first.tell("charged")

    assert [first.hear(), second.hear()] == ["charged", "charged"]
    assert programs.happened(effects) == {"charge": 1}


def test_frozen_worker_that_wakes_starts_nothing_more(crowd, place, effects, journal):
    """A worker stopped past its claim loses it; when it wakes, its outcome and its next effect are refused."""
    first, *_ = begin(crowd, (place, effects, SHORT, "first"))
    assert first.hear() == "charging"
    first.stop()
    second, *_ = begin(crowd, (place, effects, SHORT, "second", "found"))
    assert second.hear() == "found"
    assert finish(second) == ["mailed by second", "left"]

    first.go_on()
    first.tell("too late")
    assert first.hear() == "too late"
    assert finish(first) == ["LeaseLostError claim", "LeaseLostError"]
    assert programs.happened(effects) == {"charge": 1, "asked": 1, "mail": 1}
    assert (charge(journal).value, journal.runs()[0].status) == ("found", "completed")


def test_renewal_is_refused_to_who_lost_its_claim(crowd, place, effects, eventually):
    """A worker whose body goes on after its claim was taken hears of it by the next renewal."""
    woken = threading.Event()

    @journaled(replay=never(recover=lambda _call: Done("found")))
    def charge_slowly():
        with Journal(place) as other, contextvars.Context().run(other.run, RUN, lock=False) as run:
            step = next(iter(run.session.record.steps.values()))
            other._database().write(lambda connection: _take(connection, step))
        eventually(lambda: run_here.session.lease.lost is not None)
        woken.set()
        return "charged"

    with Journal(place) as journal, pytest.raises(Exception, match="lost its lease"):  # noqa: SIM117
        with journal.run(RUN, lock=False, lease=0.5) as run_here:
            charge_slowly()
            charge_slowly()
    assert woken.is_set()


def _take(connection, step):
    from gnl_middleware.storage.schema import steps

    connection.execute(steps.update().where(steps.c.key == step.key).values(token="another"))


def test_lock_is_fixed_when_the_run_is_created(journal):
    """A run that was created with a lock is not opened without one, nor the other way round; nothing changes."""
    for created in (True, False):
        with journal.run(f"order-{created}", lock=created):
            pass
        before = journal.runs()

        with (
            pytest.raises(ValueError, match=f"created with lock={created}"),
            journal.run(f"order-{created}", lock=not created),
        ):
            pytest.fail("opened with another lock")
        assert journal.runs() == before


def test_status_tells_whether_anybody_is_at_it(crowd, place, effects, journal, eventually):
    """A run without a lock runs while one worker lives; when all have died, it is interrupted and can be swept."""
    first, *_ = begin(crowd, (place, effects, LONG, "first"))
    assert first.hear() == "charging"
    second, *_ = begin(crowd, (place, effects, LONG, "second"))
    eventually(lambda: journal.runs()[0].attempts == 2)

    def seen():
        (record,) = journal.runs()
        return record.status, record.holder is not None

    assert seen() == ("running", True)
    second.kill()
    assert seen() == ("running", True)
    first.kill()
    assert seen() == ("interrupted", False)
    assert [record.run_id for record in journal.runs(status="interrupted")] == [RUN]


def test_decision_is_refused_while_the_claim_is_alive(crowd, place, effects, journal):
    """A person cannot decide a call that a worker is at; when the worker has died, the decision is taken."""
    first, *_ = begin(crowd, (place, effects, LONG, "first"))
    assert first.hear() == "charging"
    with pytest.raises(ResolutionRefusedError, match="still running"):
        journal.resolve(RUN, "charge", Done("by hand"), by="ops")
    first.kill()

    journal.resolve(RUN, "charge", Done("by hand"), by="ops")

    with journal.run(RUN, lock=False):
        assert journaled(lambda: "again", replay=never, name="charge")() == "by hand"


def test_failure_of_a_claimed_call_is_everybodys(journal):
    """A call that fails in one worker fails in the other one, before anybody has gone on; then both go on, and mail once."""
    began, asked, heard, ran = threading.Event(), threading.Event(), threading.Event(), []

    def fail():
        ran.append("charge")
        began.set()
        asked.wait()
        raise ConnectionError("timed out")

    charge = journaled(fail, replay=never, name="charge")
    mail = journaled(lambda: ran.append("mail") or len(ran), replay=never, name="mail")

    def work(number):
        if number == 2:
            began.wait()
        with journal.run(RUN, lock=False):
            if number == 2:
                asked.set()
            with pytest.raises(ConnectionError, match="timed out"):
                charge()
            if number == 1:
                heard.wait(30)
            heard.set()
            return mail()

    assert at_once(work) == [2, 2]
    assert ran == ["charge", "mail"]
    assert journal.runs()[0].status == "completed"


def test_failure_that_kills_its_worker_is_settled_by_the_next(journal):
    """A failure that ended the only worker is no answer: the next one settles it, as with a lock."""

    def fail():
        raise ConnectionError("timed out")

    with pytest.raises(ConnectionError), journal.run(RUN, lock=False):
        journaled(fail, replay=never, name="charge")()
    assert journal.runs()[0].status == "failed"

    with pytest.raises(SideEffectRetryBlockedError), journal.run(RUN, lock=False):
        journaled(fail, replay=never, name="charge")()
    assert journal.runs()[0].status == "blocked"


def at_once(work):
    """Two workers of one process, each in a thread and a context of its own."""
    with ThreadPoolExecutor(2) as pool:
        return [
            future.result()
            for future in [pool.submit(contextvars.Context().run, work, number) for number in (1, 2)]
        ]


def test_two_threads_of_one_process(journal):
    """Two workers of one process are told apart as those of two are."""
    ran, met = [], threading.Barrier(2)

    def work(number):
        with journal.run(RUN, lock=False) as run:
            met.wait()
            return run.random(), journaled(
                lambda: ran.append(number) or number, replay=never, name="charge"
            )()

    first, second = at_once(work)

    assert first == second
    assert len(ran) == 1


def test_two_tasks_of_one_event_loop(journal):
    """The same for two tasks: who waits for the other does not stop the loop."""
    ran = []

    @journaled(replay=never)
    async def charge():
        ran.append("charge")
        await asyncio.sleep(0.05)
        return len(ran)

    async def work():
        async with journal.run(RUN, lock=False):
            return await charge()

    async def both():
        return await asyncio.gather(work(), work())

    assert asyncio.run(both()) == [1, 1]
    assert ran == ["charge"]


def test_effect_that_may_happen_once_has_one_owner(journal):
    """Two workers, two calls of one business: it happens once, and both calls have its outcome."""
    ran, met = [], threading.Barrier(2)

    def work(number):
        with journal.run(RUN, lock=False) as run, run.scope(f"branch-{number}"):
            met.wait()
            pay = journaled(
                lambda order: ran.append(number) or f"paid {order}",
                replay=never(once_per="args"),
                name="pay",
            )
            return pay(7)

    assert at_once(work) == ["paid 7", "paid 7"]
    assert len(ran) == 1


def test_owner_in_a_run_without_a_lock_that_died(crowd, place, effects, journal):
    """Another run that needs the same effect notices the death of the worker that claimed it, and takes its place."""
    first, *_ = begin(crowd, (place, effects, LONG, "first"))
    assert first.hear() == "charging"
    first.kill()
    ran = []
    pay = journaled(
        lambda: ran.append("pay") or "paid",
        replay=never(once_per=lambda _: "7", window="journal", recover=lambda _: NotDone()),
    )
    with pytest.raises(KeyboardInterrupt), journal.run("order-8", lock=False):
        journaled(_killed, replay=never(once_per=lambda _: "7", window="journal"), name=pay.__name__)()

    with journal.run("order-9", lock=False):
        assert pay() == "paid"


def _killed():
    raise KeyboardInterrupt


def test_call_cannot_wait_for_itself(journal):
    """A body that opens its own run again and makes its own call would wait for itself for ever: it is refused."""

    def inside():
        with journal.run(RUN, lock=False):
            return call()

    call = journaled(inside, replay=safe, name="inside")

    with pytest.raises(EffectCycleError), journal.run(RUN, lock=False):
        call()
