"""The cells of DESIGN 3.1 once more, from end to end: plain functions, two attempts, a journal on a real file."""

import asyncio
import contextlib

import pytest

from gnl_middleware import (
    Done,
    Failed,
    NotDone,
    RecordedError,
    SideEffectRetryBlockedError,
    keyed,
    never,
    safe,
)
from tests.functions.asking import ask, tool_call, use_async
from tests.functions.scripted import RUN, Function, Killed, attempt, only_step

LABELS = {"safe": safe, "keyed": keyed, "never": never}
PROVEN = ConnectionRefusedError("refused")

# How the first attempt ended, then what the second one does with the call, for each label.
TABLE = """
nothing                      run     run     run
done                         return  return  return
interrupted                  run     run     settle
failed_and_handled           raise   raise   raise
failed_and_unhandled         run     run     settle
not_performed                run     run     run
not_performed_and_handled    raise   raise   raise
decided_happened             return  return  return
decided_not_done             run     run     run
decided_failed               refuse  refuse  refuse
"""
ENDINGS = {
    "done": "first",
    "interrupted": Killed(),
    "failed_and_handled": TimeoutError("late"),
    "failed_and_unhandled": TimeoutError("late"),
    "not_performed": PROVEN,
    "not_performed_and_handled": PROVEN,
    "decided_happened": Killed(),
    "decided_not_done": Killed(),
    "decided_failed": Killed(),
}
DECISIONS = {
    "decided_happened": Done("first"),
    "decided_not_done": NotDone(),
    "decided_failed": Failed("a person said no"),
}
CELLS = [
    pytest.param(line.split()[0], label, outcome, id=f"{line.split()[0]}-{label}")
    for line in TABLE.strip().splitlines()
    for label, outcome in zip(LABELS, line.split()[1:], strict=True)
]


def first_attempt(journal, history, policy, *, asynchronous):
    """Let the first attempt leave the wanted history behind; gives the function."""
    ending = ENDINGS.get(history, "first")
    pay = Function(
        policy(not_performed=(ConnectionRefusedError,)), ending, "second", asynchronous=asynchronous
    )
    if history == "nothing":
        return pay
    later = Function(safe, Killed(), name="later", asynchronous=asynchronous)
    catch = (OSError,) if history.endswith("and_handled") else ()
    with contextlib.suppress(Killed, OSError):
        attempt(journal, pay, later, catch=catch, asynchronous=asynchronous)
    if history in DECISIONS:
        journal.resolve(RUN, "pay", DECISIONS[history], by="ops")
    return pay


@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize(("history", "label", "outcome"), CELLS)
def test_cell_end_to_end(journal, history, label, outcome, asynchronous):
    """What the second attempt does with a call is what the cell of its history and label says."""
    pay = first_attempt(journal, history, LABELS[label], asynchronous=asynchronous)
    before = len(pay.ran)

    try:
        result = attempt(journal, pay, catch=(OSError, RecordedError), asynchronous=asynchronous)[0]
    except SideEffectRetryBlockedError as error:
        result = error

    ran = len(pay.ran) - before
    if outcome == "run":
        assert (result, ran) == ("first" if history == "nothing" else "second", 1)
    elif outcome == "return":
        assert (result, ran) == ("first", 0)
    elif outcome == "raise":
        assert (type(result), str(result), ran) == (type(ENDINGS[history]), str(ENDINGS[history]), 0)
    elif outcome == "refuse":
        assert (type(result), str(result), ran) == (RecordedError, "a person said no", 0)
    else:
        assert (type(result), ran) == (SideEffectRetryBlockedError, 0)


@pytest.mark.parametrize("label", ["keyed", "never"])
def test_withdrawn_call_runs(journal, watch_points, label):
    """A call that was cancelled between its intent and its body runs on the next attempt, whatever its label."""
    pay = Function(LABELS[label], "paid", asynchronous=True)

    async def cancelled_before_the_body():
        async with journal.run(RUN):
            task = asyncio.ensure_future(pay.call())
            watch_points(lambda point, *_: task.cancel() if point == "before_intent" else None)
            with contextlib.suppress(asyncio.CancelledError):
                await task
            raise Killed

    with pytest.raises(Killed):
        asyncio.run(cancelled_before_the_body())
    watch_points(None)
    ran_before = len(pay.ran)

    results = attempt(journal, pay, asynchronous=True)

    assert (results, ran_before, len(pay.ran)) == (["paid"], 0, 1)


@pytest.mark.parametrize("label", LABELS)
def test_running_call_is_waited_for(journal, label):
    """A call whose first try still runs in this process waits for its outcome, whatever its label."""
    call = tool_call(LABELS[label])
    ran = []

    async def call_twice():
        started, go = asyncio.Event(), asyncio.Event()

        async def body():
            ran.append("body")
            started.set()
            await go.wait()
            return "paid"

        async with journal.run(RUN):
            ask("pay order 7", [("c-1", "pay", {"order": "o-7"})])
            first = asyncio.ensure_future(use_async(call, body))
            await started.wait()
            second = asyncio.ensure_future(use_async(call, body))
            await asyncio.sleep(0)  # the second call comes as far as it can
            waiting = not second.done()
            go.set()
            return waiting, await first, await second

    waiting, first, second = asyncio.run(call_twice())

    assert (waiting, first, second, ran) == (True, "paid", "paid", ["body"])


def test_step_shows_its_label_and_status(journal):
    """What the journal lists of a step is what happened to it: label, status, tries, arguments and value."""
    pay = Function(never, "paid")

    attempt(journal, pay)

    step = only_step(journal)
    assert (step.kind, step.policy, step.status, step.attempts) == ("tool", "never", "done", 1)
    assert (step.arguments, step.value, step.error, step.blocked) == ({"order": "o-7"}, "paid", None, None)
