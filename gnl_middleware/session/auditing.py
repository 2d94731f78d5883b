"""Let a check decide how the runs of this process are replayed, whatever their own code asks for."""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from .session import Options, Session


@dataclass(frozen=True, slots=True)
class Audit:
    """A check that is going on.

    Attributes:
        sessions: The runs that were opened meanwhile, in order.
    """

    sessions: list[Session] = field(default_factory=list[Session])


_audits: list[Audit] = []


@contextmanager
def auditing() -> Generator[Audit]:
    """Open the runs of this process offline and strict until the end of the block."""
    audit = Audit()
    _audits.append(audit)
    try:
        yield audit
    finally:
        _audits.remove(audit)


def audited(options: Options) -> Options:
    """The options of a run that is about to be opened, as a check wants them."""
    return replace(options, replay="strict", offline=True, on_change="stop") if _audits else options


def note_opened(session: Session) -> None:
    """Tell the checks that are going on of an opened run."""
    for audit in _audits:
        audit.sessions.append(session)
