"""Agents inside tools that ask for the business of the agent around them (DESIGN 3.4)."""

import pytest
from langchain.agents import create_agent
from langchain_core.tools import tool

from gnl_langchain import JournalMiddleware
from gnl_middleware import (
    EffectCycleError,
    never,
    safe,
)
from tests.langchain.driving import drive
from tests.langchain.scripted import QUESTION, ScriptedModel, said, turns
from tests.once.agents import agent_with, asking_for, per_order

IN_JOURNAL = never(once_per=per_order, window="journal")


def agent_as_tool(effects, inner_order):
    """An outer agent whose tool runs an agent that asks for a refund."""

    @tool
    def refund(order: str) -> str:
        """Refund an order."""
        effects.add(order)
        return f"refunded {order}"

    @tool
    def delegate(order: str) -> str:
        """Let another agent handle it."""
        inner, _ = agent_with([refund], IN_JOURNAL, asking_for("call_inner", order=inner_order))
        return inner.invoke(QUESTION)["messages"][-1].text

    model = ScriptedModel(script=turns(asking_for("call_1"), asking_for("call_2", name="delegate"), said()))
    journaling = JournalMiddleware(policies={"refund": IN_JOURNAL, "delegate": safe})
    return create_agent(model, [refund, delegate], middleware=[journaling])


def test_share_with_the_agent_around(journal, effects):
    """An agent in a tool asks for the refund that the agent around it has made: it shares that one."""
    agent = agent_as_tool(effects, "o-7")

    for _ in range(2):
        drive(journal, agent)

    assert effects.lines() == ["o-7"]


def test_a_tool_that_leads_back_to_itself(journal, effects):
    """An agent in a tool that asks for that very tool and order would wait for itself: the run stops, untold."""
    seen = []

    @tool
    def refund(order: str) -> str:
        """Refund an order, by another agent."""
        effects.add(order)
        inner, asked = agent_with([refund], IN_JOURNAL, asking_for("call_inner"))
        seen.append(asked)
        return inner.invoke(QUESTION)["messages"][-1].text

    agent, asked = agent_with([refund], IN_JOURNAL, asking_for("call_outer"))

    with pytest.raises(EffectCycleError):
        drive(journal, agent)

    assert effects.lines() == ["o-7"]
    assert [len(messages) for messages in (*asked, *seen[0])] == [1, 1]
