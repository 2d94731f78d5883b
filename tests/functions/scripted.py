"""Plain functions whose bodies end as a test says, and attempts that call them in a row."""

import asyncio
import contextlib

import pytest

from gnl_middleware import journaled

RUN = "order-7"
PATIENCE = 20
"""Seconds after which something that hangs fails its test."""


class Killed(BaseException):
    """The process is stopped in the middle of a body: no error that a program could handle."""


FOREVER = object()
"""An ending that never comes: the body waits until it is cancelled."""


class Function:
    """A journalled function that plays its endings in turn, the last one again and again.

    Args:
        policy: Its replay label.
        endings: What each execution of the body does: an exception is raised, `FOREVER` waits (a coroutine function
            only), anything else is returned.
        name: Its name in the journal.
        asynchronous: Whether it is a coroutine function.
    """

    def __init__(self, policy, *endings, name="pay", asynchronous=False):
        self.endings = list(endings)
        self.ran = []
        self.waiting = asyncio.Event()
        self.when_waiting = lambda: None
        self.call = journaled(
            self._coroutine() if asynchronous else self._function(), replay=policy, name=name
        )

    def _function(self):
        def body(order="o-7"):
            return self._play(order)

        return body

    def _coroutine(self):
        async def body(order="o-7"):
            ending = self._play(order)
            if ending is FOREVER:
                self.waiting.set()
                self.when_waiting()
                await asyncio.Event().wait()
            return ending

        return body

    def _play(self, order):
        ending = self.endings[min(len(self.ran), len(self.endings) - 1)]
        self.ran.append(order)
        if isinstance(ending, BaseException):
            raise ending
        return ending


def run_async(coroutine):
    """Run a coroutine on an event loop of its own; one that hangs fails."""
    return asyncio.run(asyncio.wait_for(coroutine, PATIENCE))


def attempt(journal, *functions, catch=(), asynchronous=False, **options):
    """Open the run and call the functions in turn; gives what each returned, or the error that was caught."""
    if asynchronous:
        return run_async(_attempt_async(journal, functions, catch, options))
    results = []
    with journal.run(RUN, **options):
        for function in functions:
            try:
                results.append(function.call())
            except catch as error:
                results.append(error)
    return results


async def _attempt_async(journal, functions, catch, options):
    results = []
    async with journal.run(RUN, **options):
        for function in functions:
            try:
                results.append(await function.call())
            except catch as error:
                results.append(error)
    return results


def cut_off_together(journal, *functions):
    """An attempt that is cancelled while all the functions wait in their bodies, and then killed."""

    async def cut_off():
        async with journal.run(RUN):
            calls = [asyncio.ensure_future(function.call()) for function in functions]
            for function in functions:
                await function.waiting.wait()
            for call in calls:
                call.cancel()
            await asyncio.gather(*calls, return_exceptions=True)
            raise Killed

    with contextlib.suppress(Killed):
        run_async(cut_off())


def interrupted(journal, policy, *endings, asynchronous=False, name="pay"):
    """A function whose first execution was cut off in its body."""
    pay = Function(policy, Killed(), *(endings or ("paid",)), asynchronous=asynchronous, name=name)
    with pytest.raises(Killed):
        attempt(journal, pay, asynchronous=asynchronous)
    return pay


def answering(answer, *, awaited, asked=None):
    """A `recover` that gives an answer, or raises it; synchronous or asynchronous."""

    def recover(call):
        if asked is not None:
            asked.append(call)
        if isinstance(answer, BaseException):
            raise answer
        return answer

    async def recover_async(call):
        await asyncio.sleep(0)
        return recover(call)

    return recover_async if awaited else recover


def only_step(journal, name="pay", run_id=RUN):
    """The one step of this name."""
    (step,) = (step for step in journal.steps(run_id) if step.name == name)
    return step


def run_status(journal, run_id=RUN):
    """The run's status as it is listed."""
    (record,) = (record for record in journal.runs() if record.run_id == run_id)
    return record.status
