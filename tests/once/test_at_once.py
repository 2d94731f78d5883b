"""Equal calls at once in one process: one runs, the others wait for it, and never do two run (DESIGN 3.4)."""

import asyncio
import threading

import pytest

from gnl_middleware import (
    DivergenceError,
    Done,
    NotDone,
    SideEffectRetryBlockedError,
    journaled,
    never,
    safe,
)
from tests.once.refunds import (
    IN_JOURNAL,
    PATIENCE,
    Killed,
    Refund,
    attempt,
    both_windows,
    per_order,
    run_status,
    started_thread,
    steps,
    wait_for,
)

NOTES = ["one", "two", "three", "four", "five"]


class Crowd:
    """Five calls of one order at once; the first one's body ends when the four others have asked.

    Args:
        endings: What the executions of the body do, when the four others have asked.
        policy: How the refund is labelled.
        watch_points: The fixture.
        asynchronous: Whether the calls are tasks, or else threads.
    """

    def __init__(self, *endings, policy, watch_points, asynchronous=False):
        self._asked, self._lock, self._all_asked = set(), threading.Lock(), threading.Event()
        watch_points(self._watch)
        first, *later = endings or ("refunded",)
        self.refund = Refund(
            self._waiting(first, asynchronous), *later, policy=policy, asynchronous=asynchronous
        )

    def _watch(self, point, number, name):
        if point == "before_intent":
            with self._lock:
                # Not by its number: calls that come at the same moment are told the same upcoming one.
                self._asked.add(asyncio.current_task() if self.refund.asynchronous else threading.get_ident())
                if len(self._asked) >= len(NOTES):
                    self._all_asked.set()

    def _waiting(self, ending, asynchronous):
        def in_thread(order, note):
            wait_for(self._all_asked)
            return self._ended(ending)

        async def in_task(order, note):
            await asyncio.to_thread(wait_for, self._all_asked)
            return self._ended(ending)

        return in_task if asynchronous else in_thread

    def _ended(self, ending):
        if isinstance(ending, BaseException):
            raise ending
        return ending

    def call(self, journal, run_id="run"):
        """Make the five calls in a run; gives what each returned or raised."""
        if self.refund.asynchronous:
            return asyncio.run(asyncio.wait_for(self._call_async(journal, run_id), PATIENCE))
        with journal.run(run_id):
            calls = [started_thread(lambda note=note: self.refund.call("o-7", note)) for note in NOTES]
            return [call.exception(PATIENCE) or call.result() for call in calls]

    async def _call_async(self, journal, run_id):
        async with journal.run(run_id):
            calls = [self.refund.call("o-7", note) for note in NOTES]
            return await asyncio.gather(*calls, return_exceptions=True)


both_ways = pytest.mark.parametrize("asynchronous", [False, True], ids=["threads", "tasks"])


