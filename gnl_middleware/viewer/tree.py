"""The steps of a run as a tree: what happened inside a step, or on a named branch, hangs from it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from gnl_middleware.model import Step


@dataclass(slots=True)
class Branch:
    """A place in the tree: a step with what happened inside it, or a named branch.

    Attributes:
        label: The name of a branch, relative to where it branched off.
        step: The step; None for a branch.
        children: What happened there, in order.
    """

    label: str = ""
    step: Step | None = None
    children: list["Branch"] = field(default_factory=list["Branch"])


def tree(steps: Sequence[Step]) -> Branch:
    """The steps by scope; a scope hangs from the longest scope that it continues."""
    branches = [Branch(step=step) for step in steps]
    scopes = {
        f"{step.key}/": branch for step, branch in zip(steps, branches, strict=True) if step.kind == "tool"
    }
    scopes[""] = root = Branch()
    for step, branch in zip(steps, branches, strict=True):
        if step.scope not in scopes:
            parent = _longest_beginning(step.scope, scopes)
            scopes[step.scope] = Branch(label=step.scope.removeprefix(parent).rstrip("/"))
            scopes[parent].children.append(scopes[step.scope])
        scopes[step.scope].children.append(branch)
    return root


def _longest_beginning(scope: str, scopes: dict[str, Branch]) -> str:
    ends = (end for end in range(len(scope) - 1, 0, -1) if scope[end - 1] == "/")
    return next((scope[:end] for end in ends if scope[:end] in scopes), "")


def walked(branch: Branch, depth: int = 0) -> Iterator[tuple[int, Branch]]:
    """What hangs from a place, each with its depth, in order."""
    for child in branch.children:
        yield depth, child
        yield from walked(child, depth + 1)
