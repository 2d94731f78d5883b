"""Refuse what would run past the journal: a model or a tool that nobody wrapped, before its body runs.

A call inside the body of a journalled tool is part of that tool's step and is not looked at.
"""

from typing import Any
from uuid import UUID

from langchain_core.messages import BaseMessage

from gnl_middleware.adapter import Session, current_steps

from .errors import UnjournaledCallError
from .graphs import GraphChain
from .models import MARK

_MODEL_REMEDY = (
    "Put JournalMiddleware last in create_agent(middleware=[...]), and give models of your own or of other middlewares as "
    "journaled_model(model)."
)
_TOOL_REMEDY = (
    "Let create_agent call it with JournalMiddleware last in middleware=[...], or make its work a plain function: "
    "@journaled(replay=never)."
)


class JournalGuard(GraphChain):
    """A callback handler that raises UnjournaledCallError before the body of an unwrapped model or tool runs.

    It also follows the nodes of graphs, in place of the handler that does so elsewhere: LangChain leaves the coroutine of a
    handler that stands behind one which refuses, and keeps no order among them.

    Args:
        session: The run that must see every call.
    """

    def __init__(self, session: Session) -> None:
        self._session = session

    def on_chat_model_start(
        self,
        serialized: dict[str, Any],
        messages: list[list[BaseMessage]],
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        tags: list[str] | None = None,
        metadata: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Refuse a chat model that is not a journalled copy."""
        super().on_chat_model_start(
            serialized, messages, run_id=run_id, parent_run_id=parent_run_id, metadata=metadata
        )
        if not current_steps() and not (metadata or {}).get(MARK):
            self._refuse(
                "model", str((metadata or {}).get("ls_model_name") or kwargs.get("name") or "unknown")
            )

    def on_llm_start(
        self, serialized: dict[str, Any], prompts: list[str], *, run_id: UUID, **kwargs: Any
    ) -> None:
        """Refuse a text completion model: it has no journalled form."""
        if not current_steps():
            self._refuse("model", str(kwargs.get("name") or serialized.get("name") or "unknown"))

    def on_tool_start(
        self,
        serialized: dict[str, Any],
        input_str: str,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        metadata: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Refuse a tool that is not called inside a step of its own."""
        super().on_tool_start(
            serialized, input_str, run_id=run_id, parent_run_id=parent_run_id, metadata=metadata
        )
        if not current_steps():
            self._refuse("tool", str(kwargs.get("name") or (serialized or {}).get("name") or "unknown"))

    def _refuse(self, kind: str, name: str) -> None:
        remedy = _MODEL_REMEDY if kind == "model" else _TOOL_REMEDY
        self._session.stop(UnjournaledCallError(kind=kind, name=name, remedy=remedy))
