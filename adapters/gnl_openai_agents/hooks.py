"""Refuse what would run past the journal: a local tool that nobody wrapped, before its body runs."""

from collections.abc import Callable
from typing import Any

from agents import RunHooks

from gnl_middleware import UnjournaledCallError
from gnl_middleware.adapter import current_session

from .errors import passing

_REMEDY = (
    "Wrap the agent before it runs: runner.wrap(agent), or runner.load_state(agent, text) for a saved state; give it its "
    "tools before the run."
)


class GuardHooks(RunHooks[Any]):
    """The user's hooks, and before them a check that each local tool is journalled.

    Args:
        hooks: The user's.
        is_journaled: Whether the journal sees a tool's calls.
    """

    def __init__(self, hooks: RunHooks[Any] | None, is_journaled: Callable[[Any], bool]) -> None:
        self._hooks: RunHooks[Any] = hooks or RunHooks()
        self._is_journaled = is_journaled

    async def on_tool_start(self, context: Any, agent: Any, tool: Any) -> None:
        """Refuse a tool that is not journalled."""
        session = current_session()
        if session is not None and not self._is_journaled(tool):
            error = UnjournaledCallError(kind="tool", name=str(getattr(tool, "name", tool)), remedy=_REMEDY)
            session.stop(passing(error))
        await self._hooks.on_tool_start(context, agent, tool)

    async def on_llm_start(self, context: Any, agent: Any, system_prompt: Any, input_items: Any) -> None:
        """Hand on."""
        await self._hooks.on_llm_start(context, agent, system_prompt, input_items)

    async def on_llm_end(self, context: Any, agent: Any, response: Any) -> None:
        """Hand on."""
        await self._hooks.on_llm_end(context, agent, response)

    async def on_agent_start(self, context: Any, agent: Any) -> None:
        """Hand on."""
        await self._hooks.on_agent_start(context, agent)

    async def on_agent_end(self, context: Any, agent: Any, output: Any) -> None:
        """Hand on."""
        await self._hooks.on_agent_end(context, agent, output)

    async def on_handoff(self, context: Any, from_agent: Any, to_agent: Any) -> None:
        """Hand on."""
        await self._hooks.on_handoff(context, from_agent, to_agent)

    async def on_tool_end(self, context: Any, agent: Any, tool: Any, result: Any) -> None:
        """Hand on."""
        await self._hooks.on_tool_end(context, agent, tool, result)
