"""The setups that models were asked with: each is kept once, and read again only to show what changed."""

from collections.abc import Callable, Iterable
from typing import Any

from gnl_middleware.model import StoredStep


def _unknown(_digest: str) -> None:
    return None


class Setups:
    """Which setups a run's record holds.

    Args:
        steps: The steps that are recorded.
        find: Reads a setup from the journal by its digest; None where it is not there.
    """

    def __init__(self, steps: Iterable[StoredStep] = (), find: Callable[[str], Any] = _unknown) -> None:
        self._kept = {digest for step in steps for digest in step.setups}
        self._find = find

    def is_new(self, digest: str) -> bool:
        """Whether this setup has to be kept; the next time that it is asked for, it is."""
        new = digest not in self._kept
        self._kept.add(digest)
        return new

    def recorded(self, step: StoredStep) -> Any:
        """The setup with which a model was asked; its digests where the journal does not keep it."""
        found = (self._find(digest) for digest in step.setups)
        return next((setup for setup in found if setup is not None), {"digests": list(step.setups)})
