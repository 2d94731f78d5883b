"""Journalled copies of agents, with all that can be reached from them; the user's objects stay as they are."""

import copy
import inspect
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any, cast

from agents import Agent, FunctionTool, Handoff, Model, RunConfig
from agents.sandbox import SandboxAgent

from gnl_middleware import UnjournaledCallError
from gnl_middleware.adapter import OnNoRun, current_session

from .errors import is_ours, passing
from .guardrails import journaled_guardrail
from .hooks import GuardHooks
from .kinds import is_journaled_kind, is_local, journaled_kind, refuse_unjournalable
from .labels import Labels, name_of
from .models import journaled_model, journaled_provider
from .names import tells_more
from .private import JournaledInvoker, agent_of, aim, target_of
from .sessions import journaled_session
from .tools import journaled_agent_tool, journaled_function_tool, warn_of_leaf

_WRAPPING = "_gnl_wrapping"
_GIVES_TOOLS = {name: getattr(Agent, name) for name in ("get_mcp_tools", "get_all_tools")}
_REMEDY = "This adapter cannot journal what happens in a sandbox. Use agents without one, or run without this runner."


def is_journaled(agent: Any) -> bool:
    """Whether an agent is a journalled copy."""
    return _WRAPPING in getattr(agent, "__dict__", {})


def is_journaled_tool(tool: Any) -> bool:
    """Whether the journal sees the calls of a tool; those that a provider runs itself are part of its reply."""
    if isinstance(tool, FunctionTool):
        return isinstance(tool.on_invoke_tool, JournaledInvoker)
    return is_journaled_kind(tool)


class Wrapping:
    """Wraps agents for one runner.

    Args:
        labels: The policies of its tools.
        on_no_run: What wrapped agents do outside any run.
    """

    def __init__(self, labels: Labels, on_no_run: OnNoRun) -> None:
        self.labels = labels
        self.on_no_run: OnNoRun = on_no_run

    def agent(self, agent: Agent[Any]) -> Agent[Any]:
        """A journalled copy of an agent; itself if it is one.

        Raises:
            UnlabelledToolError: Some tools that can be reached have no label; it names all of them.
            UnjournaledCallError: A tool or an agent cannot be journalled.
        """
        found: dict[int, Agent[Any]] = {}
        unlabelled: list[Any] = []
        wrapped = self._agent(agent, found, unlabelled)
        self.labels.check(unlabelled)
        return wrapped

    def _agent(self, agent: Agent[Any], found: dict[int, Agent[Any]], unlabelled: list[Any]) -> Agent[Any]:
        if is_journaled(agent):
            return agent
        if id(agent) in found:
            return found[id(agent)]
        if isinstance(agent, SandboxAgent):
            raise passing(UnjournaledCallError(kind="agent", name=agent.name, remedy=_REMEDY))
        wrapped = _copied(agent)
        # Before what is reached from here: handoffs go in circles. It also keeps alive what handoffs only refer to.
        found[id(agent)] = wrapped
        parts = wrapped.__dict__
        parts[_WRAPPING] = self
        parts["_gnl_graph"] = found
        parts["_gnl_tools"] = dict[int, tuple[Any, Any]]()
        if tells_more(agent, _GIVES_TOOLS):
            self.labels.names.expect_more(wrapped)
        if isinstance(agent.model, Model):
            parts["model"] = journaled_model(agent.model, self.on_no_run)
        parts["tools"] = [self._tool(tool, unlabelled) for tool in agent.tools]
        parts["handoffs"] = [self._handoff(handoff, found, unlabelled) for handoff in agent.handoffs]
        if any(isinstance(each, Handoff) and target_of(each) is None for each in agent.handoffs):
            self.labels.names.expect_anything(wrapped)
        for name in ("input_guardrails", "output_guardrails"):
            parts[name] = [journaled_guardrail(each, self.on_no_run) for each in getattr(agent, name)]
        return wrapped

    def _tool(self, tool: Any, unlabelled: list[Any]) -> Any:
        refuse_unjournalable(tool)
        self.labels.names.see(name_of(tool))
        if is_journaled_tool(tool):
            return tool
        if isinstance(tool, FunctionTool):
            if is_journaled(inner := agent_of(tool)):
                return journaled_agent_tool(tool, self.on_no_run)
            if inner is not None:
                warn_of_leaf(tool)
        elif not is_local(tool):
            return tool
        policy = self.labels.find(tool)
        if policy is None:
            unlabelled.append(tool)
            return tool
        if isinstance(tool, FunctionTool):
            return journaled_function_tool(tool, policy, self.on_no_run)
        return journaled_kind(tool, policy, self.on_no_run)

    def _handoff(
        self, handoff: Any, found: dict[int, Agent[Any]], unlabelled: list[Any]
    ) -> Agent[Any] | Handoff[Any, Any]:
        if isinstance(handoff, Agent):
            return self._agent(cast("Agent[Any]", handoff), found, unlabelled)
        # Not dataclasses.replace: it would forget the target, by which a saved state finds its agents.
        copied: Handoff[Any, Any] = copy.copy(handoff)
        invoked = handoff.on_invoke_handoff

        async def on_invoke_handoff(context: Any, arguments: Any = None) -> Any:
            missing: list[Any] = []
            reached = self._agent(await invoked(context, arguments), found, missing)
            self._checked(lambda: self.labels.check(missing))
            return reached

        copied.on_invoke_handoff = on_invoke_handoff
        if isinstance(target := target_of(handoff), Agent):
            aim(copied, self._agent(cast("Agent[Any]", target), found, unlabelled))
        return copied

    def tools_of(self, agent: Agent[Any], tools: Iterable[Any]) -> list[Any]:
        """The tools that an agent comes to have while it runs, journalled: those of MCP servers, of hooks, of subclasses."""
        known: dict[int, tuple[Any, Any]] = agent.__dict__["_gnl_tools"]
        return [self._dynamic(tool, known) for tool in tools]

    def _dynamic(self, tool: Any, known: dict[int, tuple[Any, Any]]) -> Any:
        self.labels.names.see(name_of(tool))
        if is_journaled_tool(tool):
            return tool
        # The same copy each time: a run that is resumed compares its tools with those that it stopped at.
        if id(tool) not in known:
            unlabelled: list[Any] = []
            wrapped = self._checked(lambda: self._tool(tool, unlabelled))
            self._checked(lambda: self.labels.check(unlabelled))
            known[id(tool)] = (tool, wrapped)
            if (session := current_session()) is not None:
                session.register(self.labels.known)
        return known[id(tool)][1]

    def _checked(self, check: Callable[[], Any]) -> Any:
        """What a check gives; where it refuses, the run stops."""
        try:
            return check()
        except Exception as error:
            if is_ours(error) and (session := current_session()) is not None:
                session.stop(cast("Any", error))
            raise

    def check_names(self, agent: Agent[Any], *, hooked: bool) -> None:
        """Raise where ``policies=`` names no tool, as an agent begins to run.

        Args:
            agent: The journalled agent.
            hooked: The run has hooks, which may give tools to any agent when it starts.

        Raises:
            ValueError: No tool has one of the names.
        """
        if hooked:
            for reached in agent.__dict__["_gnl_graph"].values():
                self.labels.names.expect_more(reached)
        self.labels.names.check()

    def run_config(self, given: RunConfig) -> RunConfig:
        """A copy of a run's configuration whose models and guardrails are journalled."""
        if given.sandbox is not None:
            raise passing(UnjournaledCallError(kind="sandbox", name="RunConfig.sandbox", remedy=_REMEDY))
        config = copy.copy(given)
        config.model_provider = journaled_provider(given.model_provider, self.on_no_run)
        if isinstance(given.model, Model):
            config.model = journaled_model(given.model, self.on_no_run)
        for name in ("input_guardrails", "output_guardrails"):
            if (guardrails := getattr(given, name)) is not None:
                setattr(config, name, [journaled_guardrail(each, self.on_no_run) for each in guardrails])
        return config


