"""Which policy a tool has: ``policies=``, then ``safe= / keyed= / never=``, then its label, then ``default_policy=``."""

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Any

from gnl_middleware import UnlabelledToolError, keyed, never, safe
from gnl_middleware.adapter import Policy, label_of

Tool = Any
"""A tool, a function, or a tool's name."""


_EXAMPLE = "JournalMiddleware(never=[{!r}])"


class Labels:
    """The policies of one agent's tools.

    Args:
        policies: By tool name or pattern. A name counts before a pattern, and a pattern before those that follow it.
        safe: Tools, functions or names that may run twice.
        keyed: Those that may run twice with their idempotency key.
        never: Those that must not run twice.
        default_policy: For all others.

    Raises:
        ValueError: A tool has two labels.
    """

    def __init__(
        self,
        *,
        policies: Mapping[str, Policy] | None = None,
        safe: Iterable[Tool] = (),
        keyed: Iterable[Tool] = (),
        never: Iterable[Tool] = (),
        default_policy: Policy | None = None,
    ) -> None:
        self._default = default_policy
        self._given = _listed(safe=safe, keyed=keyed, never=never) | dict(policies or {})
        self.known: dict[str, Policy] = dict(self._given)
        self._checked: set[tuple[str, ...]] = set()
        self._shown: set[str] = set()

    def check(self, tools: Iterable[Any], *, example: str = _EXAMPLE) -> dict[str, Policy]:
        """The policies of the tools that a model is shown, by name; tools that a provider runs itself need none.

        Args:
            tools: The tools.
            example: The line that labels one, for the error.

        Raises:
            UnlabelledToolError: Some have none.
        """
        named = {name_of(tool): tool for tool in tools if not isinstance(tool, Mapping)}
        names = tuple(sorted(named))
        if names in self._checked:
            return self.known
        found = {name: self.find(name, tool) for name, tool in named.items()}
        if missing := sorted(name for name, policy in found.items() if policy is None):
            raise UnlabelledToolError(tools=missing, example=example.format(missing[0]))
        self._shown.update(named)
        self.known |= {name: policy for name, policy in found.items() if policy is not None}
        self._checked.add(names)
        return self.known

    def check_names(self, tools: Iterable[Any]) -> None:
        """Check, once all of the agent's tools are known, that each label is for one of them.

        Not where the model is asked: other middlewares may show it some of the tools only.

        Raises:
            ValueError: A label was given to a name that is no tool's.
        """
        names = self._shown.union(name_of(tool) for tool in tools)
        if self._shown:
            check_all_used(unfitting(self._given, names), names)

    def found(self, tools: Iterable[Any]) -> dict[str, Policy]:
        """The policies that are known: of labelled names, and of those of the tools that have one."""
        of_tools = {name: policy for tool in tools if (policy := self.find(name := name_of(tool), tool))}
        return {**self.known, **of_tools}

    def find(self, name: str, tool: Any = None) -> Policy | None:
        """The policy of a tool, or None."""
        return fitting(self._given, name) or label_of(tool) or self._default

    def of_call(self, name: str, tool: Any = None) -> Policy:
        """The policy of a tool that is called.

        Raises:
            UnlabelledToolError: It has none: a tool that was added after the agent was built.
        """
        policy = self.find(name, tool)
        if policy is None:
            raise UnlabelledToolError(tools=[name], example=_EXAMPLE.format(name))
        return policy


def fitting(policies: Mapping[str, Policy], name: str) -> Policy | None:
    """The policy for a name: by the name itself, else by the first pattern that it fits, such as ``search_*``."""
    if name in policies:
        return policies[name]
    return next((policy for word, policy in policies.items() if fnmatchcase(name, word)), None)


def unfitting(policies: Mapping[str, Policy], names: Iterable[str]) -> list[str]:
    """The names and patterns that fit none of these names."""
    known = list(names)
    return [word for word in policies if not any(name == word or fnmatchcase(name, word) for name in known)]


def check_all_used(unknown: Iterable[str], names: Iterable[str]) -> None:
    """Raise ValueError if there are labels for tools that do not exist: a typing error leaves a tool without its label."""
    if words := sorted(unknown):
        raise ValueError(f"labels for unknown tools {words}; the agent's tools are {sorted(names)}")


def name_of(tool: Tool) -> str:
    """The name by which the model calls a tool."""
    if isinstance(tool, str):
        return tool
    name = getattr(tool, "name", None) or getattr(tool, "__name__", None)
    if not name:
        raise TypeError(f"{tool!r} is neither a tool nor a function nor a name")
    return str(name)


def _listed(**groups: Iterable[Tool]) -> dict[str, Policy]:
    labels: dict[str, Policy] = {"safe": safe, "keyed": keyed, "never": never}
    found: dict[str, Policy] = {}
    for word, tools in groups.items():
        for tool in tools:
            name = name_of(tool)
            if name in found and found[name].label != word:
                raise ValueError(f"tool {name!r} is labelled both {found[name].label} and {word}")
            own = label_of(tool)
            # A list that says what the label says keeps the label's options, such as recover=.
            found[name] = own if own is not None and own.label == word else labels[word]
    return found
