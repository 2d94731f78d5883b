"""Group commit: what waits at the same time shares a transaction, and each caller hears of its own writes only."""

import asyncio
import contextvars
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from gnl_middleware import JournalUnavailableError, codec, journaled, never, safe
from gnl_middleware.storage.protocol import Intent, Outcome, Verdict
from tests.storage.conversations import Conversation
from tests.storage.writers import held, wait_for_queue, watched_commits

RUNS = 32


@pytest.fixture
def threads():
    """Threads for as many runs at once."""
    with ThreadPoolExecutor(RUNS) as pool:
        yield pool


def all_at_once(threads, work):
    """Call the work for each of the runs in a thread of its own."""
    return [threads.submit(contextvars.copy_context().run, work, number) for number in range(RUNS)]


def test_intents_of_many_runs_share_a_commit(journal, threads):
    """The intents of 32 runs that wait at the same time are committed, and synced, once."""
    opened, bodies = threading.Barrier(RUNS + 1), threading.Barrier(RUNS + 1)
    start, recorded = threading.Event(), threading.Event()

    @journaled(replay=never)
    def charge(number):
        bodies.wait()
        recorded.wait()
        return number

    def work(number):
        with journal.run(f"order-{number}"):
            opened.wait()
            start.wait()
            return charge(number)

    works = all_at_once(threads, work)
    opened.wait()
    commits = watched_commits(journal)
    with held(journal._database()):
        start.set()
        wait_for_queue(journal._database(), RUNS)
    bodies.wait()
    intents = [commit for commit in commits if touches_steps(commit)]
    recorded.set()

    assert [work.result() for work in works] == list(range(RUNS))
    assert [commit.synced for commit in intents] == [True]


def test_outcomes_of_many_runs_share_a_commit(journal, threads):
    """The same for the outcomes."""
    bodies, recorded = threading.Barrier(RUNS + 1), threading.Event()

    @journaled(replay=never)
    def charge(number):
        bodies.wait()
        recorded.wait()
        return number

    def work(number):
        with journal.run(f"order-{number}"):
            return charge(number)

    works = all_at_once(threads, work)
    bodies.wait()
    commits = watched_commits(journal)
    with held(journal._database()):
        recorded.set()
        wait_for_queue(journal._database(), RUNS)
    assert [work.result() for work in works] == list(range(RUNS))

    assert len([commit for commit in commits if touches_steps(commit)]) == 1


def test_many_runs_of_an_event_loop_share_commits(journal):
    """32 runs at once in one event loop need far fewer commits than they have writes, with no arrangement at all."""

    @journaled(replay=never)
    async def charge(number):
        return number

    async def work(number):
        async with journal.run(f"order-{number}"):
            return [await charge(step) for step in range(5)]

    async def all_of_them():
        return await asyncio.gather(*[work(number) for number in range(RUNS)])

    assert asyncio.run(all_of_them()) == [list(range(5))] * RUNS

    counters = journal._database().counters
    assert counters.writes >= RUNS * (5 * 2 + 2)
    assert counters.commits <= counters.writes / 4


def test_bad_intent_fails_alone(journal, threads):
    """One row that the database refuses does not fail the 31 others that happened to share its commit."""
    opened, start, ran = threading.Barrier(RUNS + 1), threading.Event(), []

    def work(number):
        charge = journaled(lambda: ran.append(number) or number, replay=never, name="charge")
        with journal.run(f"order-{number}") as run:
            opened.wait()
            start.wait()
            if number == 0:
                run.session.lease.fence = 2**70  # more than a column holds: a row that the database refuses
            return charge()

    works = all_at_once(threads, work)
    opened.wait()
    with held(journal._database()):
        start.set()
        wait_for_queue(journal._database(), RUNS)

    with pytest.raises(JournalUnavailableError):
        works[0].result()
    assert [work.result() for work in works[1:]] == list(range(1, RUNS))
    assert sorted(ran) == list(range(1, RUNS))
    assert sum(record.status == "completed" for record in journal.runs()) == RUNS - 1


