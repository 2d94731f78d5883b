"""``run_durable``: open the run, call the agent, leave the run. The same call on every attempt."""

import os
from collections.abc import AsyncGenerator, Generator, Mapping
from dataclasses import dataclass
from typing import Any

from langchain_core.callbacks import BaseCallbackManager
from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.types import Command

from gnl_middleware import Journal, Run
from gnl_middleware.adapter import Resume, Session, as_journal, wants_handover

from .guard import JournalGuard
from .resuming import resumed
from .runs import RUN_ID
from .streams import closing_within, closing_within_async, each_within, each_within_async
from .threads import input_again, input_again_async
from .values import plain

_PAUSED = "__interrupt__"
_OF_THE_AGENT = frozenset(
    {
        *(
            "durability",
            "context",
            "stream_mode",
            "print_mode",
            "output_keys",
            "subgraphs",
            "version",
            "debug",
        ),
        *("interrupt_before", "interrupt_after", "stop"),
    }
)
"""Options that are the agent's; all others are those of ``Journal.run``, which refuses the ones that it does not know."""

_Journal = Journal | str | os.PathLike[str]


def run_durable(
    agent: Runnable[Any, Any],
    input: Any,  # noqa: A002 - the word that LangChain uses
    *,
    run_id: str,
    journal: _Journal = "gnl.db",
    config: RunnableConfig | None = None,
    resume: Resume = "replay",
    **options: Any,
) -> Any:
    """Invoke an agent, graph or chain inside a run. After a crash, the same call resumes where it stopped.

    On a thread of a checkpointer that this run has begun, the input is not given again.

    Args:
        agent: Any runnable whose models and tools are journalled.
        input: What it is invoked with; another input under the same run id is refused.
        run_id: Names the job: an order, a queue message.
        journal: A journal, a path or a URL.
        config: As for ``invoke``.
        resume: How a long run goes on: ``replay`` runs the agent's loop through the record, ``handover`` gives an agent of
            ``create_agent`` the turns that are over as its history, where that makes no difference.
        **options: Those of ``Journal.run``, and the graph's own, such as ``durability`` and ``context``.

    Raises:
        ValueError: ``resume="handover"`` with ``replay="strict"``, which compares every turn.
        UnjournaledCallError: A model or tool would run past the journal.
        GnlError: See ``Journal.run`` and the calls inside.

    Example:
        >>> run_durable(agent, {"messages": [("user", "refund 7")]}, run_id="support:42")     # doctest: +SKIP
    """
    of_agent, of_run = _sorted(options)
    handover = wants_handover(resume, of_run.get("replay"))
    with _run(journal, run_id, input, of_run) as run:
        call = _prepared(agent, config, input, run.session)
        with resumed(agent, input, of_agent, run.session, handover=handover):
            result = agent.invoke(call.input, call.config, **of_agent)
        run.session.paused = _is_pause(result)
        return result


async def arun_durable(
    agent: Runnable[Any, Any],
    input: Any,  # noqa: A002 - the word that LangChain uses
    *,
    run_id: str,
    journal: _Journal = "gnl.db",
    config: RunnableConfig | None = None,
    resume: Resume = "replay",
    **options: Any,
) -> Any:
    """As ``run_durable``, with ``ainvoke``.

    Example:
        >>> await arun_durable(agent, question, run_id="support:42", journal="runs.db")     # doctest: +SKIP
    """
    of_agent, of_run = _sorted(options)
    handover = wants_handover(resume, of_run.get("replay"))
    async with _run(journal, run_id, input, of_run) as run:
        call = await _prepared_async(agent, config, input, run.session)
        with resumed(agent, input, of_agent, run.session, handover=handover):
            result = await agent.ainvoke(call.input, call.config, **of_agent)
        run.session.paused = _is_pause(result)
        return result


