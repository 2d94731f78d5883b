"""Refunds that may happen once per order, and attempts that ask for them."""

import asyncio
import contextvars
import inspect
import threading
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from gnl_middleware import current_step, journaled, never
from tests.once.world import PATIENCE, per_order

IN_RUN = never(once_per=per_order)
IN_JOURNAL = never(once_per=per_order, window="journal")

both_windows = pytest.mark.parametrize(
    "policy", [pytest.param(IN_RUN, id="run"), pytest.param(IN_JOURNAL, id="journal")]
)
both_colours = pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])


class Killed(BaseException):
    """The process is stopped in the middle of a body: no error that a program could handle."""


class Refund:
    """A journalled refund that plays its endings in turn, the last one again and again.

    Args:
        endings: What each execution of the body does: an exception is raised, a function is called with the arguments
            (and its result awaited, if it can be), anything else is returned.
        policy: Its replay label.
        asynchronous: Whether it is a coroutine function.
        name: Its name in the journal.

    Attributes:
        ran: The note of each execution of the body.
        keys: The idempotency key of each.
    """

    def __init__(self, *endings, policy=IN_JOURNAL, asynchronous=False, name="refund"):
        self.endings = list(endings or ("refunded",))
        self.ran, self.keys = [], []
        self.asynchronous = asynchronous
        body = self._coroutine if asynchronous else self._function
        self.call = journaled(body(), replay=policy, name=name)

    def _function(self):
        def refund(order="o-7", note=""):
            return self._begin(order, note)

        return refund

    def _coroutine(self):
        async def refund(order="o-7", note=""):
            ended = self._begin(order, note)
            return await ended if inspect.isawaitable(ended) else ended

        return refund

    def _begin(self, order, note):
        ending = self.endings[min(len(self.ran), len(self.endings) - 1)]
        self.ran.append(note)
        self.keys.append(current_step().idempotency_key)
        if isinstance(ending, BaseException):
            raise ending
        return ending(order, note) if callable(ending) else ending


def attempt(journal, refund, *calls, run_id="run", catch=(), **options):
    """Open the run and make the calls, each a pair of order and note, in turn.

    Returns:
        What each call returned, or the error that was caught.
    """
    if refund.asynchronous:
        attempting = _attempt_async(journal.run(run_id, **options), refund, calls, catch)
        return asyncio.run(asyncio.wait_for(attempting, PATIENCE))
    results = []
    with journal.run(run_id, **options):
        for order, note in calls:
            try:
                results.append(refund.call(order, note))
            except catch as error:
                results.append(error)
    return results


async def _attempt_async(opened, refund, calls, catch):
    results = []
    async with opened:
        for order, note in calls:
            try:
                results.append(await refund.call(order, note))
            except catch as error:
                results.append(error)
    return results


def died(journal, *endings, policy=IN_JOURNAL, asynchronous=False, run_id="first"):
    """A refund whose first execution was cut off in its body, in a run that nobody holds any more."""
    refund = Refund(Killed(), *(endings or ("refunded",)), policy=policy, asynchronous=asynchronous)
    with pytest.raises(Killed):
        attempt(journal, refund, ("o-7", "of the dead"), run_id=run_id)
    return refund


def in_threads(*functions):
    """Call the functions at once, each in a thread that carries this one's context; gives a future of each."""
    with ThreadPoolExecutor(len(functions)) as threads:
        return [threads.submit(contextvars.copy_context().run, function) for function in functions]


def started_thread(function):
    """Call a function in a thread that carries this one's context; gives its future."""
    result = Future()
    context = contextvars.copy_context()

    def work():
        try:
            result.set_result(context.run(function))
        except BaseException as error:  # noqa: BLE001 - handed to the test
            result.set_exception(error)

    threading.Thread(target=work, daemon=True).start()
    return result


def wait_for(event):
    """Wait for an event; what hangs fails its test."""
    assert event.wait(PATIENCE), "nobody came to this point"


def steps(journal, run_id="run"):
    """Status and resolution of each step of a run."""
    return [(step.status, step.resolution) for step in journal.steps(run_id)]


def run_status(journal, run_id="run"):
    """The run's status as it is listed."""
    (record,) = (record for record in journal.runs() if record.run_id == run_id)
    return record.status
