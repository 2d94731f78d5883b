"""Models make up a new call id each time, so an id is no name for an action; nor are a tool and its arguments."""

import pytest

from tests.schedules.sweeping import Ended

ADDED = Ended(died=True, reply="done: item 1 | item 2", effects={"add 1": 2})


def test_a_question_asked_again_under_a_new_id(sweep):
    """Wherever the process dies, the recorded reply keeps its call id, or the new reply is the only one: one charge."""
    ended = sweep("one_charge", policy="recover")

    assert {(how.died, how.reply, how.error) for how in ended.values()} == {(True, "done: charged 42", None)}
    assert [list(how.effects.values()) for how in ended.values()] == [[1]] * len(ended)


@pytest.mark.parametrize("ids", ["fresh", "reused"])
@pytest.mark.parametrize("turns", ["1", "2"])
def test_two_equal_calls_that_are_both_meant(sweep, turns, ids):
    """Two calls with one tool, one set of arguments and even one id are two steps, each read back as itself."""
    ended = sweep("two_equal_calls", turns=turns, ids=ids)

    assert ended == dict.fromkeys(ended, ADDED)


@pytest.mark.parametrize("ids", ["fresh", "reused"])
@pytest.mark.parametrize("turns", ["1", "2"])
def test_a_finished_run_is_read_back_in_order(trial, turns, ids):
    """Run again, both calls give what they gave, at their places, and nothing is added to the basket."""
    again = trial.each("two_equal_calls", [(None, None)], turns=turns, ids=ids)

    assert again == {(None, None): ADDED}
