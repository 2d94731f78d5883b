"""Runs of one context need not be left in the order in which they were entered: each takes only itself away."""

import asyncio
import contextvars
import itertools

import pytest

from gnl_middleware import current_run, journaled, safe
from gnl_middleware.adapter import current_scope, current_session


@journaled(replay=safe)
def act(order):
    return order


def opened(journal, *run_ids):
    runs = [journal.run(run_id) for run_id in run_ids]
    for run in runs:
        run.__enter__()
    return runs


def leave(run):
    run.__exit__(None, None, None)


def here():
    run = current_run()
    return None if run is None else run.run_id


@pytest.mark.parametrize("order", list(itertools.permutations("abc")), ids="".join)
def test_the_last_entered_that_is_still_open_is_the_current_one(journal, order):
    """Whichever leaves, the current run is the one that was entered last among those left; in the end there is none."""
    runs = dict(zip("abc", opened(journal, "a", "b", "c"), strict=True))
    for run_id in order:
        assert here() == max(runs)
        leave(runs.pop(run_id))

    assert current_session() is None
    assert {record.status for record in journal.runs()} == {"completed"}


def test_work_goes_on_in_the_run_that_is_left(journal):
    """After the first has left, calls are steps of the second, in its own scope."""
    first, second = opened(journal, "a", "b")
    with second.scope("branch"):
        leave(first)
        assert "branch" in current_scope()
        act("o-7")
    act("o-8")
    leave(second)

    assert [step.name for step in journal.steps("b")] == ["act", "act"]
    assert journal.steps("a") == []


def test_a_branch_that_outlives_its_run_leaves_nothing(journal):
    """A run that is left inside a branch of its own takes nothing else away, and the branch nothing behind it."""
    outer, inner = opened(journal, "a", "b")
    with inner.scope("branch"):
        leave(inner)
    assert here() == "a"

    leave(outer)
    assert here() is None


def test_a_run_may_be_left_in_another_context(journal):
    """It is left all the same: its end is noted, and its lease is free."""
    run = journal.run("a")
    context = contextvars.copy_context()
    context.run(run.__enter__)
    leave(run)

    assert [record.status for record in journal.runs()] == ["completed"]
    with journal.run("a") as again:
        assert again.attempt == 2


def test_tasks_leave_in_any_order(journal):
    """Runs that tasks share are left in whatever order the tasks end."""

    async def go():
        async with journal.run("a"):
            outlived = journal.run("b")
            await outlived.__aenter__()
            entered = here()

            async def end_first():
                return here()

            in_task = await asyncio.create_task(end_first())
            await outlived.__aexit__(None, None, None)
            return entered, in_task, here()

    assert asyncio.run(go()) == ("b", "b", "a")
