"""Agents whose refund tool may be called once per order, and what their models are told."""

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, ToolMessage

from gnl_langchain import JournalMiddleware
from tests.langchain.driving import WAYS
from tests.langchain.scripted import ScriptedModel, said, turns
from tests.once.world import per_order

every_way = pytest.mark.parametrize(
    "way", [*WAYS[:2], *(pytest.param(way, marks=pytest.mark.long) for way in WAYS[2:])]
)
"""Each way in which an agent is run; those that stream are left to the long campaign."""

FIVE = ("call_a", "call_b", "call_c", "call_d", "call_e")


def asking_for(*call_ids, name="refund", order="o-7", **arguments):
    """A reply that asks for one refund under several call ids."""
    calls = [
        {"name": name, "args": {"order": order, **arguments}, "id": call_id, "type": "tool_call"}
        for call_id in call_ids
    ]
    return AIMessage("", tool_calls=calls)


def refunding(effects, ending=None):
    """A refund tool; its effect is a line in the world.

    Args:
        effects: The world.
        ending: What the body does after its effect, given the order; by default it returns a text.
    """

    def refund(order: str) -> str:
        """Refund an order."""
        effects.add(order)
        return ending(order) if ending else f"refunded {order}"

    return refund


def agent_with(tools, policy, *replies, middleware=(), **options):
    """An agent that gives these replies in turn, and the list of all requests that its model was asked."""
    model = ScriptedModel(script=turns(*replies, said()))
    names = [getattr(tool, "name", None) or tool.__name__ for tool in tools]
    journaling = JournalMiddleware(policies=dict.fromkeys(names, policy))
    agent = create_agent(model, tools, middleware=[*middleware, journaling], **options)
    return agent, model.asked


def answers(messages):
    """Call id and text of each tool's answer, in order."""
    return [
        (message.tool_call_id, message.content) for message in messages if isinstance(message, ToolMessage)
    ]


def told(messages):
    """All that a provider is told of a conversation, without what frameworks make up anew each time."""
    return [message.model_dump(exclude={"id", "response_metadata", "usage_metadata"}) for message in messages]


__all__ = ["FIVE", "agent_with", "answers", "asking_for", "every_way", "per_order", "refunding", "told"]