def _original(above: Any) -> Any:
    """What stands above a mixin in the class of a copy: the user's class."""
    return above


class _Journaled:
    """What a journalled copy of an agent does differently."""

    @property
    def _gnl(self) -> Wrapping:
        return self.__dict__[_WRAPPING]

    async def get_mcp_tools(self, run_context: Any) -> list[Any]:
        found = await _original(super()).get_mcp_tools(run_context)
        return self._gnl.tools_of(cast("Any", self), found)

    async def get_all_tools(self, run_context: Any) -> list[Any]:
        found = await _original(super()).get_all_tools(run_context)
        tools = self._gnl.tools_of(cast("Any", self), found)
        self._gnl.labels.names.told(cast("Any", self))
        self._gnl.labels.names.check()
        return tools

    def as_tool(self, *given: Any, **options: Any) -> FunctionTool:
        make = _original(super()).as_tool
        bound = inspect.signature(make).bind(*given, **options).arguments
        if (config := bound.get("run_config")) is not None:
            settings: Any = config
            config = RunConfig(**settings) if isinstance(config, dict) else config
            bound["run_config"] = self._gnl.run_config(config)
        bound["hooks"] = GuardHooks(bound.get("hooks"), is_journaled_tool)
        if bound.get("session") is not None:
            bound["session"] = journaled_session(bound["session"])
        return journaled_agent_tool(make(**bound), self._gnl.on_no_run)

    def clone(self, **changes: Any) -> Any:
        return self._gnl.agent(_original(super()).clone(**changes))


@cache
def _journaled_class(kind: type[Agent[Any]]) -> type[Agent[Any]]:
    names = {"__module__": kind.__module__, "__doc__": kind.__doc__, "__qualname__": kind.__qualname__}
    return type(kind.__name__, (_Journaled, kind), names)


def _copied(agent: Agent[Any]) -> Agent[Any]:
    """A shallow copy, without running the constructor."""
    kind = type(agent)
    copied = object.__new__(kind if issubclass(kind, _Journaled) else _journaled_class(kind))
    copied.__dict__.update(agent.__dict__)
    return copied
