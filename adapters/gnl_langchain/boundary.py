"""The boundary at which every tool call of an agent or graph goes through the journal."""

from collections.abc import Awaitable, Callable
from typing import Any, cast

from langchain.agents.middleware.types import ToolCallRequest

from gnl_middleware.adapter import OnNoRun, Policy, Session, ToolCall, perform, perform_async
from gnl_middleware.errors import GnlError

from .errors import passing
from .labels import Labels
from .private import runs_in_thread
from .runs import session_here
from .tools import tool_call


class ToolBoundary:
    """Answers tool calls from the record, or runs each tool once.

    Args:
        labels: The policies of the tools.
        on_no_run: Outside any run: ``raise`` or ``passthrough``.
        messages_key: Where in the state the messages are.
    """

    def __init__(self, labels: Labels, on_no_run: OnNoRun, *, messages_key: str = "messages") -> None:
        self._labels, self._messages_key = labels, messages_key
        self._on_no_run: OnNoRun = on_no_run

    def call(self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Any]) -> Any:
        """As ``wrap_tool_call`` of a middleware or of a ``ToolNode``."""
        session = self._session(request)
        if session is None:
            return handler(request)
        return perform(session, self._described(session, request), lambda: handler(request))

    async def call_async(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Any]]
    ) -> Any:
        """As ``awrap_tool_call``."""
        session = self._session(request)
        if session is None:
            return await handler(request)
        call = self._described(session, request)
        return await perform_async(
            session, call, lambda: handler(request), in_thread=runs_in_thread(request.tool)
        )

    def _session(self, request: ToolCallRequest) -> Session | None:
        session = session_here(name=request.tool_call["name"], on_no_run=self._on_no_run)
        if session is not None:
            self._register(session, request)
        return session

    def _described(self, session: Session, request: ToolCallRequest) -> ToolCall:
        return tool_call(request, self._policy(session, request), messages_key=self._messages_key)

    def _register(self, session: Session, request: ToolCallRequest) -> None:
        """Make the hooks of the call's siblings known too: a resume from a checkpoint asks no model before its tools."""
        tools = getattr(cast("Any", request).runtime, "tools", None) or ()
        self._labels.check_names(tools)
        session.register(self._labels.found(tools))

    def _policy(self, session: Session, request: ToolCallRequest) -> Policy:
        try:
            return self._labels.of_call(request.tool_call["name"], request.tool)
        except GnlError as error:
            session.stop(passing(error))
