"""What stops a run cannot be swallowed: every later call and the end of the run raise it again."""

import asyncio
import contextlib

import pytest

from gnl_middleware import (
    GnlError,
    RecordedError,
    SideEffectRetryBlockedError,
    UnserializableValueError,
    journaled,
    never,
    safe,
)
from tests.functions.scripted import (
    RUN,
    Function,
    Killed,
    attempt,
    interrupted,
    only_step,
    run_async,
    run_status,
)

LABELS = [pytest.param(safe, id="safe"), pytest.param(never, id="never")]


@pytest.fixture
def pay(journal):
    """A function whose interrupted call blocks the run."""
    return interrupted(journal, never)


@pytest.mark.parametrize("policy", LABELS)
def test_body_that_swallows_is_not_recorded_as_done(journal, policy):
    """A body that turned the error into a value is not done: its value is given to nobody and recorded nowhere."""
    stopping = Function(safe, object(), name="stopping")
    seen = []

    @journaled(replay=policy)
    def outer():
        with contextlib.suppress(Exception):
            stopping.call()
        return "all is well"

    with pytest.raises(UnserializableValueError), journal.run(RUN):
        seen.append(outer())

    assert seen == []
    assert (only_step(journal, "outer").status, only_step(journal, "outer").value) == ("started", None)


@pytest.mark.parametrize("policy", LABELS)
def test_body_that_translates_is_not_recorded_as_failed(journal, policy):
    """A body that turned the error into one of its own has not failed: the error itself comes out, and is what counts."""
    stopping = Function(safe, object(), name="stopping")
    seen = []

    @journaled(replay=policy)
    def outer():
        try:
            stopping.call()
        except Exception as error:
            raise ValueError(f"tool failed: {error}") from error

    def program():
        with journal.run(RUN):
            try:
                outer()
            except Exception as error:
                seen.append(type(error))
                raise

    with pytest.raises(UnserializableValueError):
        program()

    assert seen == [UnserializableValueError]
    assert (only_step(journal, "outer").status, only_step(journal, "outer").error) == ("started", None)


def test_asynchronous_body_that_swallows(journal, pay):
    """The same holds for coroutines."""

    @journaled(replay=safe)
    async def outer():
        with contextlib.suppress(Exception):
            pay.call()
        return "all is well"

    async def main():
        async with journal.run(RUN):
            return await outer()

    with pytest.raises(SideEffectRetryBlockedError):
        run_async(main())

    assert only_step(journal, "outer").status == "started"


def test_next_call_raises_it_again(journal, pay):
    """After the error was swallowed, the next call of any kind raises it before it does anything."""
    later = Function(safe, "later", name="later")
    raised = []

    def program():
        with journal.run(RUN) as run:
            for call in (pay.call, later.call, run.now, lambda: run.value("x", dict)):
                try:
                    call()
                except GnlError as error:
                    raised.append(error)

    with pytest.raises(SideEffectRetryBlockedError):
        program()

    assert [type(error) for error in raised] == [SideEffectRetryBlockedError] * 4
    assert len({error.step_key for error in raised}) == 1
    assert later.ran == []
    assert {step.name for step in journal.steps(RUN)} == {"pay"}


def test_recorded_step_raises_it_too(journal):
    """Also a call that would only be read back raises the error: nothing goes on after it."""
    early = Function(safe, "early", name="early")
    pay = Function(never, Killed())
    with pytest.raises(Killed):
        attempt(journal, early, pay)

    with pytest.raises(SideEffectRetryBlockedError):
        attempt(journal, pay, early, catch=(SideEffectRetryBlockedError,))

    assert len(early.ran) == 1


@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
def test_leaving_the_run_raises_it(journal, asynchronous):
    """A program that swallowed the error does not complete: leaving the run raises it."""
    pay = interrupted(journal, never, asynchronous=asynchronous)

    with pytest.raises(SideEffectRetryBlockedError):
        attempt(journal, pay, catch=(Exception,), asynchronous=asynchronous)

    assert run_status(journal) == "blocked"


