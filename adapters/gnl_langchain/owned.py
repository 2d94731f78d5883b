"""``journaled_tools``: label and journal tools that one does not own, such as those of an MCP server."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, cast

from langchain_core.tools import BaseTool

from gnl_middleware import UnlabelledToolError, keyed, never, safe
from gnl_middleware.adapter import (
    FunctionCall,
    Policy,
    Session,
    ToolCall,
    current_session,
    current_steps,
    label_of,
    perform,
    perform_async,
    remember,
)

from .errors import passing
from .labels import check_all_used, fitting, unfitting
from .private import copied_as, runs_in_thread, shown_arguments, tool_result
from .runs import session_here
from .tools import ending
from .values import raised_or_given

_HOOKS = "_gnl_hooks"


def journaled_tools(
    tools: Sequence[BaseTool],
    *,
    policies: Mapping[str, Policy] | None = None,
    default_policy: Policy | None = None,
    trust_mcp_annotations: bool = False,
) -> list[BaseTool]:
    """Labelled copies of tools, whose calls go through the journal wherever they are called; the tools stay as they are.

    Under ``JournalMiddleware`` or in a ``JournalToolNode`` each call is journalled once, there. A tool that code calls itself
    (``tool.invoke``) is journalled by its copy. Outside any run a copy raises NoActiveRunError.

    Args:
        tools: Tools of anybody.
        policies: Replay labels by tool name or pattern: ``{"search_*": safe, "refund": never(recover=find)}``. A name counts
            before a pattern, and a pattern before those that follow it.
        default_policy: For tools that have no label; without it an unlabelled tool is refused.
        trust_mcp_annotations: Believe what an MCP server says of its tools, where nothing else labels them:
            ``readOnlyHint`` means safe, ``idempotentHint`` keyed, anything else never.

    Raises:
        UnlabelledToolError: Some tools have no label.
        ValueError: A name or pattern fits no tool.

    Example:
        >>> tools = journaled_tools(await client.get_tools(), trust_mcp_annotations=True)     # doctest: +SKIP
    """
    given = dict(policies or {})
    names = [tool.name for tool in tools]
    check_all_used(unfitting(given, names), names)
    found = {tool.name: _policy(tool, given, trust_mcp_annotations) or default_policy for tool in tools}
    if missing := sorted(name for name, policy in found.items() if policy is None):
        example = f"journaled_tools(tools, policies={{{missing[0]!r}: never}})"
        raise UnlabelledToolError(tools=missing, example=example)
    hooks = _Hooks({name: cast("Policy", policy) for name, policy in found.items()})
    return [_copy(tool, hooks) for tool in tools]


def _policy(tool: BaseTool, given: Mapping[str, Policy], trust_mcp_annotations: bool) -> Policy | None:
    hinted = _hinted(tool) if trust_mcp_annotations else None
    return fitting(given, tool.name) or label_of(tool) or hinted


def _hinted(tool: BaseTool) -> Policy:
    metadata: Mapping[str, Any] = tool.metadata or {}
    hints: Mapping[str, Any] = {**metadata, **(metadata.get("annotations") or {})}
    if hints.get("readOnlyHint") is True:
        return safe
    return keyed if hints.get("idempotentHint") is True else never


class _Hooks:
    """What the copies that were made together know of each other; it lives as long as one of them.

    After a crash, an interrupted call may have to be settled before its tool is called again. The copies themselves are no
    owners of what is remembered: tools are compared by their fields.
    """

    def __init__(self, policies: dict[str, Policy]) -> None:
        self.policies = policies
        remember(self, policies)


def _copy(tool: BaseTool, hooks: _Hooks) -> BaseTool:
    labelled = cast("BaseTool", hooks.policies[tool.name](tool))
    copy = labelled if isinstance(tool, _Journaled) else copied_as(labelled, _journaled_class(type(tool)))
    vars(copy)[_HOOKS] = hooks
    return copy


@cache
def _journaled_class(kind: type[BaseTool]) -> type[BaseTool]:
    namespace: dict[str, Any] = {
        "__module__": kind.__module__,
        "__doc__": kind.__doc__,
        "__annotations__": {},
    }
    return type(kind.__name__, (_Journaled, kind), namespace)


class _Journaled:
    """Journals ``invoke`` and ``ainvoke``, unless the call is journalled around it already."""

    def invoke(self, input: Any, config: Any = None, **options: Any) -> Any:  # noqa: A002 - LangChain's name
        tool, original = cast("BaseTool", self), cast("Any", super()).invoke
        if _is_around(tool) or (session := _session(tool)) is None:
            return original(input, config, **options)
        return perform(session, _described(tool, input), lambda: original(input, config, **options))

    async def ainvoke(self, input: Any, config: Any = None, **options: Any) -> Any:  # noqa: A002 - LangChain's name
        tool, original = cast("BaseTool", self), cast("Any", super()).ainvoke
        if _is_around(tool) or (session := _session(tool)) is None:
            return await original(input, config, **options)
        return await perform_async(
            session,
            _described(tool, input),
            lambda: original(input, config, **options),
            in_thread=runs_in_thread(tool),
        )


def _is_around(tool: BaseTool) -> bool:
    steps = current_steps()
    return current_session() is not None and bool(steps) and steps[-1].name == tool.name


def _session(tool: BaseTool) -> Session | None:
    session = session_here(name=tool.name)
    if session is not None:
        session.register(cast("_Hooks", vars(tool)[_HOOKS]).policies)
    return session


def _described(tool: BaseTool, given: Any) -> ToolCall | FunctionCall:
    policy = cast("Policy", label_of(tool))
    if not (isinstance(given, dict) and given.get("type") == "tool_call"):  # pyright: ignore[reportUnknownMemberType]
        arguments = shown_arguments(tool, given)
        return FunctionCall(
            name=tool.name,
            policy=policy,
            arguments=arguments,
            decode=raised_or_given,
            ending=ending,
            as_control=passing,
        )
    call = cast("dict[str, Any]", given)
    with_artifact = tool.response_format == "content_and_artifact"
    return ToolCall(
        name=tool.name,
        policy=policy,
        arguments=shown_arguments(tool, call["args"]),
        call_id=call.get("id") or "",
        decode=raised_or_given,
        present=lambda raw: tool_result(
            raw, call_id=call.get("id"), name=tool.name, with_artifact=with_artifact
        ),
        ending=ending,
        as_control=passing,
    )
