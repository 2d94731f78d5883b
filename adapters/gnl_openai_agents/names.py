"""The names in ``policies=`` that no tool has: a typing error would leave a tool with another label.

Where every tool has its label by name, nothing can go wrong: the tool of a misspelt name has none, and is refused. Some tools are known only while an agent runs: those of MCP servers, of hooks, of subclasses. A name may be one of theirs
until the agent has told its tools.
"""

from collections.abc import Iterable, Mapping
from typing import Any
from weakref import WeakValueDictionary

from agents import Agent

from gnl_middleware.adapter import current_steps


class Names:
    """The names of the tools that one runner has seen.

    Args:
        given: The names in ``policies=``.
    """

    def __init__(self, given: Iterable[str]) -> None:
        self._missing = set(given)
        self._otherwise: set[str] = set()
        # By identity: agents cannot be hashed.
        self._untold: WeakValueDictionary[int, Agent[Any]] = WeakValueDictionary()
        self._boundless: WeakValueDictionary[int, Agent[Any]] = WeakValueDictionary()

    def see(self, name: str) -> None:
        """Note a tool."""
        self._missing.discard(name)

    def labelled_otherwise(self, name: str) -> None:
        """Note a tool that has its label from elsewhere; its name may have been meant."""
        self._otherwise.add(name)

    def expect_more(self, agent: Agent[Any]) -> None:
        """Note that an agent has tools which it tells only when it runs."""
        self._untold[id(agent)] = agent

    def expect_anything(self, agent: Agent[Any]) -> None:
        """Note that an agent may hand off to others which nobody knows."""
        self._boundless[id(agent)] = agent

    def told(self, agent: Agent[Any]) -> None:
        """Note that an agent has told its tools."""
        self._untold.pop(id(agent), None)

    def check(self) -> None:
        """Raise for names that no tool has, once all tools are known.

        Not inside a step: there it would be told to the model as the tool's failure.

        Raises:
            ValueError: There are some.
        """
        unclear = self._untold or self._boundless or current_steps()
        if not self._missing or not self._otherwise or unclear:
            return
        raise ValueError(
            f"policies= names tools that no agent of this runner has: {sorted(self._missing)}. A misspelt name leaves its tool "
            f"with another label, as these have: {sorted(self._otherwise)}. Correct the name. If it is a tool of an agent that "
            f"runs later, or inside a tool or guardrail, let the runner know that agent first: runner.wrap(agent)."
        )


def tells_more(agent: Agent[Any], own: Mapping[str, Any]) -> bool:
    """Whether an agent may come to have tools that do not stand in its list.

    Args:
        agent: The user's agent.
        own: The methods of ``Agent`` that give tools.
    """
    overridden = any(getattr(type(agent), name) is not method for name, method in own.items())
    return bool(agent.mcp_servers) or agent.hooks is not None or overridden
