"""Where a thread of a checkpointer stands when a run goes on with it: what was given to it, and which rounds it has come to."""

from collections.abc import Mapping
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.types import Command

from gnl_middleware.adapter import FunctionCall, Session, perform, perform_async

from .errors import passing

_TAKES_A_ROUND = ("update", "fork")
"""Sources of checkpoints that no node has made: ``update_state``, and going on from an older checkpoint."""


def input_again(agent: Any, config: RunnableConfig, given: Any, session: Session) -> Any:
    """The input, or None where this run has given it to the thread already: the checkpoint holds it then."""
    if not _is_on_thread(agent, config):
        return given
    state = agent.get_state(config)
    if not isinstance(given, Command):
        now = _checkpoint(state)
        before = perform(session, _thread_call(config), lambda: now)
        given = given if before == now else None
    made = state
    while _source(made) in _TAKES_A_ROUND and made.parent_config is not None:
        made = agent.get_state(made.parent_config)
    session.note_shift(_shift(state, made, config, given))
    return given  # pyright: ignore[reportUnknownVariableType]


async def input_again_async(agent: Any, config: RunnableConfig, given: Any, session: Session) -> Any:
    """As ``input_again``."""
    if not _is_on_thread(agent, config):
        return given
    state = await agent.aget_state(config)
    if not isinstance(given, Command):
        now = _checkpoint(state)

        async def current() -> Any:
            return now

        before = await perform_async(session, _thread_call(config), current)
        given = given if before == now else None
    made = state
    while _source(made) in _TAKES_A_ROUND and made.parent_config is not None:
        made = await agent.aget_state(made.parent_config)
    session.note_shift(_shift(state, made, config, given))
    return given  # pyright: ignore[reportUnknownVariableType]


def _is_on_thread(agent: Any, config: RunnableConfig) -> bool:
    has_saver = getattr(agent, "checkpointer", None) not in (None, False, True)
    return has_saver and "thread_id" in config.get("configurable", {})


def _source(state: Any) -> str | None:
    metadata: Mapping[str, Any] = state.metadata or {}
    return metadata.get("source")


def _step(state: Any) -> int:
    metadata: Mapping[str, Any] = state.metadata or {}
    return metadata.get("step", 0)


def _shift(state: Any, made: Any, config: RunnableConfig, given: Any) -> int:
    """How many rounds later than in the record a task comes now.

    Args:
        state: Where the thread stands.
        made: The last checkpoint before it that a node made.
        config: May name a checkpoint: LangGraph saves a fork of that one first, unless it is one already.
        given: What the graph is given.
    """
    is_addressed = given is None and bool(config.get("configurable", {}).get("checkpoint_id"))
    return _step(state) - _step(made) + (is_addressed and _source(state) not in _TAKES_A_ROUND)


def _checkpoint(state: Any) -> str | None:
    """The id of the thread's last checkpoint, or None for a thread that holds nothing yet."""
    config: dict[str, Any] = state.config or {}
    configurable: dict[str, Any] = config.get("configurable", {})
    return configurable.get("checkpoint_id") if state.values or state.next else None


def _thread_call(config: RunnableConfig) -> FunctionCall:
    """A recorded value: where the thread stood when this run began."""
    arguments = {"thread_id": str(config.get("configurable", {}).get("thread_id"))}
    return FunctionCall(name="thread_before_run", arguments=arguments, kind="value", as_control=passing)
