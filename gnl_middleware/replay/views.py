"""Questions about a record, asked as if each were a set: answered from its indexes, without copying them."""

from typing import TYPE_CHECKING

from gnl_middleware.model import StoredStep, type_name
from gnl_middleware.policy import Policy

if TYPE_CHECKING:
    from .record import Record


class Ours:
    """Answers ``digest in ours`` from the index, without copying it."""

    def __init__(self, record: "Record", scope: str) -> None:
        self._record, self._scope = record, scope

    def __contains__(self, digest: object) -> bool:
        return self._record.standing(self._scope, str(digest), 1) is not None


class Conversations:
    """Answers ``digest in conversations``."""

    def __init__(self, record: "Record", besides: str) -> None:
        self._record, self._besides = record, besides

    def __contains__(self, digest: object) -> bool:
        step = self._record.continued(str(digest))
        return step is not None and step.key != self._besides


def proves_nothing_happened(step: StoredStep, policy: Policy) -> bool:
    """Whether a call failed with an error of which its policy says that the effect has not happened."""
    if step.failure is None:
        return False
    listed = {type_name(kind) for kind in policy.not_performed}
    return step.resolution == "not_performed" or step.failure.type_name in listed