def stream_durable(
    agent: Runnable[Any, Any],
    input: Any,  # noqa: A002 - the word that LangChain uses
    *,
    run_id: str,
    journal: _Journal = "gnl.db",
    config: RunnableConfig | None = None,
    **options: Any,
) -> Generator[Any]:
    """As ``run_durable``, with ``stream``: recorded chunks come back with the boundaries at which they came.

    The run is open while the stream is consumed. A consumer that stops early, or closes the generator, loses no finished
    outcome: the run ends as interrupted, and the same call goes on. Use it as ``with closing(stream_durable(...)) as chunks:``
    where you may stop early, so that the run is left at once.

    Args:
        agent: Any runnable whose models and tools are journalled.
        input: As for ``run_durable``.
        run_id: As for ``run_durable``.
        journal: As for ``run_durable``.
        config: As for ``stream``.
        **options: Those of ``Journal.run``, and those of ``stream``: ``stream_mode``, ``subgraphs``, ``durability``.

    Raises:
        UnjournaledCallError: A model or tool would run past the journal.
        GnlError: See ``Journal.run`` and the calls inside.

    Example:
        >>> for part in stream_durable(agent, question, run_id="chat:42:7", stream_mode="messages"):     # doctest: +SKIP
        ...     show(part)
    """
    of_agent, of_run = _sorted_for_stream(options)
    with _run(journal, run_id, input, of_run).apart() as run:
        with run.inside():
            call = _prepared(agent, config, input, run.session)
            chunks = agent.stream(call.input, call.config, **of_agent)
        with closing_within(chunks, run.inside):
            for chunk in each_within(chunks, run.inside):
                run.session.paused = run.session.paused or _is_streamed_pause(chunk)
                yield chunk


async def astream_durable(
    agent: Runnable[Any, Any],
    input: Any,  # noqa: A002 - the word that LangChain uses
    *,
    run_id: str,
    journal: _Journal = "gnl.db",
    config: RunnableConfig | None = None,
    **options: Any,
) -> AsyncGenerator[Any]:
    """As ``stream_durable``, with ``astream``; use it inside ``contextlib.aclosing`` where you may stop early.

    Example:
        >>> chunks = astream_durable(agent, question, run_id="support:42")     # doctest: +SKIP
        >>> async for chunk in chunks: ...     # doctest: +SKIP
    """
    of_agent, of_run = _sorted_for_stream(options)
    async with _run(journal, run_id, input, of_run).apart() as run:
        with run.inside():
            call = await _prepared_async(agent, config, input, run.session)
            chunks = agent.astream(call.input, call.config, **of_agent)
        async with closing_within_async(chunks, run.inside):
            async for chunk in each_within_async(chunks, run.inside):
                run.session.paused = run.session.paused or _is_streamed_pause(chunk)
                yield chunk


@dataclass(frozen=True, slots=True)
class _Prepared:
    """What the agent is really called with."""

    input: Any
    config: RunnableConfig


def _prepared(agent: Any, config: RunnableConfig | None, given: Any, session: Session) -> _Prepared:
    configured = _configured(config, session)
    return _Prepared(input_again(agent, configured, given, session), configured)


async def _prepared_async(
    agent: Any, config: RunnableConfig | None, given: Any, session: Session
) -> _Prepared:
    configured = _configured(config, session)
    return _Prepared(await input_again_async(agent, configured, given, session), configured)


def _sorted_for_stream(options: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """As ``_sorted``; a stream tells of every turn, also of those that are over.

    Raises:
        ValueError: They were asked to be handed over.
    """
    if options.get("resume", "replay") != "replay":
        raise ValueError(
            'resume="handover" is for run_durable and arun_durable: a stream tells of the turns that are over, too'
        )
    return _sorted({name: value for name, value in options.items() if name != "resume"})


def _sorted(options: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    of_agent = {name: value for name, value in options.items() if name in _OF_THE_AGENT}
    return of_agent, {name: value for name, value in options.items() if name not in _OF_THE_AGENT}


def _run(journal: _Journal, run_id: str, given: Any, options: Mapping[str, Any]) -> Run:
    # Resuming from an approval is the same job, not another input.
    recorded = None if given is None or isinstance(given, Command) else plain(given)
    return as_journal(journal).run(run_id, input=recorded, **options)


def _is_pause(result: Any) -> bool:
    return isinstance(result, dict) and _PAUSED in result


def _is_streamed_pause(chunk: Any) -> bool:
    """Whether a chunk tells of an interrupt: an update by itself, or behind its namespace or its mode, or both."""
    return any(_is_pause(part) for part in chunk) if isinstance(chunk, tuple) else _is_pause(chunk)  # pyright: ignore[reportUnknownVariableType]


def _configured(config: RunnableConfig | None, session: Session) -> RunnableConfig:
    """The caller's configuration, with the run's id and the guard; the caller's object stays as it is."""
    given: RunnableConfig = config or {}
    configured = RunnableConfig(**given)
    configured["configurable"] = {**given.get("configurable", {}), RUN_ID: session.run_id}
    callbacks = given.get("callbacks")
    guard = JournalGuard(session)
    if isinstance(callbacks, BaseCallbackManager):
        manager = callbacks.copy()
        manager.add_handler(guard)
        configured["callbacks"] = manager
    else:
        configured["callbacks"] = [*(callbacks or []), guard]
    return configured
