"""``JournalCallbackHandler``: watch an agent as it is, record what it does, or compare a re-run with its record."""

import os
import threading
from collections.abc import Iterable, Mapping
from typing import Any
from uuid import UUID

from langchain_core.messages import BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult, LLMResult

from gnl_middleware import Journal, Run, never
from gnl_middleware.adapter import (
    ModelCall,
    Observation,
    Policy,
    ToolCall,
    as_journal,
    observe,
    request_of,
)

from . import replies
from .described import described
from .errors import UnjournaledCallError, passing
from .graphs import GraphChain, chain_around
from .labels import Labels, Tool
from .requests import UNKNOWN_SETUP
from .tools import ending

_REMEDY = (
    "verify=True compares and cannot serve results: this call matches its record, and its effect would happen again. Give a "
    "tool that may run again as safe=[...], or replay the run with the wrapped agent."
)


class JournalCallbackHandler(GraphChain):
    """Add it to any agent: ``config={"callbacks": [JournalCallbackHandler(journal, run_id="support:42")]}``.

    It writes every model and tool call to the journal, the intent before and the outcome after; if the intent cannot be
    written, the call does not run. Nothing else changes. What it cannot do: serve results. A run that it recorded is
    replayed, and resumed after a crash, by the wrapped agent (``JournalMiddleware``, ``run_durable``). A callback blocks the
    event loop while it writes. With ``verify=True`` it compares a re-run with the record: a call that differs raises
    ``DivergenceError`` before its body, and a recorded call that is not ``safe`` is stopped before its body runs again.

    Args:
        journal: A journal, a path or a URL.
        run_id: Names the job.
        verify: Compare instead of recording.
        policies: Replay labels by tool name or pattern.
        safe: Tools, functions or names that may run twice.
        keyed: Those that may run twice with their idempotency key.
        never: Those that must not run twice.
        default_policy: For all others.

    Raises:
        ValueError: When the agent begins: the run has a record already, and ``verify`` is not set.
    """

    def __init__(
        self,
        journal: Journal | str | os.PathLike[str],
        *,
        run_id: str,
        verify: bool = False,
        policies: Mapping[str, Policy] | None = None,
        safe: Iterable[Tool] = (),
        keyed: Iterable[Tool] = (),
        never: Iterable[Tool] = (),
        default_policy: Policy = never,
    ) -> None:
        self._journal, self._run_id, self._verify = as_journal(journal), run_id, verify
        self._labels = Labels(
            policies=policies, safe=safe, keyed=keyed, never=never, default_policy=default_policy
        )
        self._lock = threading.RLock()
        self._run: Run | None = None
        self._root: UUID | None = None
        self._watched: dict[UUID, Observation] = {}
        self._around: dict[UUID, Observation | None] = {}

    def on_chain_start(
        self,
        serialized: dict[str, Any],
        inputs: dict[str, Any],
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        metadata: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """The agent begins, or something inside of it."""
        super().on_chain_start(
            serialized, inputs, run_id=run_id, parent_run_id=parent_run_id, metadata=metadata
        )
        self._join(run_id, parent_run_id)

    def on_chain_end(self, outputs: Any, *, run_id: UUID, **kwargs: Any) -> None:
        """It is over."""
        super().on_chain_end(outputs, run_id=run_id)
        self._end(run_id)

    def on_chain_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """It is over."""
        super().on_chain_error(error, run_id=run_id)
        self._end(run_id, error)

    def on_chat_model_start(
        self,
        serialized: dict[str, Any],
        messages: list[list[BaseMessage]],
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        metadata: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """A model is about to be asked."""
        super().on_chat_model_start(
            serialized, messages, run_id=run_id, parent_run_id=parent_run_id, metadata=metadata
        )
        run = self._join(run_id, parent_run_id)
        told, parts = described(run.session, messages[0])
        call = ModelCall(
            name=str((metadata or {}).get("ls_model_name") or kwargs.get("name") or "model"),
            request=request_of(told, parts, UNKNOWN_SETUP),
            messages=told,
            encode=replies.encode,
            describe=replies.describe,
            as_control=passing,
            places=chain_around(parent_run_id) or (),
        )
        self._watched[run_id] = observe(run.session, call, self._around[run_id])

    def on_llm_end(self, response: LLMResult, *, run_id: UUID, **kwargs: Any) -> None:
        """It has answered."""
        generations = [each for each in response.generations[0] if isinstance(each, ChatGeneration)]
        if (watched := self._watched.pop(run_id, None)) is not None:
            watched.succeed(ChatResult(generations=generations, llm_output=response.llm_output))
        self._end(run_id)

    def on_llm_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """It has failed."""
        self._failed(run_id, error)

    def on_tool_start(
        self,
        serialized: dict[str, Any],
        input_str: str,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        metadata: dict[str, Any] | None = None,
        inputs: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """A tool is about to run."""
        super().on_tool_start(
            serialized, input_str, run_id=run_id, parent_run_id=parent_run_id, metadata=metadata
        )
        run = self._join(run_id, parent_run_id)
        name = str((serialized or {}).get("name") or kwargs.get("name") or "tool")
        call = ToolCall(
            name=name,
            policy=self._labels.of_call(name),
            arguments=input_str if inputs is None else inputs,
            call_id=str(kwargs.get("tool_call_id") or ""),
            ending=ending,
            as_control=passing,
            places=chain_around(parent_run_id) or (),
        )
        watched = observe(run.session, call, self._around[run_id])
        if watched.recorded and call.policy.label != "safe":
            run.session.stop(UnjournaledCallError(kind="tool", name=name, remedy=_REMEDY))
        self._watched[run_id] = watched
        self._around[run_id] = watched

    def on_tool_end(self, output: Any, *, run_id: UUID, **kwargs: Any) -> None:
        """It has returned."""
        super().on_tool_end(output, run_id=run_id)
        if (watched := self._watched.pop(run_id, None)) is not None:
            watched.succeed(output)
        self._end(run_id)

    def on_tool_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """It has failed."""
        super().on_tool_error(error, run_id=run_id)
        self._failed(run_id, error)

    def _join(self, run_id: UUID, parent_run_id: UUID | None) -> Run:
        with self._lock:
            if self._run is None:
                self._run, self._root = self._opened(), run_id
            self._around[run_id] = None if parent_run_id is None else self._around.get(parent_run_id)
            return self._run

    def _opened(self) -> Run:
        run = self._journal.run(self._run_id, replay="strict" if self._verify else "lenient").apart()
        opened = run.__enter__()
        has_record = opened.attempt > 1 or opened.session.forked_from is not None
        if has_record and not self._verify:
            error = ValueError(
                f"run {self._run_id!r} has a record, and a callback handler can serve nothing of it: resume it with the "
                "wrapped agent, or give verify=True to compare"
            )
            run.__exit__(ValueError, error, None)
            raise error
        return opened

    def _failed(self, run_id: UUID, error: BaseException) -> None:
        if (watched := self._watched.pop(run_id, None)) is not None and isinstance(error, Exception):
            watched.fail(error)
        self._end(run_id, error)

    def _end(self, run_id: UUID, error: BaseException | None = None) -> None:
        with self._lock:
            self._around.pop(run_id, None)
            if run_id != self._root or self._run is None:
                return
            run, self._run, self._root = self._run, None, None
        run.__exit__(None if error is None else type(error), error, None)
