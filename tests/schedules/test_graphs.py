"""Graphs around agents: whatever runs side by side, or again, each effect happens once, and nothing diverges."""

from dataclasses import replace

import pytest

from tests.schedules.sweeping import Ended

STORES = [
    pytest.param({"replay": "strict"}, id="no checkpointer strict"),
    pytest.param({"replay": "lenient"}, id="no checkpointer lenient"),
    pytest.param({"saver": "sqlite", "durability": "sync", "replay": "strict"}, id="sync strict"),
    pytest.param({"saver": "sqlite", "durability": "async", "replay": "lenient"}, id="async lenient"),
    pytest.param({"saver": "sqlite", "durability": "exit", "replay": "strict"}, id="exit strict"),
]

BRANCHES = {
    "nodes_side_by_side": 2,
    "agents_as_nodes": 2,
    "sent_to_an_agent": 3,
    "tasks_side_by_side": 4,
    "retried_node": 1,
}


def refunded(*orders: str, times: int = 1) -> dict[str, int]:
    return {f"refund {order}": times for order in orders}


PROGRAMS = {
    "nodes_side_by_side": Ended(True, "done A done B done Z", refunded("A0", "B0", "B1", "B2", "Z0")),
    "agents_as_nodes": Ended(True, "done A done B", refunded("A0", "B0", "B1", "B2")),
    "sent_to_an_agent": Ended(True, "done s done s done s", refunded("s0", "s1", times=3)),
    "tasks_side_by_side": Ended(
        True,
        "done A done B done same done same done Z done C",
        refunded("A0", "A1", "B0", "B1", "Z0", "C0", "C1") | refunded("same0", times=2),
    ),
    "retried_node": Ended(True, "done R", refunded("R0", "R1")),
}


@pytest.mark.parametrize("options", STORES)
@pytest.mark.parametrize("program", PROGRAMS)
def test_died_anywhere(sweep, program, options):
    """The end of the run is that of the clean one: no effect twice, none missing, and no recorded reply is of no use."""
    ended = sweep(program, **options)

    assert {point: replace(how, repeated=0) for point, how in ended.items()} == dict.fromkeys(
        ended, PROGRAMS[program]
    )
    # A death takes with it what other branches had just been answered; the crash matrix tells that from a repetition.
    assert max(how.repeated for how in ended.values()) < BRANCHES[program]


@pytest.mark.parametrize("replay", ["lenient", "strict"])
def test_tasks_that_a_checkpoint_skips(trial, replay):
    """What ended before the body went on is no sign that the run has left its record: the body asks on."""
    points = [("18:before_body", None), ("20:after_intent", None)]
    ended = trial.each("tasks_side_by_side", points, saver="sqlite", durability="sync", replay=replay)

    assert ended == dict.fromkeys(points, PROGRAMS["tasks_side_by_side"])
