"""What other workers do in a run without a lock, while this one is at it too."""

from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from typing import TYPE_CHECKING

from gnl_middleware.model import StoredStep

if TYPE_CHECKING:
    from .record import Record


def is_news(record: "Record", step: StoredStep) -> bool:
    """Whether another worker's call failed beside this attempt, which has not come to it yet.

    That worker's agent goes on from the failure, and so must this one's: it is this call's failure, too.
    """
    if step.status != "failed" or record.others is None or step.key in record.failed_now:
        return False
    return step.attempt > record.attempt or step.attempt in record.others


def await_running(
    record: "Record", found: Iterable[StoredStep], running: "Mapping[str, Future[None]]"
) -> None:
    """Note which of the tries that were read go on in this process: their calls wait for them.

    Args:
        record: The record of this attempt, whose lock the caller holds.
        found: The steps as they were read.
        running: The ends of the tries that went on here before they were read, by their tokens.
    """
    for step in found:
        known = record.steps.get(step.key)
        same = known is not None and (known.token, known.status) == (step.token, "started")
        if same and step.token in running:
            record.running.setdefault(step.key, running[step.token])


def merge(record: "Record", found: Iterable[StoredStep], *, sure: str = "") -> None:
    """Take what others have written meanwhile; never an older state of a step for a newer one.

    The order of intents and outcomes goes on from what was seen, so that what this worker does next comes after it.

    Args:
        record: The record of this attempt, whose lock the caller holds.
        found: The steps as they were read.
        sure: The key of a step that is certainly not older in the journal than here.
    """
    for step in found:
        record.pass_by(max(step.begun, step.ended or 0))
        known = record.steps.get(step.key)
        if step.key not in record.running and (
            known is None or step.key == sure or _is_newer(step, than=known)
        ):
            record.put(step)
            record.histories.forget()


def _is_newer(step: StoredStep, *, than: StoredStep) -> bool:
    if than.status == "done" or step.begun < than.begun:
        return False
    return step.token != than.token or than.status == "started"
