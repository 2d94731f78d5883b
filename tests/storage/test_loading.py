"""A run is read whole before anything is answered from it: what that costs for each row is counted, not timed."""

import sys
from dataclasses import FrozenInstanceError, replace

import pytest

from gnl_middleware import Journal, journaled, safe
from tests.storage.conversations import Conversation

MOST_CALLS = 90
"""Calls of functions, Python's own included, for each row. Reading it through SQLAlchemy's rows took 160."""


def calls_of(work):
    """How many functions a piece of work calls on this thread."""
    count = 0

    def note(_frame, event, _argument):
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


def test_calls_for_each_row(path):
    """Each further row of a run costs at most 90 calls: what a type must be is not asked for each cell of each row."""
    with Journal(path) as journal:
        database = journal._database()
        counts = []
        for steps in (20, 120):
            with journal.run(f"order-{steps}"):
                Conversation().turns(steps // 2)
                look_up = journaled(lambda number: f"result {number}", replay=safe, name="look_up")
                for number in range(steps // 2):
                    look_up(number)
            run_id = f"order-{steps}"
            assert len(database.load(run_id, 0.0)) == steps
            counts.append(calls_of(lambda run_id=run_id: database.load(run_id, 0.0)))

    assert (counts[1] - counts[0]) / 100 <= MOST_CALLS


def test_loaded_step_is_a_value(path):
    """A step that was read is the value that was written: frozen, comparable, and replaceable."""
    with Journal(path) as journal:
        with journal.run("order-7"):
            Conversation().turns(1)
        (step,), (same,) = (journal._database().load("order-7", 0.0) for _ in range(2))

    assert step == same
    assert hash(step) == hash(same)
    assert replace(step, tries=7).tries == 7
    with pytest.raises(FrozenInstanceError):
        step.tries = 7
