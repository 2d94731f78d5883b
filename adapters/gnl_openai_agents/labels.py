"""Which policy a tool has: ``policies=``, then its label, then ``default_policy=``."""

from collections.abc import Iterable, Mapping
from typing import Any

from agents import FunctionTool

from gnl_middleware import UnlabelledToolError
from gnl_middleware.adapter import Policy, label_of

from .errors import passing
from .names import Names
from .private import function_of


class Labels:
    """The policies of the tools of one runner.

    Args:
        policies: By tool name; ``namespace.name`` where the tool has a namespace.
        default_policy: For all others that have no label of their own.
    """

    def __init__(
        self, *, policies: Mapping[str, Policy] | None = None, default_policy: Policy | None = None
    ) -> None:
        self._given = dict(policies or {})
        self._default = default_policy
        self.known: dict[str, Policy] = dict(self._given)
        self.names = Names(self._given)

    def find(self, tool: Any) -> Policy | None:
        """The policy of a tool, or None."""
        name = name_of(tool)
        function = function_of(tool) if isinstance(tool, FunctionTool) else None
        named = self._given.get(name)
        found = named or label_of(tool) or label_of(function) or self._default
        if found is not None:
            self.known[name] = found
        if found is not None and named is None:
            self.names.labelled_otherwise(name)
        return found

    def check(self, tools: Iterable[Any]) -> None:
        """Raise UnlabelledToolError where a tool has no policy."""
        if missing := sorted({name_of(tool) for tool in tools if self.find(tool) is None}):
            example = f"DurableRunner(policies={{{missing[0]!r}: never}})"
            raise passing(UnlabelledToolError(tools=missing, example=example))


def name_of(tool: Any) -> str:
    """The name by which the model calls a tool."""
    return tool.qualified_name if isinstance(tool, FunctionTool) else str(tool.name)
