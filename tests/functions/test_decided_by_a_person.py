"""A person decides what nothing else can tell: once, about one try, never about a call that is alive."""

import asyncio
import contextlib
import contextvars
import re
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from gnl_middleware import (
    Done,
    Failed,
    Journal,
    LeaseLostError,
    NotDone,
    RecordedError,
    ResolutionRefusedError,
    RetryLimitError,
    SideEffectRetryBlockedError,
    UnserializableValueError,
    keyed,
    never,
    safe,
)
from tests.functions.crashing import elsewhere
from tests.functions.scripted import (
    FOREVER,
    PATIENCE,
    RUN,
    Function,
    Killed,
    answering,
    attempt,
    cut_off_together,
    interrupted,
    only_step,
    run_status,
)

SHORT_LEASE = 0.5
DECISIONS = [pytest.param(Done("T-7"), id="happened"), pytest.param(NotDone(), id="not done")]


def blocked(journal, policy=never, *endings):
    """A function whose interrupted call has blocked its run."""
    pay = interrupted(journal, policy, *endings)
    with pytest.raises(SideEffectRetryBlockedError):
        attempt(journal, pay)
    return pay


def audit(path):
    """The decisions that the journal keeps, as rows of (decision, who, why)."""
    connection = sqlite3.connect(path)
    try:
        return connection.execute(
            "SELECT decision, decided_by, note FROM gnl_resolutions ORDER BY decided_at"
        ).fetchall()
    finally:
        connection.close()


class LaterClock:
    """The clock of another machine, by which every lease has run out."""

    def time(self):
        return 4e9

    def monotonic(self):
        return 4e9


def decide_later(path):
    """A person decides where the worker is given up for lost."""
    with Journal(path, clock=LaterClock()) as journal:
        journal.resolve(RUN, "pay", Done("decided"), by="ops")


class TestDecisions:
    def test_happened(self, journal):
        """`Done` gives the caller the value that the person gave, on every attempt; the body does not run."""
        pay = blocked(journal)

        journal.resolve(RUN, "pay", Done({"receipt": 7}), by="ops")

        assert [attempt(journal, pay) for _ in range(2)] == [[{"receipt": 7}]] * 2
        assert len(pay.ran) == 1

    def test_happened_without_a_result(self, journal):
        """`Done()` without a value gives the caller None."""
        pay = blocked(journal)

        journal.resolve(RUN, "pay", Done(), by="ops")

        assert attempt(journal, pay) == [None]

    def test_has_not_happened(self, journal):
        """`NotDone` lets the body run; what it returns is the result from then on."""
        pay = blocked(journal)

        journal.resolve(RUN, "pay", NotDone(), by="ops")

        assert [attempt(journal, pay) for _ in range(2)] == [["paid"]] * 2
        assert len(pay.ran) == 2

    def test_failed(self, journal):
        """`Failed` raises its text at the caller on every attempt; the body does not run."""
        pay = blocked(journal)

        journal.resolve(RUN, "pay", Failed("card expired"), by="ops")
        results = [attempt(journal, pay, catch=(RecordedError,))[0] for _ in range(2)]

        assert [(type(error), str(error)) for error in results] == [(RecordedError, "card expired")] * 2
        assert len(pay.ran) == 1

    def test_failed_and_not_caught(self, journal):
        """A decided failure stays decided, also where it ends the run each time."""
        pay = blocked(journal)
        journal.resolve(RUN, "pay", Failed("card expired"), by="ops")

        for _ in range(2):
            with pytest.raises(RecordedError, match="card expired"):
                attempt(journal, pay)

        assert len(pay.ran) == 1

    @pytest.mark.parametrize(
        "decision", [Done("T-7"), NotDone(), Failed("no")], ids=["done", "not done", "failed"]
    )
    def test_run_goes_on(self, journal, decision):
        """After the decision the same code completes, and nothing is listed as blocked."""
        pay, refund = blocked(journal), Function(never, "refunded", name="refund")

        step = journal.resolve(RUN, "pay", decision, by="ops")
        results = attempt(journal, pay, refund, catch=(RecordedError,))

        assert (step.key, step.blocked) == (only_step(journal).key, None)
        assert (results[1], run_status(journal), journal.runs(status="blocked")) == (
            "refunded",
            "completed",
            [],
        )

    def test_decision_before_anybody_tried_again(self, journal):
        """A call that a crash interrupted can be decided at once, before a retry has blocked on it."""
        pay = interrupted(journal, never)

        journal.resolve(RUN, "pay", Done("T-7"), by="ops")

        assert attempt(journal, pay) == ["T-7"]

    @pytest.mark.parametrize("policy", [safe, keyed], ids=["safe", "keyed"])
    def test_decision_about_a_call_that_may_run_again(self, journal, policy):
        """An interrupted call of any label can be decided; then it does not run again."""
        pay = interrupted(journal, policy)

        journal.resolve(RUN, "pay", Done("T-7"), by="ops")

        assert (attempt(journal, pay), len(pay.ran)) == (["T-7"], 1)

    def test_result_must_be_plain_data(self, journal):
        """A result that cannot be journalled is refused, and nothing is changed."""
        blocked(journal)

        with pytest.raises(UnserializableValueError):
            journal.resolve(RUN, "pay", Done(object()), by="ops")

        assert only_step(journal).status == "started"
        assert audit(journal.url.removeprefix("sqlite:///")) == []


