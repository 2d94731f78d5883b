"""``JournalToolNode``: LangGraph's ``ToolNode`` whose tool calls go through the journal."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any

from langgraph.prebuilt import ToolNode
from langgraph.prebuilt.tool_node import ToolCallRequest

from gnl_langchain.boundary import ToolBoundary
from gnl_langchain.labels import Labels, Tool
from gnl_middleware.adapter import OnNoRun, Policy, remember

Handler = Callable[[ToolCallRequest], Any]
AsyncHandler = Callable[[ToolCallRequest], Awaitable[Any]]
Wrapper = Callable[[ToolCallRequest, Handler], Any]
AsyncWrapper = Callable[[ToolCallRequest, AsyncHandler], Awaitable[Any]]


class JournalToolNode(ToolNode):
    """A ``ToolNode`` that answers each call from the record, or runs its tool once.

    Whatever stands around it (a retry policy, an error handler, ``handle_tool_errors``) works as without it.

    Args:
        tools: As for ``ToolNode``.
        policies: Replay labels by tool name or pattern: ``{"search_*": safe, "create_ticket": never(recover=find_ticket)}``.
        safe: Tools, functions or names that may run twice.
        keyed: Those that may run twice with their idempotency key.
        never: Those that must not run twice.
        default_policy: For tools that have no label; without it an unlabelled tool is refused.
        on_no_run: Outside any run: ``raise`` NoActiveRunError, or ``passthrough``.
        wrap_tool_call: A wrapper of your own, around the journalled call.
        awrap_tool_call: The same for asynchronous graphs.
        **options: Those of ``ToolNode``.

    Raises:
        UnlabelledToolError: A tool has no label.
        ValueError: A tool has two labels, or a label is for no tool.

    Example:
        >>> JournalToolNode([search, refund], safe=[search], never=[refund])     # doctest: +SKIP
    """

    def __init__(
        self,
        tools: Sequence[Any],
        *,
        policies: Mapping[str, Policy] | None = None,
        safe: Iterable[Tool] = (),
        keyed: Iterable[Tool] = (),
        never: Iterable[Tool] = (),
        default_policy: Policy | None = None,
        on_no_run: OnNoRun = "raise",
        wrap_tool_call: Wrapper | None = None,
        awrap_tool_call: AsyncWrapper | None = None,
        **options: Any,
    ) -> None:
        labels = Labels(policies=policies, safe=safe, keyed=keyed, never=never, default_policy=default_policy)
        boundary = ToolBoundary(labels, on_no_run, messages_key=options.get("messages_key", "messages"))
        super().__init__(  # pyright: ignore[reportUnknownMemberType]
            tools,
            wrap_tool_call=_around(wrap_tool_call, boundary),
            # Without one of its own for asynchronous graphs, ToolNode runs the synchronous one there.
            awrap_tool_call=_around_async(awrap_tool_call, wrap_tool_call, boundary),
            **options,
        )
        found = list(self.tools_by_name.values())
        known = labels.check(found, example="JournalToolNode(tools, never=[{!r}])")
        labels.check_names(found)
        # After a crash, an interrupted call may have to be settled before this node is reached.
        remember(self, known)


def _around(wrapper: Wrapper | None, boundary: ToolBoundary) -> Wrapper:
    if wrapper is None:
        return boundary.call

    def call(request: ToolCallRequest, handler: Handler) -> Any:
        return wrapper(request, lambda inner: boundary.call(inner, handler))

    return call


def _around_async(
    wrapper: AsyncWrapper | None, synchronous: Wrapper | None, boundary: ToolBoundary
) -> AsyncWrapper | None:
    if wrapper is None:
        return boundary.call_async if synchronous is None else None

    async def call(request: ToolCallRequest, handler: AsyncHandler) -> Any:
        return await wrapper(request, lambda inner: boundary.call_async(inner, handler))

    return call