def test_bad_outcome_fails_alone(journal, threads):
    """The same for an outcome; its step stays an intent without outcome, and its run stops."""
    asked, answer = threading.Barrier(RUNS + 1), threading.Event()

    class Waiting(Conversation):
        def _reply(self, number):
            asked.wait()
            answer.wait()
            return super()._reply(number)

    def work(number):
        # More tokens than a 64-bit column takes: one bad number from a provider.
        conversation = Waiting(tokens=2**70 if number == 0 else 1)
        with journal.run(f"order-{number}"):
            conversation.say("hello")
            return conversation.ask()

    works = all_at_once(threads, work)
    asked.wait()
    with held(journal._database()):
        answer.set()
        wait_for_queue(journal._database(), RUNS)

    with pytest.raises(JournalUnavailableError):
        works[0].result()
    assert all(work.result().startswith("reply") for work in works[1:])
    assert [step.status for step in journal.steps("order-0")] == ["started"]
    assert sum(record.status == "completed" for record in journal.runs()) == RUNS - 1


def test_lost_lease_in_a_batch_fails_alone(journal, threads):
    """An intent with a stale fence is refused, and the intents that share its commit are written."""
    opened, taken = threading.Barrier(RUNS + 1), threading.Event()
    charge = journaled(lambda: "charged", replay=never, name="charge")

    def work(number):
        with journal.run(f"order-{number}") as run:
            opened.wait()
            taken.wait()
            if number == 0:
                run.session.lease.fence -= 1
            return charge()

    works = all_at_once(threads, work)
    opened.wait()
    with held(journal._database()):
        taken.set()
        wait_for_queue(journal._database(), RUNS)

    assert type(works[0].exception()).__name__ == "LeaseLostError"
    assert [work.result() for work in works[1:]] == ["charged"] * (RUNS - 1)


def test_intent_and_outcome_of_one_batch(journal):
    """The un-awaited intent of a safe step and its outcome may share a commit: the step ends as done."""
    database = journal._database()
    look_up = journaled(lambda: "found", replay=safe, name="look_up")

    with journal.run("order-7"):
        commits = watched_commits(journal)
        with ThreadPoolExecutor(1) as pool, held(database):
            work = pool.submit(contextvars.copy_context().run, look_up)
            wait_for_queue(database, 2)
        assert work.result() == "found"

        assert len([commit for commit in commits if touches_steps(commit)]) == 1
        assert [step.status for step in journal.steps("order-7")] == ["done"]


def test_intents_come_before_outcomes_in_a_batch(journal):
    """Within a batch intents are written first: an outcome finds its row, wherever the two stand in the queue."""
    database = journal._database()
    with journal.run("order-7") as run:
        step = fresh_step(journal, run)
        value = codec.encode("charged")
        outcome = Outcome(
            run_id=step.run_id,
            key=step.key,
            token=step.token,
            status="done",
            finished_at=1.0,
            ended_tick=2,
            value=value,
            value_hash=codec.content_hash(value),
        )
        intent = Intent(step)
        with held(database):
            database.submit(outcome)
            database.submit(intent)

        assert (outcome.ended.result(), intent.ended.result()) == (Verdict.WON, Verdict.WON)
        assert [row.status for row in database.load("order-7", 0.0) if row.key == "fresh"] == ["done"]


def test_callers_hear_of_their_own_writes(journal):
    """Each write of a batch gets its own verdict: one step claimed twice is won once and taken once."""
    database = journal._database()
    with journal.run("order-7") as run:
        step = fresh_step(journal, run)
        claims = [Intent(replace(step, token=token), durable=True) for token in ("first", "second")]
        with held(database):
            for claim in claims:
                database.submit(claim)

        assert [claim.ended.result() for claim in claims] == [Verdict.WON, Verdict.TAKEN]


def touches_steps(commit):
    """Whether a commit wrote steps."""
    written = ("INSERT INTO gnl_steps", "UPDATE gnl_steps")
    return any(statement.startswith(written) for statement in commit.statements)


def fresh_step(journal, run):
    """The row of a step that is not in the journal yet, made from one that is."""
    journaled(lambda: "charged", replay=never, name="charge")()
    (step, *_) = journal._database().load(run.run_id, 0.0)
    return replace(step, key="fresh", token="fresh", status="started", fence=run.session.lease.fence)