class TestNaming:
    @pytest.mark.parametrize("name", ["key", "number", "number as text", "tool"])
    def test_step_is_named_by_key_number_or_tool(self, journal, name):
        """A step is named by its key, its number, or its tool."""
        pay = blocked(journal)
        step = only_step(journal)
        names = {"key": step.key, "number": step.number, "number as text": str(step.number), "tool": "pay"}

        journal.resolve(RUN, names[name], Done("T-7"), by="ops")

        assert attempt(journal, pay) == ["T-7"]

    def test_ambiguous_name_lists_the_steps(self, journal):
        """A tool's name that fits several waiting steps is refused, and the refusal lists them; a key still works."""
        pay, other = (Function(never, FOREVER, asynchronous=True) for _ in range(2))
        cut_off_together(journal, pay, other)
        keys = {step.key for step in journal.steps(RUN)}

        with pytest.raises(ResolutionRefusedError) as refused:
            journal.resolve(RUN, "pay", NotDone(), by="ops")

        assert len(keys) == 2
        assert all(key in refused.value.reason for key in keys)
        assert journal.resolve(RUN, min(keys), NotDone(), by="ops").key == min(keys)

    def test_name_means_the_one_that_still_waits(self, journal):
        """Of two steps of one tool, the name means the one that is not decided yet."""
        functions = [Function(never, FOREVER, asynchronous=True) for _ in range(2)]
        cut_off_together(journal, *functions)
        first, second = (step.key for step in journal.steps(RUN))
        journal.resolve(RUN, first, NotDone(), by="ops")

        step = journal.resolve(RUN, "pay", Done("T-7"), by="ops")

        assert step.key == second

    @pytest.mark.parametrize("name", ["nobody", 99, "", "pay/0/1"])
    def test_unknown_step_is_refused(self, journal, name):
        """A step that does not exist is refused, with a list of those that wait."""
        blocked(journal)

        with pytest.raises(ResolutionRefusedError, match=re.escape("1 (pay)")) as refused:
            journal.resolve(RUN, name, NotDone(), by="ops")

        assert (refused.value.run_id, refused.value.step) == (RUN, str(name))

    def test_unknown_run_is_refused(self, journal):
        """A run that does not exist has no step that waits."""
        with pytest.raises(ResolutionRefusedError):
            journal.resolve("order-8", "pay", NotDone(), by="ops")


class TestRefusals:
    def test_finished_step(self, journal):
        """A step that is done does not wait for a decision."""
        attempt(journal, Function(never, "paid"))

        with pytest.raises(ResolutionRefusedError):
            journal.resolve(RUN, 1, NotDone(), by="ops")

        assert only_step(journal).value == "paid"

    def test_handled_error(self, journal):
        """A failure that the program went on from is history: deciding it anew would change what was answered to it."""
        pay = Function(safe, ValueError("no"))
        attempt(journal, pay, Function(safe, "later", name="later"), catch=(ValueError,))

        with pytest.raises(ResolutionRefusedError):
            journal.resolve(RUN, "pay", Done("T-7"), by="ops")

        assert only_step(journal).status == "failed"

    @pytest.mark.parametrize("second", DECISIONS)
    @pytest.mark.parametrize("first", DECISIONS)
    def test_first_decision_wins(self, journal, first, second):
        """A second decision about the same try is refused and changes nothing."""
        pay = blocked(journal)
        journal.resolve(RUN, 1, first, by="ops")

        with pytest.raises(ResolutionRefusedError):
            journal.resolve(RUN, 1, second, by="somebody else")

        assert attempt(journal, pay) == ["T-7" if isinstance(first, Done) else "paid"]
        assert [who for _, who, _ in audit(journal.url.removeprefix("sqlite:///"))] == ["ops"]

    def test_one_of_many_at_once_wins(self, journal):
        """Of many who decide at the same moment exactly one wins, and its decision is the one that holds."""
        pay = blocked(journal)
        start = threading.Barrier(8)

        def decide(number):
            start.wait(PATIENCE)
            try:
                journal.resolve(RUN, 1, Done(number), by=f"person {number}")
            except ResolutionRefusedError:
                return None
            return number

        with ThreadPoolExecutor(8) as people:
            winners = [number for number in people.map(decide, range(8)) if number is not None]

        assert attempt(journal, pay) == winners
        assert [who for _, who, _ in audit(journal.url.removeprefix("sqlite:///"))] == [
            f"person {winners[0]}"
        ]

    def test_live_call(self, journal):
        """A call that is still running is not decided, not even from another process."""
        started, go = threading.Event(), threading.Event()

        def body():
            started.set()
            go.wait(PATIENCE)
            return "paid"

        pay = Function(never, None)
        pay._play = lambda _: body()
        with journal.run(RUN), ThreadPoolExecutor(1) as pool:
            running = pool.submit(contextvars.copy_context().run, pay.call)
            started.wait(PATIENCE)
            with pytest.raises(ResolutionRefusedError, match="running"):
                journal.resolve(RUN, "pay", NotDone(), by="ops")
            go.set()
            result = running.result(PATIENCE)

        assert (result, only_step(journal).value) == ("paid", "paid")


