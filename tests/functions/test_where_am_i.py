"""`current_run()` and `current_step()`: right in threads, tasks and nested steps, and nothing outside."""

import asyncio
import contextvars
import functools
import threading

import pytest

from gnl_middleware import GnlError, NoActiveRunError, current_run, current_step, journaled, never, safe
from tests.functions.scripted import PATIENCE, RUN, Function, Killed, attempt, only_step, run_async


@journaled(replay=safe)
def where(name):
    """Where this body runs: run, step, name, tries."""
    step = current_step()
    return [current_run().run_id, step.run_id, step.key, step.name, step.attempts]


@journaled(replay=safe)
async def where_async(name):
    """Where this coroutine's body runs."""
    await asyncio.sleep(0)
    return current_step().key


def step_name():
    """The current step's name, or None where there is no step."""
    try:
        return current_step().name
    except NoActiveRunError:
        return None


def test_outside_there_is_nothing():
    """Outside any run there is no run, and asking for the step is an error."""
    assert current_run() is None
    with pytest.raises(NoActiveRunError):
        current_step()


def test_inside_a_run_and_a_step(journal):
    """Inside a run its handle is the current run; inside a body, the step is the current step."""
    with journal.run(RUN) as run:
        outside = current_run() is run, step_name()
        inside = where("here")

    step = only_step(journal, "where")
    assert outside == (True, None)
    assert inside == [RUN, RUN, step.key, "where", 1]
    assert (current_run(), step_name()) == (None, None)


def test_nested_steps(journal):
    """In nested bodies the innermost step is the current one, and afterwards the one around it again."""
    keys = []

    @journaled(replay=safe)
    def outer():
        keys.append(current_step().key)
        inner = where("inside")[2]
        keys.append(current_step().key)
        return inner

    with journal.run(RUN):
        inner = outer()

    assert keys == [only_step(journal, "outer").key] * 2
    assert inner == only_step(journal, "where").key != keys[0]


def test_nested_runs(journal):
    """A run opened inside another one is the current one until it is left; steps of the outer one are not its own."""
    seen = []

    @journaled(replay=safe)
    def outer():
        with journal.run("order-8") as inner_run:
            seen.append((current_run() is inner_run, step_name()))
            where("inner")
        seen.append((current_run().run_id, step_name()))

    with journal.run(RUN):
        outer()

    assert seen == [(True, None), (RUN, "outer")]
    assert [step.scope for step in journal.steps("order-8")] == [""]


def test_after_an_error(journal):
    """A run that was left by an error is not the current one any more."""
    with pytest.raises(Killed), journal.run(RUN):
        raise Killed

    assert current_run() is None


def test_tasks(journal):
    """Concurrent tasks each see their own step, whatever order they take turns in."""

    async def program():
        async with journal.run(RUN):
            return await asyncio.gather(*(where_async(number) for number in range(20)))

    keys = run_async(program())

    by_argument = {step.arguments["name"]: step.key for step in journal.steps(RUN)}
    assert keys == [by_argument[number] for number in range(20)]


def test_executor_threads(journal):
    """A thread that copied the context is inside the run and the step that started it."""

    @journaled(replay=safe)
    async def outer():
        return await asyncio.to_thread(lambda: (current_run().run_id, current_step().key, where("thread")[2]))

    async def program():
        async with journal.run(RUN):
            return await outer()

    run_id, outer_key, inner_key = run_async(program())

    assert (run_id, outer_key, inner_key) == (
        RUN,
        only_step(journal, "outer").key,
        only_step(journal, "where").key,
    )
    assert only_step(journal, "where").scope == f"{outer_key}/"


def in_thread(function):
    """Run a function in a thread of its own; gives what it returned or raised."""
    results = []

    def work():
        try:
            results.append(function())
        except GnlError as error:
            results.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(PATIENCE)
    return results[0]


def test_thread_without_the_context(journal):
    """A thread that did not copy the context is outside: a journalled call there is an error, never unrecorded."""
    with journal.run(RUN):
        result = in_thread(lambda: where("nowhere"))
        copied = in_thread(functools.partial(contextvars.copy_context().run, where, "here"))

    assert isinstance(result, NoActiveRunError)
    assert result.name == "where"
    assert copied[0] == RUN


def test_outside_any_run(journal):
    """Outside any run a journalled function does not run; the error shows how to open one."""
    pay = Function(never, "paid")

    with pytest.raises(NoActiveRunError, match=r"pay is journalled.*\n.*\.run\("):
        pay.call()

    assert pay.ran == []


def test_outside_any_run_where_passing_through_is_meant(journal):
    """With `on_no_run="passthrough"` a function works outside runs, and is journalled inside."""
    ran = []
    pay = journaled(lambda: ran.append(1) or len(ran), replay=never, name="pay", on_no_run="passthrough")

    outside = pay(), pay()
    with journal.run(RUN):
        first = pay()
    with journal.run(RUN):
        again = pay()

    assert (outside, first, again) == ((1, 2), 3, 3)


def test_asynchronous_function_outside_any_run():
    """The same holds for coroutine functions."""

    async def program():
        await where_async("nowhere")

    with pytest.raises(NoActiveRunError):
        run_async(program())


@pytest.mark.parametrize("policy", [safe, never], ids=["safe", "never"])
def test_after_the_run_was_left(journal, policy):
    """Code that outlives its run starts nothing more in it: the lease was given back."""
    pay = Function(policy, "paid")
    with journal.run(RUN):
        context = contextvars.copy_context()

    with pytest.raises(GnlError):
        context.run(pay.call)

    assert (pay.ran, journal.steps(RUN)) == ([], [])


def test_handle_after_the_run_was_left(journal):
    """The handle of a run that was left makes no more values, but still tells what was done."""
    with journal.run(RUN) as run:
        run.random()

    with pytest.raises(GnlError):
        run.random()

    assert (run.run_id, run.attempt, run.steps_ran) == (RUN, 1, 1)


def test_handle_is_used_once(journal):
    """A handle opens one attempt; the next one takes a new handle, and says so."""
    run = journal.run(RUN)
    with run:
        pass

    with pytest.raises(RuntimeError, match=r"journal\.run\(\)"), run:
        pass


def test_handle_before_it_is_entered(journal):
    """A run that was not entered records nothing, and says how to enter it."""
    run = journal.run(RUN)

    with pytest.raises(RuntimeError, match=r"with journal\.run"):
        run.now()

    assert journal.runs() == []


def test_idempotency_key_is_the_same_on_every_attempt(journal):
    """The current step's idempotency key is the same on each try and different for each step and run."""
    keys = []
    endings = [Killed(), "paid", "paid", "paid"]

    @journaled(replay=safe)
    def pay():
        keys.append((current_step().idempotency_key, current_step().attempts))
        if isinstance(ending := endings.pop(0), Killed):
            raise ending
        return ending

    twice = Function(safe, None)
    twice.call = pay
    with pytest.raises(Killed):
        attempt(journal, twice)
    attempt(journal, twice, twice)
    with journal.run("order-8"):
        pay()

    assert [tries for _, tries in keys] == [1, 2, 1, 1]
    assert keys[0][0] == keys[1][0]
    assert len({key for key, _ in keys}) == 3
