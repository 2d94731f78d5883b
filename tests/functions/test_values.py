"""Times, ids and random numbers of a run: made once, read back on every attempt, so that they may enter a prompt."""

import asyncio
import contextvars
import itertools
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from uuid import UUID

import pytest

from gnl_middleware import SideEffectRetryBlockedError, current_run, journaled, never, safe
from tests.functions.scripted import RUN, Function, Killed, interrupted, only_step, run_async

TICKETS = itertools.count()
MAKERS = {
    "now": lambda run: run.now(),
    "uuid4": lambda run: run.uuid4(),
    "random": lambda run: run.random(),
    "value": lambda run: run.value("draw", lambda: next(TICKETS)),
}


def drawn(journal, make, times=1, **options):
    """Values made in one attempt."""
    with journal.run(RUN, **options) as run:
        return [make(run) for _ in range(times)]


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_made_once(journal, make):
    """A value is made on first use and read back by every later attempt, equal and of the same type."""
    recorded = drawn(journal, make, times=3)

    replayed = [drawn(journal, make, times=3, replay="strict") for _ in range(2)]

    assert replayed == [recorded, recorded]
    assert [type(value) for value in replayed[0]] == [type(value) for value in recorded]
    assert len(set(recorded)) == 3


def test_now_is_the_time_in_utc(journal):
    """`now()` is the present time, with UTC as its zone."""
    before = datetime.now(UTC)

    (now,) = drawn(journal, MAKERS["now"])

    assert before <= now <= datetime.now(UTC)
    assert now.tzinfo is UTC


def test_uuid4_is_one(journal):
    """`uuid4()` is a random UUID."""
    (made,) = drawn(journal, MAKERS["uuid4"])

    assert isinstance(made, UUID)
    assert made.version == 4


def test_random_is_in_its_range(journal):
    """`random()` is a float in [0, 1)."""
    values = drawn(journal, MAKERS["random"], times=20)

    assert all(isinstance(value, float) and 0 <= value < 1 for value in values)


def test_function_is_not_called_again(journal):
    """The function of `value` is called on first use only, also where that was cut off by a crash afterwards."""
    made = []

    def program(ending):
        with journal.run(RUN) as run:
            value = run.value("draw", lambda: made.append(1) or len(made))
            if ending is not None:
                raise ending
            return value

    with pytest.raises(Killed):
        program(Killed())

    assert (program(None), made) == (1, [1])


@pytest.mark.parametrize("value", [None, "text", {"a": (1, b"\x00")}, [], False], ids=repr)
def test_any_plain_value(journal, value):
    """`value` records any plain data, also None and what Python takes for false."""
    made = []

    results = [
        drawn(journal, lambda run: run.value("draw", lambda: made.append(1) or value)) for _ in range(2)
    ]

    assert results == [[value], [value]]
    assert made == [1]


def test_failed_function_is_tried_again(journal):
    """A value whose function raised is made anew by the next attempt."""
    endings = iter([TimeoutError("no answer"), "made"])

    def make():
        if isinstance(ending := next(endings), Exception):
            raise ending
        return ending

    with pytest.raises(TimeoutError):
        drawn(journal, lambda run: run.value("draw", make))

    assert drawn(journal, lambda run: run.value("draw", make)) == ["made"]


def test_values_belong_to_their_scope(journal):
    """The same name in another branch or inside a step is another value, whatever the order of the branches."""

    def program(branches):
        inside = journaled(lambda: current_run().random(), replay=safe, name="inside")
        with journal.run(RUN) as run:
            values = {"run": run.random(), "step": inside()}
            for branch in branches:
                with run.scope(branch):
                    values[branch] = run.random()
            return values

    recorded = program(["a", "b"])
    replayed = program(["b", "a"])

    assert replayed == recorded
    assert len(set(recorded.values())) == 4


def test_values_of_two_runs_differ(journal):
    """Each run has values of its own."""
    values = []
    for run_id in (RUN, "order-8"):
        with journal.run(run_id) as run:
            values.append(run.uuid4())

    assert values[0] != values[1]


def test_values_in_threads(journal):
    """Values drawn from executor threads at once are all recorded, none of them twice."""

    def program():
        with journal.run(RUN) as run, ThreadPoolExecutor(8) as pool:
            contexts = [contextvars.copy_context() for _ in range(40)]
            return sorted(pool.map(lambda context: context.run(run.random), contexts))

    recorded = program()

    assert len(set(recorded)) == 40
    assert program() == recorded


def test_values_in_asynchronous_code(journal):
    """Values are drawn in the same way between awaits."""

    async def program():
        async with journal.run(RUN) as run:
            first = run.random()
            await asyncio.sleep(0)
            return first, run.uuid4()

    assert run_async(program()) == run_async(program())


def test_values_are_listed(journal):
    """A value is listed as a step of its own kind, without a label."""
    drawn(journal, lambda run: run.value("draw", lambda: 7))

    step = only_step(journal, "draw")

    assert (step.kind, step.policy, step.status, step.value, step.arguments) == ("value", "", "done", 7, {})


def test_values_may_be_drawn_while_something_is_unsettled(journal):
    """Drawing a value is no side effect: an interrupted call does not stop it, only the end of the run."""
    interrupted(journal, never)
    values = []

    def program():
        with journal.run(RUN) as run:
            values.append(run.random())

    with pytest.raises(SideEffectRetryBlockedError):
        program()

    assert len(values) == 1


def test_value_is_no_tool_of_the_same_name(journal):
    """A value and a function of one name and no arguments are told apart."""
    tool = journaled(lambda: "tool", replay=safe, name="draw")

    def program(order):
        with journal.run(RUN) as run:
            makers = {"value": lambda: run.value("draw", lambda: "value"), "tool": tool}
            return {name: makers[name]() for name in order}

    recorded = program(["value", "tool"])
    replayed = program(["tool", "value"])

    assert recorded == replayed == {"value": "value", "tool": "tool"}


def test_values_do_not_reopen_what_was_handled(journal):
    """A value drawn after a caught error tells that the program went on: the error replays as it was."""
    pay = Function(safe, TimeoutError("no answer"), "paid")

    def program(ending):
        with journal.run(RUN) as run:
            try:
                result = pay.call()
            except TimeoutError:
                result = "gave up"
            run.now()
            if ending is not None:
                raise ending
            return result

    with pytest.raises(Killed):
        program(Killed())

    assert (program(None), len(pay.ran)) == ("gave up", 1)
