"""The n-th call of its kind: equal calls that were both meant are two steps, calling again is not a new one."""

import asyncio
import contextvars
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import tenacity

from gnl_middleware import (
    Done,
    NotDone,
    RetryLimitError,
    SideEffectRetryBlockedError,
    current_step,
    journaled,
    keyed,
    never,
    safe,
)
from tests.functions.scripted import RUN, Function, Killed, attempt, run_async

LABELS = [pytest.param(policy, id=policy.label) for policy in (safe, keyed, never)]
PATIENCE = 30  # seconds after which a test that hangs fails
retry_five_times = tenacity.Retrying(stop=tenacity.stop_after_attempt(5), reraise=True)


def steps_named(journal, name):
    return [step for step in journal.steps(RUN) if step.name == name]


@pytest.mark.parametrize("policy", LABELS)
def test_equal_calls_that_were_both_meant_are_two_steps(journal, policy):
    """Calling a function twice with the same arguments runs it twice, and a replay gives each call its own value."""
    pay = Function(policy, "first", "second")

    results = attempt(journal, pay, pay)
    replayed = attempt(journal, pay, pay)

    assert results == replayed == ["first", "second"]
    assert len(pay.ran) == len(steps_named(journal, "pay")) == 2


def test_arguments_count_as_they_bind(journal):
    """Arguments spelled by position, by keyword or left to their default are the same call."""
    ran = []

    @journaled(replay=safe)
    def mail(to, *, subject="hello"):
        ran.append((to, subject))

    with journal.run(RUN):
        mail("a", subject="hello")
    with journal.run(RUN):
        mail(to="a")

    assert ran == [("a", "hello")]
    assert [step.arguments for step in steps_named(journal, "mail")] == [{"to": "a", "subject": "hello"}]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, 1.0),
        (1, True),
        (0.0, -0.0),
        (2**53, 2**53 + 1),
        ([1, 2], [2, 1]),
        ("\u00e9", "e\u0301"),
        ((1,), [1]),
    ],
    ids=repr,
)
def test_arguments_that_differ_in_any_way_are_other_calls(journal, one, other):
    """Arguments that a program can tell apart are never served each other's record."""
    echo = journaled(repr, replay=safe, name="echo")

    with journal.run(RUN):
        recorded = echo(one)
    with journal.run(RUN) as run:
        replayed = echo(other), echo(one)

    assert replayed == (repr(other), recorded)
    assert run.steps_read_back == 1


def test_order_of_keys_in_arguments_does_not_matter(journal):
    """Dictionaries that differ in the order of their keys only are the same argument."""
    send = journaled(lambda message: sorted(message), replay=safe, name="send")  # noqa: PLW0108 - a signature of its own

    with journal.run(RUN):
        send({"to": "a", "subject": "b"})
    with journal.run(RUN) as run:
        send({"subject": "b", "to": "a"})

    assert run.steps_ran == 0


def test_retry_loop_around_never_runs_the_body_once(journal):
    """A retry loop around a `never` function that failed does not repeat it: the call is blocked, not run again."""
    pay = Function(never, TimeoutError("no answer"), "paid")

    with pytest.raises(SideEffectRetryBlockedError), journal.run(RUN):
        retry_five_times(pay.call)

    (step,) = steps_named(journal, "pay")
    assert pay.ran == ["o-7"]
    assert (step.status, step.attempts, step.blocked is not None) == ("failed", 1, True)


def test_retry_loop_around_never_with_recover_settles(journal):
    """A retry loop around a `never` function gets what `recover` found out, and the body ran once."""
    asked = []
    pay = Function(
        never(recover=lambda call: asked.append(call.error) or Done("found")), TimeoutError("no answer")
    )

    with journal.run(RUN):
        result = retry_five_times(pay.call)

    assert (result, pay.ran, asked) == ("found", ["o-7"], ["TimeoutError: no answer"])


@pytest.mark.parametrize("policy", [pytest.param(safe, id="safe"), pytest.param(keyed, id="keyed")])
def test_retry_loop_around_others_tries_one_step_again(journal, policy):
    """A retry loop around a `safe` or `keyed` function tries the same step again, each time with the same key."""
    keys = []

    @journaled(replay=policy)
    def pay():
        keys.append(current_step().idempotency_key)
        if len(keys) < 3:
            raise TimeoutError
        return "paid"

    with journal.run(RUN):
        result = retry_five_times(pay)

    (step,) = steps_named(journal, "pay")
    assert (result, step.status, step.attempts) == ("paid", "done", 3)
    assert len(keys) == 3
    assert len(set(keys)) == 1


