"""Called again without a crash: that is the same step, and its effect happens once unless someone knows better."""

import pytest

from tests.schedules.sweeping import Ended

TWICE, ONCE = {"refund 7": 2}, {"refund 7": 1}
REPLAYS = ["lenient", "strict"]


@pytest.mark.parametrize(
    ("policy", "ended"),
    [
        pytest.param("never", Ended(True, None, ONCE, error="SideEffectRetryBlockedError"), id="never"),
        pytest.param("truthful", Ended(True, "done", ONCE), id="never, recover says Done"),
        pytest.param("not_done", Ended(True, "done", TWICE), id="never, recover says NotDone"),
        pytest.param("not_performed", Ended(True, "done", TWICE), id="never, the error proves it"),
        pytest.param("safe", Ended(True, "done", TWICE), id="safe"),
    ],
)
def test_a_tool_that_times_out_after_its_effect(trial, policy, ended):
    """A retry middleware gets a second effect only where the label or `recover` allows one."""
    assert trial.clean("tool_times_out", policy=policy) == ended


@pytest.mark.parametrize("replay", REPLAYS)
def test_a_settled_tool_that_timed_out(sweep, replay):
    """Dying around the settling of a call that timed out changes nothing: the effect is there once."""
    ended = sweep("tool_times_out", policy="truthful", replay=replay)

    assert ended == dict.fromkeys(ended, Ended(True, "done", ONCE))


@pytest.mark.parametrize("replay", REPLAYS)
@pytest.mark.parametrize("store", [{}, {"saver": "sqlite", "durability": "sync"}], ids=["", "checkpoints"])
def test_a_fallback_model_answered(sweep, store, replay):
    """After a restart with the primary model up again, the fallback's recorded reply is served: one refund."""
    ended = sweep("falling_back", replay=replay, **store)

    assert {(how.died, how.reply, how.error, how.drifted) for how in ended.values()} == {
        (True, "done", None, 0)
    }
    assert [how.effects for how in ended.values()] == [ONCE] * len(ended)


@pytest.mark.parametrize("replay", REPLAYS)
@pytest.mark.parametrize("store", [{}, {"saver": "sqlite", "durability": "sync"}], ids=["", "checkpoints"])
def test_a_model_that_fails_and_is_asked_again(sweep, store, replay):
    """A failed question stays open, so the retry's answer is its record: one refund, under one call id."""
    ended = sweep("model_retried", replay=replay, **store)

    assert {(how.died, how.reply, how.error, how.drifted) for how in ended.values()} == {
        (True, "done", None, 0)
    }
    assert [how.effects for how in ended.values()] == [ONCE] * len(ended)
