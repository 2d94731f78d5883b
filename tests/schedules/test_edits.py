"""A person at work between the attempts: no effect is doubled, and the run is still the same run."""

import pytest

from tests.schedules.programs.turns import REFUNDS, REPLY
from tests.schedules.sweeping import Ended

DURABILITIES = ["sync", "async", "exit"]


@pytest.mark.parametrize("durability", DURABILITIES)
@pytest.mark.parametrize("update", ["noop", "message"])
def test_a_state_that_was_updated_before_the_resume(sweep, update, durability):
    """An update shifts the steps of the graph: what was done stays done, and with a new message the model may be asked anew."""
    ended = sweep("updated_before_the_resume", update=update, saver="sqlite", durability=durability)

    assert [(how.died, how.reply, how.effects) for how in ended.values()] == [(True, REPLY, REFUNDS)] * len(
        ended
    )
    if update == "noop":
        assert {how.repeated for how in ended.values()} == {0}


@pytest.mark.parametrize("replay", ["lenient", "strict"])
@pytest.mark.parametrize("update", ["none", "noop", "as the start"])
def test_a_thread_that_is_taken_up_at_its_first_checkpoint(sweep, update, replay):
    """Going on by the id of a checkpoint, while the journal is ahead, reads all of it back: no divergence, no second refund."""
    ended = sweep(
        "from_the_first_checkpoint", update=update, saver="sqlite", durability="sync", replay=replay
    )

    assert ended == dict.fromkeys(ended, Ended(died=True, reply=REPLY, effects=REFUNDS))


@pytest.mark.parametrize("replay", ["lenient", "strict"])
@pytest.mark.parametrize("durability", DURABILITIES)
def test_an_approval_that_edits_what_was_asked(sweep, durability, replay):
    """What the person wrote is done, once, and the other call as it was approved."""
    ended = sweep("edited_approval", saver="sqlite", durability=durability, replay=replay)

    effects = {"refund 9": 1, "refund 2": 1}
    reply = "done: refunded 9 | refunded 2"
    assert ended == dict.fromkeys(ended, Ended(died=True, reply=reply, effects=effects))