class TestOneTry:
    """A decision is about one try, and nothing that this try does later undoes it."""

    def test_next_try_needs_a_decision_of_its_own(self, journal):
        """A try that begins after `NotDone` and is interrupted again blocks again, and can be decided again."""
        pay = blocked(journal, never, Killed())
        journal.resolve(RUN, "pay", NotDone(), by="ops", note="looked at 9")
        with pytest.raises(Killed):
            attempt(journal, pay)
        with pytest.raises(SideEffectRetryBlockedError):
            attempt(journal, pay)

        journal.resolve(RUN, "pay", Done("T-7"), by="boss", note="looked at 10")

        assert attempt(journal, pay) == ["T-7"]
        assert audit(journal.url.removeprefix("sqlite:///")) == [
            ("not_done", "ops", "looked at 9"),
            ("happened", "boss", "looked at 10"),
        ]

    def test_outcome_of_a_worker_given_up_for_lost(self, journal, tmp_path):
        """A worker whose lease ran out, and whose call was decided, cannot overwrite it, and is told."""
        started, go = threading.Event(), threading.Event()

        pay = Function(never, None)
        pay._play = lambda _: (started.set(), go.wait(PATIENCE), "paid")[-1]

        def work():
            with journal.run(RUN, lease=SHORT_LEASE):
                return pay.call()

        with ThreadPoolExecutor(1) as pool:
            running = pool.submit(work)
            started.wait(PATIENCE)
            elsewhere(decide_later, tmp_path / "runs.db")
            go.set()
            error = running.exception(PATIENCE)

        assert isinstance(error, LeaseLostError)
        assert (only_step(journal).value, only_step(journal).resolution) == ("decided", "happened")
        assert attempt(journal, pay, on_busy="wait") == ["decided"]

    def test_decision_goes_before_an_answer_that_comes_later(self, journal):
        """A decision that arrives while the next attempt is about to ask `recover` holds against the answer."""
        pay = interrupted(journal, never(recover=answering(Done("found"), awaited=False)))

        with journal.run(RUN):
            journal.resolve(RUN, "pay", Failed("a person said no"), by="ops")
            with pytest.raises(RecordedError, match="a person said no"):
                pay.call()

        assert only_step(journal).resolution == "failed"

    def test_decision_while_the_next_attempt_is_open(self, journal):
        """A decision that arrives while the next attempt is open lets the one after that go on, whatever became of it."""
        pay = interrupted(journal, never)

        with contextlib.suppress(SideEffectRetryBlockedError), journal.run(RUN):
            journal.resolve(RUN, "pay", NotDone(), by="ops")
            pay.call()

        assert attempt(journal, pay) == ["paid"]
        assert len(pay.ran) == 2


def test_step_at_its_limit_can_be_decided(journal):
    """A step that used up its tries is decided with the command that its error names."""
    policy = never(not_performed=(ConnectionRefusedError,), max_attempts=1)
    pay = Function(policy, ConnectionRefusedError("refused"))
    with pytest.raises(ConnectionRefusedError):
        attempt(journal, pay)
    with pytest.raises(RetryLimitError, match=r"gnl resolve .*--failed"):
        attempt(journal, pay)

    journal.resolve(RUN, "pay", Failed("gave up"), by="ops")

    assert str(attempt(journal, pay, catch=(RecordedError,))[0]) == "gave up"


def test_decision_is_seen_by_asynchronous_code(journal):
    """A decision counts the same for coroutine functions."""
    pay = interrupted(journal, never, asynchronous=True)
    journal.resolve(RUN, "pay", Done("T-7"), by="ops")

    async def main():
        async with journal.run(RUN):
            return await pay.call()

    assert asyncio.run(main()) == "T-7"
