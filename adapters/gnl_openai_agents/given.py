"""What a caller gives to ``DurableRunner``: what of it is for the run, and what for the SDK, wrapped."""

import asyncio
import inspect
import warnings
from collections.abc import Mapping
from typing import Any, cast

from agents import Agent, ModelProvider, MultiProvider, RunConfig, RunResultStreaming, RunState

from gnl_middleware import Journal, UnjournaledCallError
from gnl_middleware.adapter import Session, wants_handover

from .errors import passing
from .handover import Handover
from .hooks import GuardHooks
from .private import agents_in, not_begun, replies_in
from .requests import items_of
from .sessions import journaled_session
from .wrapping import Wrapping, is_journaled, is_journaled_tool

_OF_RUN = frozenset(inspect.signature(Journal.run).parameters) - {"self", "run_id", "input"}
_LOAD = "Load it with `await runner.load_state(agent, text)`, which wraps the agent first."


class Given:
    """One call of a runner.

    Args:
        wrapping: Wraps what is given.
        agent: The agent to begin with.
        given: The input: a text, items, or a state.
        options: Those of ``Runner.run`` and of ``Journal.run``.

    Raises:
        UnlabelledToolError: A tool has no label.
        UnjournaledCallError: Something that cannot be journalled was given.
        ValueError: A strict replay was asked to hand over.
    """

    def __init__(self, wrapping: Wrapping, agent: Agent[Any], given: Any, options: Mapping[str, Any]) -> None:
        self.of_run = {name: option for name, option in options.items() if name in _OF_RUN}
        self._of_sdk = {
            name: option for name, option in options.items() if name not in _OF_RUN and name != "resume"
        }
        self._handover = wants_handover(options.get("resume", "replay"), options.get("replay"))
        self._given = given
        self._wrapping = wrapping
        self.agent = _begun_with(given) or wrapping.agent(agent)
        # Going on from an approval is the same job, not another input.
        is_state = isinstance(given, RunState)
        self.recorded = None if is_state else (given if isinstance(given, str) else items_of(given))
        self.leg = replies_in(cast("RunState[Any, Any]", given)) if is_state else 0
        self._own_provider: ModelProvider | None = None
        wrapping.check_names(self.agent, hooked=options.get("hooks") is not None)
        self._config = self._configured(options.get("run_config"))
        self._session = options.get("session") and journaled_session(options["session"])

    def for_sdk(self, session: Session) -> dict[str, Any]:
        """The options for the SDK: wrapped, and with the hooks that refuse what escaped."""
        session.register(self._wrapping.labels.known)
        return {
            **self._of_sdk,
            "run_config": self._config,
            "session": self._session,
            "hooks": GuardHooks(self._of_sdk.get("hooks"), is_journaled_tool),
        }

    def begun(self, session: Session, run_id: str | None) -> Any:
        """The input for the SDK; or, where that was asked for and makes no difference, a state with all that is over."""
        if not self._handover:
            return self._given
        return Handover(self.agent, self._given, self._of_sdk, self._config).begin(session, run_id)

    def refuse_handover(self) -> None:
        """Refuse to hand over what a stream has to tell.

        Raises:
            ValueError: It was asked for.
        """
        if self._handover:
            raise ValueError(
                'resume="handover" is for run and run_sync: a stream tells of the turns that are over, too'
            )

    def not_begun(self, given: Any) -> RunResultStreaming:
        """What a streamed run shows while it waits for another worker."""
        shown = "" if isinstance(given, RunState) else given
        return not_begun(self.agent, shown, self._of_sdk.get("context"), self._of_sdk.get("max_turns"))

    def _configured(self, given: Any) -> RunConfig:
        config: Any = given
        if given is None or isinstance(given, dict):
            settings = cast("dict[str, Any]", {} if given is None else given)
            # The SDK closes only a provider that it has made itself.
            if "model_provider" not in settings:
                self._own_provider = MultiProvider()
                settings = settings | {"model_provider": self._own_provider}
            config = cast("Any", RunConfig)(**settings)
        return self._wrapping.run_config(config)

    async def close(self) -> None:
        """Close the provider that was made for this call, if one was."""
        if self._own_provider is not None:
            await self._own_provider.aclose()

    def close_sync(self) -> None:
        """As ``close``, on the event loop that ``Runner.run_sync`` has used: connections belong to it."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)
                loop = asyncio.get_event_loop()
        except RuntimeError:
            return  # the SDK refused to run before it had a loop
        if not loop.is_running():
            loop.run_until_complete(self.close())


def _begun_with(given: Any) -> Agent[Any] | None:
    """The journalled agent that a state began with; its tools are those that the state stopped at.

    Raises:
        UnjournaledCallError: The state was loaded with an agent that is not journalled.
    """
    if not isinstance(given, RunState):
        return None
    agents = [agent for agent in agents_in(cast("RunState[Any, Any]", given)) if agent is not None]
    for agent in agents:
        if not is_journaled(agent):
            raise passing(UnjournaledCallError(kind="agent of a saved state", name=agent.name, remedy=_LOAD))
    return agents[0] if agents else None
