"""Errors: a handled one replays as it was, one that ended the run is reopened."""

import asyncio
import json
from pathlib import Path

import pytest

from gnl_middleware import RecordedError, current_run, journaled, keyed, never, safe
from tests.functions.scripted import RUN, Function, Killed, attempt, only_step, run_status

LABELS = [pytest.param(policy, id=policy.label) for policy in (safe, keyed, never)]
LATER = Function(safe, "later", name="later")


class OutOfStockError(Exception):
    """An error of the program, plain."""


class RejectedError(Exception):
    """An error of the program whose constructor wants other arguments than it keeps."""

    def __init__(self, *, code, reason):
        super().__init__(f"{code}: {reason}")
        self.code = code


def caught_twice(journal, body, *, policy=safe):
    """The error that the program caught when the body ran, and the one that it caught from the record."""
    call = journaled(body, replay=policy, name="pay")
    caught = []
    for _ in range(2):
        with journal.run(RUN):
            try:
                call()
            except Exception as error:  # noqa: BLE001 - whatever the program would see
                caught.append(error)
            LATER.call()
    live, replayed = caught
    return live, replayed


def raising(error):
    """A body that raises the error."""

    def body():
        raise error

    return body


BUILT_IN = {
    "plain": raising(ValueError("no such order")),
    "without text": raising(TimeoutError()),
    "several arguments": raising(RuntimeError("order", 7, {"open": True})),
    "key": raising(KeyError("order-7")),
    "missing file": lambda: Path("/no/such/file").read_text(encoding="utf-8"),
    "renamed file": lambda: Path("/no/such/file").rename("/no/other/file"),
    "refused": raising(ConnectionRefusedError(111, "refused")),
    "text in bytes": lambda: b"\xff".decode("utf-8"),
    "text to bytes": "\ud800".encode,
    "division": lambda: 1 / 0,
    "unencodable argument": raising(ValueError(object)),
    "end of an iterator": lambda: next(iter(())),
    "lone surrogate": raising(ValueError("\ud800 and \x00")),
}


@pytest.mark.parametrize("body", BUILT_IN.values(), ids=BUILT_IN)
def test_built_in_error_replays_as_itself(journal, body):
    """A handled error of a built-in type reaches the program from the record as the same type with the same text."""
    live, replayed = caught_twice(journal, body)

    assert type(live).__module__ == "builtins"
    assert (type(replayed), str(replayed)) == (type(live), str(live))


def test_file_error_keeps_its_facts(journal):
    """What a program reads from a built-in error of the system is there on replay, too."""
    live, replayed = caught_twice(journal, BUILT_IN["missing file"])

    facts = [(error.errno, error.strerror, error.filename) for error in (live, replayed)]

    assert facts[0] == facts[1]


def test_error_reaches_the_caller_untouched(journal):
    """The error that a body raises is the very object that its caller catches."""
    error = StopIteration("end")
    pay = Function(safe, error)

    with journal.run(RUN):
        with pytest.raises(StopIteration) as caught:
            pay.call()
        LATER.call()

    assert caught.value is error


def test_listed_error_replays_as_itself(journal):
    """A handled error of a class that the policy lists replays as that class."""

    def body():
        raise OutOfStockError("order", 7)

    _, replayed = caught_twice(journal, body, policy=safe(errors=(OutOfStockError,)))

    assert (type(replayed), replayed.args) == (OutOfStockError, ("order", 7))


def test_listed_error_with_a_constructor_of_its_own(journal):
    """A listed class replays as itself with its text and attributes, whatever its constructor wants."""

    def body():
        raise RejectedError(code=402, reason="no money")

    _, replayed = caught_twice(journal, body, policy=safe(errors=(RejectedError,)))

    assert type(replayed) is RejectedError
    assert (str(replayed), replayed.code) == ("402: no money", 402)


