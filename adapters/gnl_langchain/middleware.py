"""``JournalMiddleware``: one line that journals an agent made by ``create_agent``."""

import warnings
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

from langchain.agents.middleware import AgentMiddleware
from langchain.agents.middleware.types import ModelRequest, ToolCallRequest

from gnl_middleware.adapter import OnNoRun, Policy, remember
from gnl_middleware.errors import GnlError

from .boundary import ToolBoundary
from .errors import passing
from .handover import Handover, continued
from .labels import Labels, Tool
from .models import journaled_model
from .private import is_innermost
from .runs import session_here


class JournalMiddleware(AgentMiddleware[Any, Any]):
    """Journals every model call and every tool call of an agent. Put it LAST in ``middleware=[...]``.

    It does not short-circuit the model: it hands on a journalled copy of it, so callbacks, token streams and structured
    output run as without it. Last means innermost: retries, approvals and edits of the others happen around it.

    Args:
        policies: Replay labels by tool name or pattern: ``{"search_*": safe, "create_ticket": never(recover=find_ticket)}``.
        safe: Tools, functions or names that may run twice.
        keyed: Those that may run twice with their idempotency key.
        never: Those that must not run twice.
        default_policy: For tools that have no label; without it an unlabelled tool is refused.
        on_no_run: Outside any run: ``raise`` NoActiveRunError, or ``passthrough``.

    Raises:
        ValueError: A tool has two labels; or, before the first tool runs, a label is for no tool.
        UnlabelledToolError: Before the first model call: a tool has no label.

    Example:
        >>> agent = create_agent(     # doctest: +SKIP
        ...     model, [lookup, send_email], middleware=[JournalMiddleware(safe=[lookup], never=[send_email])]
        ... )
    """

    def __init__(
        self,
        *,
        policies: Mapping[str, Policy] | None = None,
        safe: Iterable[Tool] = (),
        keyed: Iterable[Tool] = (),
        never: Iterable[Tool] = (),
        default_policy: Policy | None = None,
        on_no_run: OnNoRun = "raise",
    ) -> None:
        super().__init__()
        self._labels = Labels(
            policies=policies, safe=safe, keyed=keyed, never=never, default_policy=default_policy
        )
        self._on_no_run: OnNoRun = on_no_run
        self._tools = ToolBoundary(self._labels, on_no_run)
        self._warned = False
        # After a crash, an interrupted call may have to be settled before this agent's first model call.
        remember(self, self._labels.known)

    def wrap_model_call(self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Any]) -> Any:
        """Hand on a journalled copy of the model; after a crash, maybe with what is over (``resume="handover"``)."""
        prepared = self._prepared(request, handler)
        handover = Handover.of(self, request, self._labels)
        first = handler(prepared)
        if handover is None or not (handed := handover.messages_after(first)):
            return first
        return continued(handed, handler(prepared.override(messages=[*prepared.messages, *handed])))

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[Any]]
    ) -> Any:
        """Hand on a journalled copy of the model; after a crash, maybe with what is over (``resume="handover"``)."""
        prepared = self._prepared(request, handler)
        handover = Handover.of(self, request, self._labels)
        first = await handler(prepared)
        if handover is None or not (handed := handover.messages_after(first)):
            return first
        return continued(handed, await handler(prepared.override(messages=[*prepared.messages, *handed])))

    def wrap_tool_call(self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Any]) -> Any:
        """Answer the call from the record, or run the tool once."""
        return self._tools.call(request, handler)

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Any]]
    ) -> Any:
        """Answer the call from the record, or run the tool once."""
        return await self._tools.call_async(request, handler)

    def _prepared(self, request: ModelRequest[Any], handler: Callable[..., Any]) -> ModelRequest[Any]:
        self._warn_unless_last(handler)
        session = session_here(name="the model", on_no_run=self._on_no_run)
        try:
            policies = self._labels.check(request.tools)
        except GnlError as error:
            if session is None:
                raise passing(error) from None
            session.stop(passing(error))
        if session is not None:
            session.register(policies)
        return request.override(model=journaled_model(request.model, on_no_run=self._on_no_run))

    def _warn_unless_last(self, handler: Callable[..., Any]) -> None:
        if self._warned or is_innermost(handler):
            return
        self._warned = True
        warnings.warn(
            "JournalMiddleware is not the last of middleware=[...]: what the ones after it change or answer themselves is "
            "recorded wrongly or not at all. Move it to the end.",
            stacklevel=2,
        )
