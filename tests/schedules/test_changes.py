"""Something changed between two attempts: the record is served with a note, or the run stops loudly. Never twice."""

import pytest

from tests.schedules.programs.changes import CHANGED_INPUTS
from tests.schedules.programs.turns import REFUNDS, REPLY
from tests.schedules.sweeping import Ended

STORES = [
    pytest.param({}, id="no checkpointer"),
    pytest.param({"saver": "sqlite", "durability": "sync"}, id="checkpoints sync"),
    pytest.param({"saver": "sqlite", "durability": "async"}, id="checkpoints async"),
]


@pytest.mark.parametrize("store", STORES)
def test_a_new_prompt_and_model_in_lenient_mode(sweep, store):
    """A deployment between the attempts gets the recorded replies: each refund once, under the recorded ids."""
    ended = sweep("new_prompt_and_model", replay="lenient", **store)

    outcomes = {(how.died, how.reply, how.error, how.repeated) for how in ended.values()}
    assert outcomes == {(True, REPLY, None, 0)}
    assert [how.effects for how in ended.values()] == [REFUNDS] * len(ended)


def test_a_new_prompt_and_model_in_strict_mode(sweep):
    """As soon as there is a recorded reply, a changed deployment is refused before anything runs."""
    ended = sweep("new_prompt_and_model", replay="strict")

    refused, new = ("DivergenceError", "messages"), (None, None)
    for point, how in ended.items():
        # Nobody waits for the intent of a model call: a question without a reply may or may not be in the record.
        asked = point in ("1:after_intent", "1:before_body", "1:after_body", "1:before_outcome")
        allowed = {refused, new} if asked else {new} if point == "1:before_intent" else {refused}
        assert (how.error, how.part) in allowed, point
        assert set(how.effects.values()) <= {1}, point


def test_a_record_served_to_a_new_prompt_is_marked(trial):
    """Three replies served to drifted requests carry a mark that the command line shows."""
    ended = trial.each("new_prompt_and_model", [("7:before_body", None)])

    assert ended["7:before_body", None].drifted == 3


@pytest.mark.parametrize("replay", ["lenient", "strict"])
@pytest.mark.parametrize("change", CHANGED_INPUTS)
def test_another_input_without_a_checkpointer(sweep, change, replay):
    """The reply to another question is never served; once money went back, the run stops instead of asking anew."""
    ended = sweep("new_input", change=change, replay=replay)

    for point, how in ended.items():
        number, place = point.split(":")
        refunded = int(number) > 2 or (
            number == "2" and place in ("after_body", "before_outcome", "after_outcome")
        )
        if refunded:
            assert (how.error, how.part) == ("DivergenceError", "messages"), point
        assert set(how.effects.values()) <= {1}, point


@pytest.mark.parametrize("replay", ["lenient", "strict"])
def test_a_new_plan_for_a_recorded_effect(sweep, replay):
    """A model that is asked anew and wants the same refund under another call gets no second one."""
    ended = sweep("new_plan", replay=replay)

    assert all(set(how.effects.values()) <= {1} for how in ended.values())
    refunded = {point: how for point, how in ended.items() if point.startswith("4:")}
    assert all((how.error, how.part) == ("DivergenceError", "messages") for how in refunded.values())


@pytest.mark.parametrize(
    ("agents", "replay", "ended"),
    [
        pytest.param(
            "A|B A", "lenient", Ended(True, "done B done A", {}), id="a new agent before a recorded one"
        ),
        pytest.param(
            "A|B A",
            "strict",
            Ended(True, None, {}, error="DivergenceError", part="messages"),
            id="a new agent before a recorded one, strict",
        ),
        pytest.param("A B|B A", "strict", Ended(True, "done B done A", {}), id="another order, strict"),
        pytest.param("A B|A B", "strict", Ended(True, "done A done B", {}), id="the same order, strict"),
        pytest.param(
            "A|A+changed",
            "strict",
            Ended(True, None, {}, error="DivergenceError", part="messages"),
            id="a changed system message, strict",
        ),
        pytest.param(
            "A|A+changed", "lenient", Ended(True, "done A", {}, drifted=1), id="a changed system message"
        ),
        pytest.param(
            "A|A@other",
            "strict",
            Ended(True, None, {}, error="DivergenceError", part="setup"),
            id="another model, strict",
        ),
        pytest.param("A|A@other", "lenient", Ended(True, "done A", {}, drifted=1), id="another model"),
    ],
)
def test_a_finished_run_that_is_run_again_with_a_change(trial, agents, replay, ended):
    """Replies go to those who asked the same; strict mode refuses everything else."""
    assert trial.each("agents_in_turn", [(None, None)], agents=agents, replay=replay)[None, None] == ended