@both_ways
@both_windows
class TestFiveAtOnce:
    def test_all_get_the_winners_outcome(self, journal, watch_points, policy, asynchronous):
        """Five equal calls at once run one body, and the four that wait get its result."""
        crowd = Crowd(policy=policy, watch_points=watch_points, asynchronous=asynchronous)

        results = crowd.call(journal)

        assert (results, len(crowd.refund.ran)) == (["refunded"] * 5, 1)
        assert sorted(steps(journal), key=str) == [("done", "shared")] * 4 + [("done", None)]

    def test_replay_runs_nothing(self, journal, watch_points, policy, asynchronous):
        """However the five are scheduled on later attempts, none runs and each gets the same result."""
        crowd = Crowd(policy=policy, watch_points=watch_points, asynchronous=asynchronous)
        crowd.call(journal)

        results = [crowd.call(journal) for _ in range(2)]

        assert (results, len(crowd.refund.ran)) == ([["refunded"] * 5] * 2, 1)
        assert len(steps(journal)) == 5

    def test_one_takes_the_place_of_a_winner_that_performed_nothing(
        self, journal, watch_points, policy, asynchronous
    ):
        """An error that proves that nothing happened frees the key: one of those who wait runs, the others share."""
        refused = ConnectionRefusedError("refused")
        crowd = Crowd(
            refused,
            "refunded",
            policy=policy(not_performed=(ConnectionRefusedError,)),
            watch_points=watch_points,
            asynchronous=asynchronous,
        )

        results = crowd.call(journal)

        assert sorted(results, key=str) == sorted([refused, *["refunded"] * 4], key=str)
        assert len(crowd.refund.ran) == 2

    def test_none_repeats_a_failure_that_may_have_had_its_effect(
        self, journal, watch_points, policy, asynchronous
    ):
        """Any other error leaves the key taken: nobody runs, and the run waits for a person."""
        crowd = Crowd(
            TimeoutError("no answer"), policy=policy, watch_points=watch_points, asynchronous=asynchronous
        )

        with pytest.raises(SideEffectRetryBlockedError):
            crowd.call(journal)

        assert len(crowd.refund.ran) == 1
        assert run_status(journal) == "blocked"

    def test_a_failure_is_settled_by_asking(self, journal, watch_points, policy, asynchronous):
        """Where `recover` finds the winner's effect in spite of its error, those who wait get what it found."""
        asked = []
        crowd = Crowd(
            TimeoutError("no answer"),
            policy=policy(recover=lambda call: asked.append(call) or Done("found")),
            watch_points=watch_points,
            asynchronous=asynchronous,
        )

        results = crowd.call(journal)

        assert sorted(map(str, results)) == ["found"] * 4 + ["no answer"]
        assert {(call.error, call.arguments["order"]) for call in asked} == {
            ("TimeoutError: no answer", "o-7")
        }
        assert len(crowd.refund.ran) == 1

    def test_one_takes_the_place_of_a_winner_that_was_cut_off(
        self, journal, watch_points, policy, asynchronous
    ):
        """The winner's try ends without an outcome; `recover` says that nothing happened, so one of the others runs."""
        crowd = Crowd(
            asyncio.CancelledError() if asynchronous else Killed(),
            "refunded",
            policy=policy(recover=lambda call: NotDone()),
            watch_points=watch_points,
            asynchronous=asynchronous,
        )

        results = crowd.call(journal)

        assert sorted(type(result).__name__ for result in results)[1:] == ["str"] * 4
        assert len(crowd.refund.ran) == 2

    def test_nobody_begins_after_the_winner_stopped_the_run(
        self, journal, watch_points, policy, asynchronous
    ):
        """A control error inside the winner stops the run: those who wait raise it too, and none runs."""
        stopping = DivergenceError(
            run_id="run", step_key="x", part="arguments", recorded=1, asked=2, diff="", headline="it differs"
        )
        crowd = Crowd(
            stopping,
            "refunded",
            policy=policy(recover=lambda call: NotDone()),
            watch_points=watch_points,
            asynchronous=asynchronous,
        )

        with pytest.raises(DivergenceError, match="it differs"):
            crowd.call(journal)

        assert len(crowd.refund.ran) == 1


