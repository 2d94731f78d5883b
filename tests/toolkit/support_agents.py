"""Agents made by ``create_agent`` whose model answers from a script: in sequence, in parallel, and nested."""

from collections.abc import Callable, Sequence
from typing import Any

from langchain.agents import create_agent
from langchain_core.messages import AIMessage

from gnl_langchain import JournalMiddleware
from gnl_middleware import Journal, Policy, never, safe
from gnl_middleware.testing import EffectLog
from tests.langchain.driving import drive
from tests.langchain.scripted import ScriptedModel, calling, said, turns

_BOTH_IN_TURN = (
    calling("book", order="7", text="I book it now."),
    calling("mail", order="7"),
    said("All is done."),
)
_BOTH_AT_ONCE = (calling("book", "mail", order="7"), said("All is done."))
SHAPES: dict[str, tuple[AIMessage, ...]] = {
    "sequential": _BOTH_IN_TURN,
    "parallel": _BOTH_AT_ONCE,
    "nested": (calling("desk", order="7"), said("The desk did it.")),
}
"""What the model says, one reply after the other."""


def support(log: EffectLog, shape: str, *, mailing: Policy = never) -> Callable[[], Any]:
    """A function that builds a support agent, as a closure over the log of its effects.

    Args:
        log: What happened in the world.
        shape: One of ``SHAPES``.
        mailing: The label of ``mail``.
    """

    def book(order: str) -> str:
        """Book the refund of an order."""
        log.note("book")
        return f"booked {order}"

    def mail(order: str) -> str:
        """Mail the customer of an order."""
        log.note("mail")
        return f"mailed {order}"

    def desk(order: str) -> str:
        """Hand an order to the desk, which is an agent."""
        inner = agent(_BOTH_IN_TURN, book, mail)
        return str(inner.invoke({"messages": [("user", order)]})["messages"][-1].text)

    policies = {"book": never, "mail": mailing, "desk": safe}

    def agent(script: Sequence[AIMessage], *tools: Callable[[str], str]) -> Any:
        labels = {tool.__name__: policies[tool.__name__] for tool in tools}
        model = ScriptedModel(script=turns(*script))
        return create_agent(model, list(tools), middleware=[JournalMiddleware(policies=labels)])

    return lambda: agent(SHAPES[shape], *((desk,) if shape == "nested" else (book, mail)))


def running(way: str) -> Callable[[Any, str, Journal], str]:
    """A function that runs the job: ``invoke``, ``ainvoke``, ``stream`` or ``astream``."""
    return lambda agent, run_id, journal: drive(journal, agent, way, run_id=run_id).reply
