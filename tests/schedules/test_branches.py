"""Several agents in one run: told apart by names, by the tool that runs them, or by how often they were asked."""

import pytest

from tests.schedules.sweeping import Ended

REPLAYS = ["lenient", "strict"]
STORES = [
    pytest.param({}, id="no checkpointer"),
    pytest.param({"saver": "sqlite", "durability": "sync"}, id="checkpoints sync"),
    pytest.param({"saver": "sqlite", "durability": "async"}, id="checkpoints async"),
]


@pytest.mark.parametrize("replay", REPLAYS)
@pytest.mark.parametrize("order", ["", "-"], ids=["A first", "B first"])
def test_named_agents_side_by_side(sweep, order, replay):
    """Agents in scopes of their own replay right, whoever comes first after the restart."""
    ended = sweep("side_by_side", scopes="named", order=order, replay=replay)

    effects = {"refund A0": 1, "refund A1": 1, "refund B0": 1, "refund B1": 1}
    outcomes = {(how.died, how.reply, how.error, how.drifted) for how in ended.values()}
    assert outcomes == {(True, "done A done B", None, 0)}
    assert [how.effects for how in ended.values()] == [effects] * len(ended)


@pytest.mark.parametrize("replay", REPLAYS)
@pytest.mark.parametrize("order", ["", "-"], ids=["A first", "B first"])
def test_unnamed_agents_side_by_side(sweep, order, replay):
    """Agents that share a scope end right or stop loudly; no effect happens twice, and none by another's reply."""
    ended = sweep("side_by_side", scopes="unnamed", order=order, replay=replay)

    outcomes = {(how.died, how.reply, how.error) for how in ended.values()}
    assert outcomes <= {(True, "done A done B", None), (True, None, "DivergenceError")}
    assert {count for how in ended.values() for count in how.effects.values()} <= {1}


def test_a_branch_that_failed_beside_one_that_went_on(trial):
    """A branch's later requests never make another branch's failure handled, not even with the same call id."""
    ended = trial.each("one_branch_fails", [(None,), (None, None)], scopes="named")

    assert ended[None,].error == "ValueError"
    assert ended[None, None].error is None
    assert ended[None, None].reply == "done A done B"
    assert ended[None, None].effects == {"refund A": 1, "refund B": 1}


@pytest.mark.parametrize("replay", REPLAYS)
@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("prompts", ["same", "different"])
def test_agents_as_tools_in_one_reply(sweep, prompts, store, replay):
    """Inner agents with equal prompts are told apart by the tool step that runs each; every refund is made once."""
    second = "t1" if prompts == "same" else "t2"
    effects = {"refund top": 1}
    for task in ("t1", second):
        for turn in range(2):
            effects[f"refund {task}-{turn}"] = effects.get(f"refund {task}-{turn}", 0) + 1

    ended = sweep("agents_as_tools", prompts=prompts, replay=replay, **store)

    outcomes = {(how.died, how.reply, how.error, how.drifted) for how in ended.values()}
    assert outcomes == {(True, f"done: t1 done | {second} done | ok", None, 0)}
    assert [how.effects for how in ended.values()] == [effects] * len(ended)


@pytest.mark.parametrize("replay", REPLAYS)
def test_an_agent_invoked_twice_with_one_prompt(sweep, replay):
    """Two equal invocations in one run are both meant, and each is read back as itself."""
    ended = sweep("invoked_twice", replay=replay)

    effects = {"refund R0": 2, "refund R1": 2}
    assert ended == dict.fromkeys(ended, Ended(died=True, reply="done R done R", effects=effects))


@pytest.mark.parametrize("replay", REPLAYS)
def test_two_threads_of_a_checkpointer(sweep, replay):
    """An invocation that its checkpoint skips leaves its record alone; the other one resumes from its own."""
    ended = sweep("two_threads", saver="sqlite", replay=replay)

    effects = {"refund R0": 2, "refund R1": 2}
    assert ended == dict.fromkeys(ended, Ended(died=True, reply="done", effects=effects))


@pytest.mark.parametrize("label", ["middleware", "tool"])
@pytest.mark.parametrize("namesake", ["alone", "beside a namesake"])
def test_a_sibling_is_settled_with_its_own_hook(trial, label, namesake):
    """After a resume that asks no model, an interrupted call is settled by its agent's `recover`, whoever comes first."""
    ended = trial.each(
        "two_calls_of_one_tool",
        [("refund:after_body", None)],
        label=label,
        namesake=namesake,
        saver="sqlite",
        durability="sync",
    )

    (how,) = ended.values()
    assert (how.died, how.error, how.reply) == (True, None, "done: refunded 7 | refunded 8")
    assert how.effects == {"refund 7": 1, "refund 8": 1}