def test_other_error_replays_as_recorded_error(journal):
    """A handled error of any other class replays as RecordedError with its name and text."""

    def body():
        raise OutOfStockError("order", 7)

    live, replayed = caught_twice(journal, body)

    assert type(replayed) is RecordedError
    assert (replayed.type_name.rpartition(".")[2], replayed.text, str(replayed)) == (
        "OutOfStockError",
        "('order', 7)",
        str(live),
    )


def test_error_of_a_library_is_not_taken_for_a_built_in_one(journal):
    """A class that only shares its name with a built-in one is another class, on replay as well as live."""
    theirs = type("TimeoutError", (Exception,), {"__module__": "library.errors"})

    def body():
        raise theirs("no answer")

    _, replayed = caught_twice(journal, body)

    assert type(replayed) is RecordedError


def test_error_of_a_library_is_not_taken_for_a_listed_one(journal):
    """A class that only shares its name with a listed one is another class, on replay as well as live."""
    theirs = type("OutOfStockError", (Exception,), {"__module__": "library.errors"})

    def body():
        raise theirs("no answer")

    _, replayed = caught_twice(journal, body, policy=safe(errors=(OutOfStockError,)))

    assert type(replayed) is RecordedError


def test_replayed_error_raised_again_is_recorded_as_it_was(journal):
    """An error read back inside another step leaves that step with the original name and text, not with ours."""
    inner = Function(safe, OutOfStockError("order 7"), name="inner")

    @journaled(replay=safe)
    def outer():
        try:
            inner.call()
        except OutOfStockError:
            current_run().value("noted", lambda: True)
            raise

    @journaled(replay=safe)
    def outer_again():
        outer()

    with pytest.raises(OutOfStockError), journal.run(RUN):
        outer_again()
    with pytest.raises(RecordedError) as second, journal.run(RUN):
        outer_again()
    with pytest.raises(RecordedError) as third, journal.run(RUN):
        outer_again()

    assert len(inner.ran) == 1
    assert (second.value.type_name, str(third.value)) == (third.value.type_name, "order 7")
    assert second.value.type_name.endswith("OutOfStockError")


class Speechless(Exception):  # noqa: N818 - an error of the program, as programs have them
    """An error whose text cannot be made."""

    def __str__(self):
        raise RuntimeError("no words")


ODD = {
    "no text": Speechless(),
    "a file without a name": OSError(9, "bad descriptor", 7),
    "a file named by an object": OSError(9, "bad descriptor", object()),
    "a file named by a path": FileNotFoundError(2, "missing", Path("/no/such/file")),
    "attributes that are no data": ValueError("no"),
}
ODD["attributes that are no data"].socket = object()


@pytest.mark.parametrize("error", ODD.values(), ids=ODD)
@pytest.mark.parametrize("policy", LABELS)
def test_odd_error_is_recorded_all_the_same(journal, policy, error):
    """Whatever an error is made of, it reaches the caller, is recorded, and comes back; it never hangs the run."""
    live, replayed = caught_twice(journal, raising(error), policy=policy)

    assert live is error
    assert type(replayed) in (type(error), RecordedError)
    assert only_step(journal).status == "failed"


