"""Who commits: a thread that waits for its write does it itself where nobody is at it; else the writer's own thread does."""

import asyncio
import threading
from contextvars import ContextVar

import pytest
import sqlalchemy as sa

from gnl_middleware import journaled, never, safe
from gnl_middleware.storage.protocol import Task

RUN = "order-7"


@pytest.fixture
def threads_that_write(journal):
    """The names of the threads that send the rows of steps to the database, from now on."""
    names = []

    @sa.event.listens_for(journal._database().engine, "before_cursor_execute")
    def note(_connection, _cursor, statement, *_rest):
        if statement.startswith("INSERT INTO gnl_steps"):
            names.append(threading.current_thread().name)

    return names


@journaled(replay=never)
def charge(number):
    """A side effect."""
    return number


def test_thread_that_waits_commits_itself(journal, threads_that_write):
    """No other thread has to be woken for a side effect of a run that is alone: its own thread commits."""
    with journal.run(RUN):
        for number in range(20):
            charge(number)

    assert threading.current_thread().name in threads_that_write


def test_event_loop_never_commits(journal, threads_that_write):
    """The thread of an event loop is not blocked by a commit: the writer's thread makes it."""

    @journaled(replay=never)
    async def charge_soon(number):
        return number

    async def work():
        async with journal.run(RUN):
            for number in range(20):
                await charge_soon(number)

    asyncio.run(work())

    assert set(threads_that_write) == {"gnl-writer"}


@pytest.mark.parametrize("moment", ["before_cursor_execute", "after_cursor_execute"])
def test_interrupted_commit_is_taken_over(journal, moment):
    """Ctrl-C in the middle of a commit takes nothing from those whose writes share it, and repeats nothing."""
    database, ran, moments = journal._database(), [], []
    told = Task(lambda _connection: "told")

    @journaled(replay=never)
    def pay():
        ran.append("paid")
        return "paid"

    def attempt():
        with journal.run(RUN):
            database.tell(told)
            moments.append("now")
            return pay()

    @sa.event.listens_for(database.engine, moment)
    def interrupt(_connection, _cursor, statement, *_rest):
        if statement == "COMMIT" and moments and threading.current_thread() is threading.main_thread():
            moments.clear()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        attempt()
    assert told.ended.result(timeout=60) == "told"
    sa.event.remove(database.engine, moment, interrupt)
    told = Task(lambda _connection: "told")

    assert (attempt(), ran) == ("paid", ["paid"])


def test_write_for_which_nobody_waits_is_committed(journal):
    """A write that only tells is committed by itself, soon."""
    told = Task(lambda _connection: "told")

    journal._database().tell(told)

    assert told.ended.result(timeout=60) == "told"


def test_closing_commits_what_was_only_told(journal):
    """Nothing that was handed over is lost where the journal is closed at once."""
    told = Task(lambda _connection: "told")
    journal._database().tell(told)

    journal.close()

    assert told.ended.done()


def test_nothing_of_the_caller_s_context_is_written(journal):
    """What is committed on a caller's thread is written as on any other: its context has no part in it."""
    seen = []
    user = ContextVar("user", default="nobody")
    user.set("somebody")

    journal._database().write(lambda _connection: seen.append(user.get()))

    assert seen == ["nobody"]


def test_safe_step_waits_for_no_other_thread(journal, threads_that_write):
    """A step that is safe to repeat is told of with its outcome, in one commit of the thread that waits for that."""

    @journaled(replay=safe)
    def look_up(number):
        return number

    with journal.run(RUN):
        for number in range(20):
            look_up(number)

    assert threading.current_thread().name in threads_that_write