def test_error_of_the_program_gives_way(journal, pay):
    """A program that failed because of the error ends with the error itself; what it made of it is kept as the cause."""

    def program():
        with journal.run(RUN):
            try:
                pay.call()
            except SideEffectRetryBlockedError as error:
                raise ValueError("something went wrong") from error

    with pytest.raises(SideEffectRetryBlockedError) as caught:
        program()

    assert isinstance(caught.value.__cause__ or caught.value.__context__, ValueError)
    assert run_status(journal) == "blocked"


def test_first_error_is_the_one_that_counts(journal, pay):
    """Of several errors the first one is raised again: it is the reason why the run stopped."""
    unreadable = Function(safe, object(), name="unreadable")

    with pytest.raises(SideEffectRetryBlockedError) as caught:
        attempt(journal, pay, unreadable, catch=(GnlError,))

    assert caught.value.tool == "pay"


def test_later_error_of_a_sibling_does_not_take_its_place(journal, pay):
    """An error of a call that was running already when the run stopped does not hide why it stopped."""

    async def main():
        async with journal.run(RUN):
            stopped = asyncio.Event()

            @journaled(replay=safe)
            async def slow():
                await stopped.wait()
                return object()

            async def stop():
                with contextlib.suppress(GnlError):
                    pay.call()
                stopped.set()

            return await asyncio.gather(slow(), stop(), return_exceptions=True)

    with pytest.raises(SideEffectRetryBlockedError):
        run_async(main())

    assert run_status(journal) == "blocked"


def test_outcomes_of_siblings_are_recorded(journal, pay):
    """A concurrent call that was running when the run stopped ends as it would have, and its outcome is recorded."""

    async def main():
        async with journal.run(RUN):
            stopped = asyncio.Event()

            @journaled(replay=safe)
            async def slow():
                await stopped.wait()
                return "slow"

            async def stop():
                try:
                    pay.call()
                finally:
                    stopped.set()

            return await asyncio.gather(slow(), stop())

    with pytest.raises(SideEffectRetryBlockedError):
        run_async(main())

    assert (only_step(journal, "slow").status, only_step(journal, "slow").value) == ("done", "slow")


def test_next_attempt_starts_afresh(journal, pay):
    """The error stops one attempt: the next one starts without it."""
    with pytest.raises(SideEffectRetryBlockedError):
        attempt(journal, pay)

    results = attempt(
        journal, Function(safe, "looked", name="look"), Function(never(on_interrupted="tell_model"), "x")
    )

    assert results[0] == "looked"
    assert "may or may not have happened" in results[1]


def test_other_runs_are_not_stopped(journal, pay):
    """The error of one run stops no other run of the same journal."""

    def program():
        with journal.run(RUN):
            with contextlib.suppress(GnlError):
                pay.call()
            with journal.run("order-8"):
                others.append(Function(never, "paid").call())

    others = []
    with pytest.raises(SideEffectRetryBlockedError):
        program()

    assert others == ["paid"]


def test_recorded_error_is_no_stop(journal):
    """A recorded error of the program reaches it as the original did, and stops nothing."""

    class OutOfStockError(Exception):
        pass

    pay = Function(never, OutOfStockError("order 7"))
    later = Function(safe, "later", name="later")
    caught = (OutOfStockError, RecordedError)
    attempt(journal, pay, later, catch=caught)

    results = attempt(journal, pay, later, catch=caught)

    assert (type(results[0]), results[1], run_status(journal)) == (RecordedError, "later", "completed")


def test_enclosing_body_may_end_by_a_recorded_error(journal):
    """A recorded error that leaves an enclosing body is an ordinary failure of it."""
    inner = Function(never, ValueError("no"), name="inner")
    outer = journaled(inner.call, replay=safe, name="outer")

    with pytest.raises(ValueError, match="no"), journal.run(RUN):
        outer()

    assert only_step(journal, "outer").status == "failed"


def test_killed_program_is_not_held_up(journal, pay):
    """A program that is killed while the error is pending dies as killed; the error does not take its place."""

    def program():
        with journal.run(RUN):
            with contextlib.suppress(GnlError):
                pay.call()
            raise Killed

    with pytest.raises(Killed):
        program()