class TestRacesForAFreedKey:
    """Whoever takes the place of an owner must take exactly the try that it looked at."""

    def freeing(self, policy, ending):
        """A refund whose first execution proves that nothing happened."""
        listed = policy(not_performed=(ConnectionRefusedError,))
        return Refund(ConnectionRefusedError("refused"), ending, policy=listed)

    @both_windows
    def test_owner_is_called_again_while_another_takes_its_place(self, journal, watch_points, policy):
        """The owner's retry begins after another call saw the key free and before it took it: one of them runs."""
        finish, looked, go_on = threading.Event(), threading.Event(), threading.Event()
        refund = self.freeing(policy, lambda order, note: finish.wait(PATIENCE) and "refunded")
        arrivals = []

        def hold_the_taker(point, number, name):
            if point == "before_intent" and threading.current_thread() is not threading.main_thread():
                arrivals.append(number)
                # First it asks and learns that another step owns the key; then it comes to take its place.
                if len(arrivals) == 2:
                    looked.set()
                    wait_for(go_on)

        with journal.run("run") as run:
            with pytest.raises(ConnectionRefusedError):
                refund.call("o-7", "owner")
            watch_points(hold_the_taker)
            # In a branch of its own: a later call of the owner's own branch would mean that its failure was handled.
            with run.scope("branch"):
                taker = started_thread(lambda: refund.call("o-7", "taker"))
            wait_for(looked)
            watch_points(lambda point, *_: point == "before_body" and go_on.set())
            threading.Timer(0.5, finish.set).start()
            retried = refund.call("o-7", "owner")
            taken = taker.result(PATIENCE)

        assert [retried, taken] == ["refunded"] * 2
        assert refund.ran == ["owner", "owner"]

    def test_owners_run_is_retried_while_another_run_takes_its_place(self, journal, watch_points):
        """The same between two runs: a retried job and a waiting one make one refund between them."""
        looked, go_on = threading.Event(), threading.Event()
        refund = self.freeing(IN_JOURNAL, "refunded")
        with pytest.raises(ConnectionRefusedError):
            attempt(journal, refund, ("o-7", "owner"), run_id="owner")
        arrivals = []

        def hold_the_taker(point, number, name):
            if point == "before_intent":
                arrivals.append(number)
                if len(arrivals) == 2:
                    looked.set()
                    wait_for(go_on)

        watch_points(hold_the_taker)
        taker = started_thread(lambda: attempt(journal, refund, ("o-7", "taker"), run_id="taker"))
        wait_for(looked)
        watch_points(None)
        retried = attempt(journal, refund, ("o-7", "owner"), run_id="owner")
        go_on.set()

        assert [retried, taker.result(PATIENCE)] == [["refunded"]] * 2
        assert refund.ran == ["owner", "owner"]

    def test_two_take_the_place_of_one(self, journal, watch_points):
        """Two runs that both saw the key free: the second shares what the first made of it."""
        refund = self.freeing(IN_JOURNAL, "refunded")
        with pytest.raises(ConnectionRefusedError):
            attempt(journal, refund, ("o-7", "owner"), run_id="owner")
        both = threading.Barrier(2, timeout=PATIENCE)
        arrivals = []

        def meet(point, number, name):
            if point == "before_intent":
                arrivals.append(threading.current_thread())
                if arrivals.count(threading.current_thread()) == 2:
                    both.wait()

        watch_points(meet)
        takers = [
            started_thread(lambda run=run: attempt(journal, refund, ("o-7", run), run_id=run))
            for run in ("one", "two")
        ]

        assert [taker.result(PATIENCE) for taker in takers] == [["refunded"]] * 2
        assert len(refund.ran) == 2


class TestRunsAtOnce:
    def test_two_runs_in_threads(self, journal):
        """Two runs of one process ask for one order at once: the later one waits for the earlier one's outcome."""
        began, finish = threading.Event(), threading.Event()

        def slowly(order, note):
            began.set()
            wait_for(finish)
            return "refunded"

        refund = Refund(slowly)

        owner = started_thread(lambda: attempt(journal, refund, ("o-7", "owner"), run_id="owner"))
        wait_for(began)
        waiter = started_thread(lambda: attempt(journal, refund, ("o-7", "waiter"), run_id="waiter"))
        while not any(run.run_id == "waiter" for run in journal.runs()):
            pass
        waits = not waiter.done()
        finish.set()

        assert [owner.result(PATIENCE), waiter.result(PATIENCE)] == [["refunded"]] * 2
        assert (waits, refund.ran) == (True, ["owner"])

    def test_many_runs_in_tasks(self, journal):
        """Twenty runs on one event loop, each an own job about the same order, make one refund."""
        refund = Refund(lambda order, note: asyncio.sleep(0.01, "refunded"), asynchronous=True)

        async def job(run_id):
            async with journal.run(run_id):
                return await refund.call("o-7", run_id)

        async def jobs():
            return await asyncio.gather(*(job(f"job-{number}") for number in range(20)))

        results = asyncio.run(asyncio.wait_for(jobs(), PATIENCE))

        assert (results, len(refund.ran)) == (["refunded"] * 20, 1)


def test_a_waiting_call_inside_another_step(journal):
    """A step that asks for a refund which another branch is making waits inside its own body."""
    began, finish = threading.Event(), threading.Event()

    def slowly(order, note):
        began.set()
        wait_for(finish)
        return "refunded"

    refund = Refund(slowly, policy=never(once_per=per_order))

    @journaled(replay=safe)
    def handle():
        return f"handled: {refund.call('o-7', 'inside')}"

    with journal.run("run"):
        owner = started_thread(lambda: refund.call("o-7", "owner"))
        wait_for(began)
        handler = started_thread(handle)
        finish.set()
        results = [owner.result(PATIENCE), handler.result(PATIENCE)]

    assert (results, refund.ran) == (["refunded", "handled: refunded"], ["owner"])
