"""Whether an agent can be handed the turns that are over, or its loop has to be replayed."""

import contextlib
import logging
from collections.abc import Iterator, Mapping
from typing import Any

from langgraph.types import Command

from gnl_middleware.adapter import Session

from .handover import handed_over
from .middleware import JournalMiddleware
from .private import described_by, is_created_agent, middlewares_around, state_of

_logger = logging.getLogger("gnl_middleware")
_NODES = frozenset({"__start__", "model", "tools"})
_CHANNELS = frozenset({"messages", "jump_to", "structured_response"})
_SEEN_BY_CALLER = frozenset({"stream_mode", "print_mode", "interrupt_before", "interrupt_after", "subgraphs"})


def resumed(
    agent: Any, given: Any, options: Mapping[str, Any], session: Session, *, handover: bool
) -> contextlib.AbstractContextManager[None]:
    """Where the agent is invoked: it is handed what is over if that was asked for and makes no difference.

    Args:
        agent: The agent.
        given: Its input.
        options: Those that are given to the agent.
        session: The open run.
        handover: Whether it was asked for.
    """
    if not handover:
        return contextlib.nullcontext()
    if (reason := why_replayed(agent, given, options, session)) is not None:
        told = "Run %r was asked to resume by hand-over, but %s: the agent's loop is replayed, which takes longer"
        _logger.warning(told, session.run_id, reason)
        return contextlib.nullcontext()
    (journalled_by,) = middlewares_around(agent)
    return handed_over(session, journalled_by, described_by(agent).get("lc_agent_name"))


def why_replayed(agent: Any, given: Any, options: Mapping[str, Any], session: Session) -> str | None:
    """Why an agent cannot be handed its history; None where it can."""
    if not is_created_agent(agent):
        return "it is no agent of create_agent"
    return next(_reasons(agent, given, options, session), None)


def _reasons(agent: Any, given: Any, options: Mapping[str, Any], session: Session) -> Iterator[str]:
    kinds = [type(each) for each in middlewares_around(agent)]
    if kinds != [JournalMiddleware] or set(agent.nodes) - _NODES:
        yield "other middleware than JournalMiddleware sees its turns"
    if isinstance(given, Command) or not isinstance(given, Mapping) or set(given) != {"messages"}:  # pyright: ignore[reportUnknownArgumentType]
        yield "its input is more than messages"
    if more := sorted(state_of(agent) - _CHANNELS):
        yield f"its state holds more than messages ({', '.join(more)})"
    if agent.checkpointer not in (None, False):
        yield "it has a checkpointer"
    if agent.interrupt_before_nodes or agent.interrupt_after_nodes or _SEEN_BY_CALLER & set(options):
        yield "its caller is shown more than its last state"
    if not session.locked:
        yield "other workers may be at the run (lock=False)"
