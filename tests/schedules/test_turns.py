"""One agent dies at each point of each step; the next process ends the run as if nothing had happened."""

import pytest

from tests.schedules.programs.turns import REFUNDS, REPLY
from tests.schedules.sweeping import Ended

STORES = [
    pytest.param({}, id="no checkpointer"),
    *(
        pytest.param({"saver": "sqlite", "durability": durability}, id=f"checkpoints {durability}")
        for durability in ("sync", "async", "exit")
    ),
]
REPLAYS = ["lenient", "strict"]


@pytest.mark.parametrize("replay", REPLAYS)
@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("ids", ["reused", "fresh"])
def test_refunds_in_sequence(sweep, ids, store, replay):
    """Whatever ids the provider gives its calls, each refund is made once and the reply is the clean run's."""
    ended = sweep("in_sequence", ids=ids, replay=replay, **store)

    assert ended == dict.fromkeys(ended, Ended(died=True, reply=REPLY, effects=REFUNDS))


@pytest.mark.parametrize("replay", REPLAYS)
@pytest.mark.parametrize("store", STORES)
def test_refunds_in_parallel(sweep, store, replay):
    """Calls of one reply are told apart: each is made once, and the answers keep the order of the calls."""
    ended = sweep("in_parallel", replay=replay, **store)

    assert ended == dict.fromkeys(ended, Ended(died=True, reply=REPLY, effects=REFUNDS))


@pytest.mark.parametrize("replay", REPLAYS)
@pytest.mark.parametrize("store", STORES)
def test_polls_that_look_alike(sweep, store, replay):
    """Equal replies with equal call ids in turn after turn are as many calls as were meant."""
    ended = sweep("polling", replay=replay, **store)

    assert ended == dict.fromkeys(ended, Ended(died=True, reply="done: 4", effects={"poll 1": 4}))


@pytest.mark.parametrize("replay", REPLAYS)
def test_polls_in_a_loop_written_by_hand(sweep, replay):
    """The same holds without a graph, in the scope of the run itself."""
    ended = sweep("polling_by_hand", replay=replay)

    assert ended == dict.fromkeys(ended, Ended(died=True, reply="done: 4", effects={"poll 1": 4}))


@pytest.mark.parametrize("replay", REPLAYS)
@pytest.mark.parametrize(
    ("what", "ended"),
    [
        pytest.param("polls", Ended(died=True, reply="done: 4", effects={"poll 1": 4}), id="polls"),
        pytest.param("refunds", Ended(died=True, reply=REPLY, effects=REFUNDS), id="refunds"),
    ],
)
def test_a_conversation_kept_by_hand(sweep, what, ended, replay):
    """Recorded turns that the kept conversation skips are seen in it, even where one reply stands in it many times."""
    found = sweep("saved_by_hand", what=what, replay=replay)

    assert found == dict.fromkeys(found, ended)


@pytest.mark.parametrize("replay", REPLAYS)
@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("window", ["5:2", "6:3"])
def test_a_summarised_conversation(sweep, window, store, replay):
    """A middleware that rewrites the history with a model of its own changes nothing, as long as that is journalled."""
    ended = sweep("summarising", window=window, replay=replay, **store)

    effects = {f"refund o{order}": 1 for order in range(5)}
    assert ended == dict.fromkeys(ended, Ended(died=True, reply="done", effects=effects))


@pytest.mark.parametrize("replay", REPLAYS)
@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_an_approval_between_siblings(sweep, durability, replay):
    """A tool that waits for a person pauses; its siblings' effects happen once, before and after the answer."""
    ended = sweep("asking_a_person", saver="sqlite", durability=durability, replay=replay)

    reply = "done: refunded 7 | the person says yes | refunded 8"
    effects = {"refund 7": 1, "refund 8": 1, "approved 1": 1}
    assert ended == dict.fromkeys(ended, Ended(died=True, reply=reply, effects=effects))
