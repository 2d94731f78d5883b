"""Agents whose first call of one piece of business failed, and whose model asks again (DESIGN 3.4)."""

import threading

import pytest

from gnl_middleware import (
    SideEffectRetryBlockedError,
    never,
)
from tests.langchain.driving import drive
from tests.once.agents import FIVE, agent_with, answers, asking_for, every_way, per_order, refunding, told

IN_JOURNAL = never(once_per=per_order, window="journal")


def test_a_failure_that_the_model_was_told_of(journal, effects):
    """The winner failed and the model was told: asked for again in the next turn, the call blocks instead of running."""
    from langchain.agents.middleware.tool_error import ToolErrorMiddleware

    def lost(order):
        raise TimeoutError("no answer")

    telling = ToolErrorMiddleware(lambda error, request: f"failed: {error}")
    agent, asked = agent_with(
        [refunding(effects, lost)],
        IN_JOURNAL,
        asking_for("call_1"),
        asking_for("call_2"),
        middleware=[telling],
    )

    for _ in range(2):
        with pytest.raises(SideEffectRetryBlockedError):
            drive(journal, agent)

    assert effects.lines() == ["o-7"]
    assert answers(asked[-1]) == [("call_1", "failed: no answer")]
    assert len(asked) == 2


@every_way
def test_a_proven_failure_lets_the_next_call_run(journal, effects, way):
    """The winner's error proves that nothing happened: the next call of the key runs, and the rest share it."""
    from langchain.agents.middleware.tool_error import ToolErrorMiddleware

    left = [ConnectionRefusedError("closed")]
    lock = threading.Lock()

    def refund(order: str) -> str:
        """Refund an order."""
        with lock:
            error = left.pop() if left else None
        if error:
            raise error
        effects.add(order)
        return f"refunded {order}"

    telling = ToolErrorMiddleware(lambda error, request: f"failed: {error}")
    agent, asked = agent_with(
        [refund],
        IN_JOURNAL(not_performed=(ConnectionRefusedError,)),
        asking_for(*FIVE),
        middleware=[telling],
    )

    first = drive(journal, agent, way)
    again = drive(journal, agent, way)

    assert effects.lines() == ["o-7"]
    assert sorted(text for _, text in answers(asked[1])) == ["failed: closed", *["refunded o-7"] * 4]
    assert told(again.state["messages"]) == told(first.state["messages"])
