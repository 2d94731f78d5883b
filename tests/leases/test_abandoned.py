"""Bodies that outlive their attempt: while one still runs in this process, its effect is neither asked about nor repeated."""

import asyncio
import contextlib
import contextvars
import sys
import threading
import traceback

import pytest

from gnl_middleware import NotDone, journaled, never
from gnl_middleware.session import waiting
from tests.leases.workers import RUN


class Slow:
    """A side effect whose body waits for the test.

    Attributes:
        ran: How often its body began.
        asked: How often ``recover`` was asked.
    """

    def __init__(self, error=None):
        self.began, self.go = threading.Event(), threading.Event()
        self.ran, self.asked = 0, 0

        def recover(_call):
            self.asked += 1
            return NotDone()

        def body():
            self.ran += 1
            self.began.set()
            self.go.wait()
            if error is not None:
                raise error
            return "charged"

        self.charge = journaled(body, replay=never(recover=recover), name="charge")

    def go_when(self, happens):
        """Let the body end when another thread has seen something happen."""

        def watch():
            happens()
            self.go.set()

        thread = threading.Thread(target=watch)
        thread.start()
        return thread


def wait_until(happened):
    while not happened():
        pass


def waits_for_another(thread):
    """Whether a thread waits for the end of a call that another one makes."""
    frame = sys._current_frames()[thread]
    return any(inner.f_code is waiting._joined.__code__ for inner, _ in traceback.walk_stack(frame))


def give_up(journal, slow):
    """An attempt that leaves its thread behind."""
    with pytest.raises(TimeoutError), journal.run(RUN, grace=0.0):
        thread = threading.Thread(target=_quietly, args=(contextvars.copy_context(), slow.charge))
        thread.start()
        slow.began.wait()
        raise TimeoutError
    return thread


def _quietly(context, call):
    with contextlib.suppress(ValueError):
        context.run(call)


@pytest.fixture
def opened_again(open_journal):
    """A journal, and the moment at which its run has been opened for the second time."""
    journal = open_journal()

    def wait():
        while journal.runs()[0].attempts < 2:
            pass

    return journal, wait


def test_abandoned_body_is_waited_for_by_the_next_attempt(opened_again):
    """The next attempt gets the outcome of the body that the last one left behind; `recover` is not asked too early."""
    journal, wait = opened_again
    slow = Slow()
    thread = give_up(journal, slow)
    watching = slow.go_when(wait)

    with journal.run(RUN):
        assert slow.charge() == "charged"

    watching.join()
    thread.join()
    assert (slow.ran, slow.asked) == (1, 0)
    assert [step.attempts for step in journal.steps(RUN)] == [1]


def test_nothing_new_starts_meanwhile(opened_again):
    """While a side effect of the last attempt still runs, the next one starts no other, in whatever branch."""
    journal, _ = opened_again
    slow = Slow()
    ended_first = []
    thread = give_up(journal, slow)
    calling = threading.get_ident()
    watching = slow.go_when(lambda: wait_until(lambda: ended_first or waits_for_another(calling)))
    mail = journaled(lambda: ended_first.append(slow.go.is_set()), replay=never, name="mail")

    with journal.run(RUN) as run, run.scope("post"):
        mail()

    watching.join()
    thread.join()
    assert ended_first == [True]
    assert [(step.name, step.status) for step in journal.steps(RUN)] == [("charge", "done"), ("mail", "done")]


def test_abandoned_body_that_fails_is_settled(opened_again):
    """A body that was left behind and then failed is an interrupted call as any other: now `recover` is asked."""
    journal, wait = opened_again
    slow = Slow(error=ValueError("the bank said no"))
    thread = give_up(journal, slow)
    watching = slow.go_when(wait)

    with journal.run(RUN), pytest.raises(ValueError, match="the bank said no"):
        slow.charge()

    watching.join()
    thread.join()
    assert (slow.ran, slow.asked) == (2, 1)


def test_task_that_timed_out_leaves_a_thread(opened_again):
    """The same where a timeout of the event loop leaves a thread of its executor behind."""
    journal, wait = opened_again
    slow = Slow()

    async def attempt(seconds):
        async with journal.run(RUN, grace=0.0):
            return await asyncio.wait_for(asyncio.to_thread(slow.charge), seconds)

    async def both():
        with pytest.raises(TimeoutError):
            await attempt(0.05)
        slow.began.wait()
        watching = slow.go_when(wait)
        answer = await attempt(None)
        watching.join()
        return answer

    assert asyncio.run(both()) == "charged"
    assert (slow.ran, slow.asked) == (1, 0)