def test_retry_loop_longer_than_the_limit_ends(journal):
    """A retry loop cannot try a step more often than its policy allows."""
    pay = Function(safe(max_attempts=3), TimeoutError("no answer"))

    with pytest.raises(RetryLimitError) as caught, journal.run(RUN):
        retry_five_times(pay.call)

    assert (len(pay.ran), caught.value.attempts) == (3, 3)


@pytest.mark.parametrize("policy", LABELS)
def test_call_after_a_handled_failure_is_a_new_one(journal, policy):
    """After a failure that the program went on from, the same call is meant anew: a step of its own."""
    pay = Function(policy, TimeoutError("no answer"), "paid")
    log = Function(safe, "logged", name="log")

    results = attempt(journal, pay, log, pay, catch=(TimeoutError,))
    replayed = attempt(journal, pay, log, pay, catch=(TimeoutError,))

    assert results[1:] == replayed[1:] == ["logged", "paid"]
    assert [str(results[0]), str(replayed[0])] == ["no answer"] * 2
    assert len(pay.ran) == len(steps_named(journal, "pay")) == 2


@pytest.mark.parametrize("policy", LABELS)
def test_equal_calls_at_once_are_two_steps(journal, policy):
    """Two equal calls that run at the same time are both meant: two steps, each read back once."""
    endings = iter(["first", "second"])
    both_run = asyncio.Barrier(2)

    @journaled(replay=policy)
    async def pay():
        await both_run.wait()
        return next(endings)

    async def pay_twice():
        async with journal.run(RUN) as run:
            return sorted(await asyncio.gather(pay(), pay())), run.steps_ran

    assert run_async(pay_twice()) == (["first", "second"], 2)
    assert run_async(pay_twice()) == (["first", "second"], 0)


def test_equal_calls_from_threads_are_two_steps(journal, watch_points):
    """Two equal calls from two threads are two steps, also where the first one has not written its intent yet."""
    pay = Function(safe, "first", "second")
    first_is_on_its_way, second_is_over = threading.Event(), threading.Event()

    def hold_the_first(point, number, name):
        if point == "before_intent" and not first_is_on_its_way.is_set():
            first_is_on_its_way.set()
            second_is_over.wait(PATIENCE)

    watch_points(hold_the_first)
    with journal.run(RUN), ThreadPoolExecutor(1) as pool:
        first = pool.submit(contextvars.copy_context().run, pay.call)
        first_is_on_its_way.wait(PATIENCE)
        second = pay.call()
        second_is_over.set()
        results = {first.result(PATIENCE), second}

    assert results == {"first", "second"}
    assert len(pay.ran) == 2


@pytest.mark.parametrize("happened", [True, False])
def test_equal_interrupted_calls_are_settled_one_by_one(journal, happened):
    """Two equal calls at once that were interrupted are two steps on the retry, too: each is asked about, and served."""
    asked = []

    async def recover(call):
        asked.append(call.step_key)
        await asyncio.sleep(0)
        return Done(call.step_key) if happened else NotDone()

    both_run = asyncio.Barrier(3)
    endings = [asyncio.Event().wait, asyncio.Event().wait]

    async def body():
        if endings:
            ending = endings.pop()
            await both_run.wait()
            await ending()
        return current_step().key

    # A name of its own: hooks are known by name, and are not asked while several disagree.
    body.__name__ = f"pay_{happened}"
    pay = journaled(never(recover=recover)(body))

    async def interrupt_both():
        async with journal.run(RUN):
            calls = [asyncio.ensure_future(pay()) for _ in range(2)]
            await both_run.wait()
            for call in calls:
                call.cancel()
            await asyncio.gather(*calls, return_exceptions=True)
            raise Killed

    async def pay_twice():
        async with journal.run(RUN):
            return await asyncio.gather(pay(), pay())

    with pytest.raises(Killed):
        run_async(interrupt_both())
    results = run_async(pay_twice())

    assert sorted(results) == sorted(asked) == sorted(step.key for step in journal.steps(RUN))
    assert len(set(results)) == 2


def test_values_are_counted_by_name(journal):
    """The n-th value of a name is always the same, whatever is drawn under other names in between."""
    with journal.run(RUN) as run:
        recorded = run.random(), run.uuid4(), run.random()

    with journal.run(RUN) as run:
        replayed = run.random(), run.random(), run.uuid4()

    assert replayed == (recorded[0], recorded[2], recorded[1])
    assert recorded[0] != recorded[2]


def test_interrupted_call_is_the_first_of_its_kind_on_the_retry(journal):
    """A second process counts from the record alone: the interrupted call is tried again, not doubled."""
    pay = Function(safe, "first", Killed(), "second")

    with pytest.raises(Killed):
        attempt(journal, pay, pay)
    results = attempt(journal, pay, pay)

    assert results == ["first", "second"]
    assert [step.attempts for step in steps_named(journal, "pay")] == [1, 2]
