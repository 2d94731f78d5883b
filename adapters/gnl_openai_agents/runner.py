"""``DurableRunner``: run agents of the SDK inside a run of the journal. The same call on every attempt."""

import contextlib
import os
from collections.abc import AsyncGenerator, Generator, Mapping
from contextvars import copy_context
from typing import Any

from agents import Agent, Runner, RunResult, RunResultStreaming, RunState

from gnl_middleware import Journal, RunBusyError
from gnl_middleware.adapter import OnNoRun, Policy, Session, as_journal, remember

from .given import Given
from .labels import Labels
from .runs import joined, session_around
from .sessions import leg_entered
from .streams import DurableStream
from .wrapping import Wrapping


class DurableRunner:
    """Runs agents as ``Runner`` does, through the journal. After a crash, the same call resumes where it stopped.

    Agents, tools, handoffs, models and sessions are wrapped in copies; the user's own objects stay as they are.

    Args:
        journal: A journal, a path or a URL.
        policies: Replay labels by tool name: ``{"create_ticket": never(recover=find_ticket)}``.
        default_policy: For tools that have no label; without it an unlabelled tool is refused.
        on_no_run: What wrapped agents do outside any run: ``raise`` NoActiveRunError, or ``passthrough``.

    Example:
        >>> runner = DurableRunner("runs.db", policies={"send_email": never})     # doctest: +SKIP
        >>> result = await runner.run(agent, "Please mail me my invoice.", run_id="support:42")     # doctest: +SKIP
    """

    def __init__(
        self,
        journal: Journal | str | os.PathLike[str] = "gnl.db",
        *,
        policies: Mapping[str, Policy] | None = None,
        default_policy: Policy | None = None,
        on_no_run: OnNoRun = "raise",
    ) -> None:
        self._journal = as_journal(journal)
        self._labels = Labels(policies=policies, default_policy=default_policy)
        self._on_no_run: OnNoRun = on_no_run
        self._wrapping = Wrapping(self._labels, on_no_run)
        # After a crash, an interrupted call may have to be settled before its agent is wrapped again.
        remember(self, self._labels.known)

    def wrap(self, agent: Agent[Any]) -> Agent[Any]:
        """A journalled copy of an agent and of all that can be reached from it, as for ``inner.as_tool(...)``.

        Raises:
            UnlabelledToolError: Some tools have no label; it names all of them.
            UnjournaledCallError: A tool or an agent cannot be journalled.

        Example:
            >>> helper = runner.wrap(helper)     # doctest: +SKIP
            >>> front = Agent(name="front", tools=[helper.as_tool("help", "Ask for help.")])     # doctest: +SKIP
        """
        return self._wrapping.agent(agent)

    async def load_state(self, agent: Agent[Any], text: str, **options: Any) -> RunState[Any, Any]:
        """A saved ``RunState``, with the agent wrapped first: loaded with the agent itself it would run past the journal.

        Args:
            agent: The agent that the state began with.
            text: What ``state.to_string()`` gave.
            **options: Those of ``RunState.from_string``.

        Example:
            >>> state = await runner.load_state(agent, text)     # doctest: +SKIP
            >>> state.approve(state.get_interruptions()[0])     # doctest: +SKIP
        """
        return await RunState.from_string(self.wrap(agent), text, **options)

    async def run(
        self,
        starting_agent: Agent[Any],
        input: Any,  # noqa: A002 - the SDK's name
        *,
        run_id: str | None = None,
        **options: Any,
    ) -> RunResult:
        """As ``Runner.run``, inside a run.

        Args:
            starting_agent: The agent.
            input: A text, items, or a state; another input under the same run id is refused.
            run_id: Names the job: an order, a queue message. None: the run that is open around the call.
            **options: Those of ``Runner.run`` and of ``Journal.run``; and ``resume``: how a long run goes on. ``replay`` runs
                the agent's loop through the record, ``handover`` gives it the turns that are over, where that makes no
                difference.

        Raises:
            UnlabelledToolError: A tool has no label.
            ValueError: ``resume="handover"`` with ``replay="strict"``, which compares every turn.
            NoActiveRunError: There is no run id, and no run is open around the call.
            GnlError: See ``Journal.run`` and the calls inside.

        Example:
            >>> (await runner.run(agent, "Please refund order 7.", run_id="support:42")).final_output     # doctest: +SKIP
        """
        given = Given(self._wrapping, starting_agent, input, options)
        async with self._opened(run_id, given) as session:
            try:
                with leg_entered(given.leg):
                    for_sdk = given.for_sdk(session)
                    begun = given.begun(session, run_id)
                    result = await Runner.run(given.agent, begun, **for_sdk)
            finally:
                await given.close()
            session.paused = bool(result.interruptions)
            return result

    def run_sync(
        self,
        starting_agent: Agent[Any],
        input: Any,  # noqa: A002 - the SDK's name
        *,
        run_id: str | None = None,
        **options: Any,
    ) -> RunResult:
        """As ``run``, from synchronous code.

        Example:
            >>> runner.run_sync(agent, "Please refund order 7.", run_id="support:42").final_output     # doctest: +SKIP
        """
        given = Given(self._wrapping, starting_agent, input, options)
        with self._opened_sync(run_id, given) as session:
            try:
                with leg_entered(given.leg):
                    for_sdk = given.for_sdk(session)
                    begun = given.begun(session, run_id)
                    result = Runner.run_sync(given.agent, begun, **for_sdk)
            finally:
                given.close_sync()
            session.paused = bool(result.interruptions)
            return result

    def run_streamed(
        self,
        starting_agent: Agent[Any],
        input: Any,  # noqa: A002 - the SDK's name
        *,
        run_id: str | None = None,
        **options: Any,
    ) -> DurableStream:
        """As ``Runner.run_streamed``, inside a run, which is left when the SDK's loop has ended.

        What stops the run surfaces from ``stream_events()``, or, where nobody reads the events, from
        ``run_loop_exception``. Without a run id, the run around the call must be held open until then. With
        ``on_busy="wait"`` it begins when the worker that holds the run has left it; until then the result is empty.

        Example:
            >>> streamed = runner.run_streamed(agent, "Please refund order 7.", run_id="support:42")     # doctest: +SKIP
            >>> async for event in streamed.stream_events(): ...     # doctest: +SKIP
        """
        given = Given(self._wrapping, starting_agent, input, options)
        given.refuse_handover()
        if run_id is None:
            return self._streamed(given, input, session_around())
        context = copy_context()
        at_once: dict[str, Any] = {**given.of_run, "on_busy": "raise"}
        run = self._journal.run(run_id, input=given.recorded, **at_once)
        try:
            context.run(run.__enter__)
        except RunBusyError:
            if given.of_run.get("on_busy") != "wait":
                raise
            return self._streamed_when_free(run_id, given, input)
        try:
            stream = context.run(self._streamed, given, input, run.session)
        except BaseException as error:
            context.run(run.__exit__, type(error), error, error.__traceback__)
            raise
        stream.leave_when_done(run, context, given.close, lambda: bool(stream.interruptions))
        return stream

    def _streamed_when_free(self, run_id: str, given: Given, input: Any) -> DurableStream:  # noqa: A002
        run = self._journal.run(run_id, input=given.recorded, **given.of_run)
        stream = DurableStream(given.not_begun(input), None)
        stream.begin_when_free(run, lambda: self._started(given, input, run.session), given.close)
        return stream

    def _streamed(self, given: Given, input: Any, session: Session) -> DurableStream:  # noqa: A002 - the SDK's name
        return DurableStream(self._started(given, input, session), session)

    def _started(self, given: Given, input: Any, session: Session) -> RunResultStreaming:  # noqa: A002
        with leg_entered(given.leg):
            return Runner.run_streamed(given.agent, input, **given.for_sdk(session))

    @contextlib.asynccontextmanager
    async def _opened(self, run_id: str | None, given: Given) -> AsyncGenerator[Session]:
        if run_id is None:
            with joined() as session:
                yield session
            return
        async with self._journal.run(run_id, input=given.recorded, **given.of_run) as run:
            yield run.session

    @contextlib.contextmanager
    def _opened_sync(self, run_id: str | None, given: Given) -> Generator[Session]:
        if run_id is None:
            with joined() as session:
                yield session
            return
        with self._journal.run(run_id, input=given.recorded, **given.of_run) as run:
            yield run.session