class TestReopened:
    """An error that ended the run is not a result."""

    @pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
    @pytest.mark.parametrize("policy", [safe, keyed], ids=["safe", "keyed"])
    def test_fails_once_then_works(self, journal, policy, asynchronous):
        """A function that timed out and ended the run is executed by the next attempt, not failed from the record."""
        pay = Function(policy, TimeoutError("no answer"), "paid", asynchronous=asynchronous)

        with pytest.raises(TimeoutError):
            attempt(journal, pay, asynchronous=asynchronous)
        status = run_status(journal)
        results = attempt(journal, pay, asynchronous=asynchronous)

        assert (status, results, len(pay.ran)) == ("failed", ["paid"], 2)

    @pytest.mark.parametrize("policy", LABELS)
    def test_finished_run_replays_the_error_at_its_place(self, journal, policy):
        """The replay of a finished run raises the handled error where it was, then gives the later result; nothing runs."""
        pay = Function(policy, TimeoutError("no answer"), "paid")
        program = (pay, LATER, pay)
        recorded = attempt(journal, *program, catch=(TimeoutError,))

        replays = [attempt(journal, *program, catch=(TimeoutError,)) for _ in range(2)]

        assert recorded[1:] == ["later", "paid"]
        assert [(type(replay[0]), str(replay[0]), *replay[1:]) for replay in replays] == [
            (TimeoutError, "no answer", "later", "paid")
        ] * 2
        assert len(pay.ran) == 2

    @pytest.mark.parametrize("policy", LABELS)
    def test_error_caught_at_the_very_end_was_handled(self, journal, policy):
        """An error after which the run completed was handled, also if no later step tells."""
        pay = Function(policy, TimeoutError("no answer"), "paid")

        first = attempt(journal, pay, catch=(TimeoutError,))
        second = attempt(journal, pay, catch=(TimeoutError,))

        assert [str(first[0]), str(second[0])] == ["no answer"] * 2
        assert len(pay.ran) == 1

    def test_error_after_a_finished_attempt_is_reopened(self, journal):
        """That an earlier attempt completed says nothing about an error of a later one: it is reopened like any other."""
        pay = Function(safe, TimeoutError("no answer"), "paid")
        attempt(journal, LATER)

        with pytest.raises(TimeoutError):
            attempt(journal, LATER, pay)
        results = attempt(journal, LATER, pay)

        assert results == ["later", "paid"]

    def test_sibling_that_runs_again_does_not_make_it_handled(self, journal):
        """A concurrent sibling that is tried again first on the retry does not turn the error into a handled one."""
        flaky = Function(safe, TimeoutError("no answer"), "paid", asynchronous=True)
        waits = [asyncio.Event().wait]

        @journaled(replay=safe)
        async def slow():
            if waits:
                await waits.pop()()
            return "slow"

        async def both():
            async with journal.run(RUN), asyncio.TaskGroup() as group:
                tasks = [group.create_task(slow()), group.create_task(flaky.call())]
            return [task.result() for task in tasks]

        with pytest.raises(ExceptionGroup):
            asyncio.run(both())
        results = asyncio.run(both())

        assert results == ["slow", "paid"]

    def test_new_call_in_front_does_not_make_it_handled(self, journal):
        """A call that a new release makes before the one that failed does not turn its error into a handled one."""
        pay = Function(safe, TimeoutError("no answer"), "paid")
        with pytest.raises(TimeoutError):
            attempt(journal, pay)

        results = attempt(journal, LATER, pay)

        assert results == ["later", "paid"]

    def test_error_that_an_enclosing_step_handled(self, journal):
        """An error inside a step that returned all the same was handled: it does not stop the next attempt."""
        refund = Function(never, ValueError("no such payment"), name="refund")
        crash = Function(safe, Killed(), "mailed", name="mail")

        @journaled(replay=safe)
        def outer():
            try:
                return refund.call()
            except ValueError:
                return "nothing to refund"

        pay = Function(never, "paid")
        with pytest.raises(Killed), journal.run(RUN):
            outer(), crash.call()
        with journal.run(RUN):
            results = outer(), crash.call(), pay.call()

        assert results == ("nothing to refund", "mailed", "paid")
        assert len(refund.ran) == 1

    def test_error_is_listed(self, journal):
        """A failed step is listed with the type and text of its error, in a form that people can read."""
        pay = Function(safe, json.JSONDecodeError("bad", "{", 1))

        with pytest.raises(json.JSONDecodeError):
            attempt(journal, pay)

        step = only_step(journal)
        assert step.status == "failed"
        assert step.error.endswith("JSONDecodeError: bad: line 1 column 2 (char 1)")
