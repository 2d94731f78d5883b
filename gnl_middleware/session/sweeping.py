"""Take up again the runs whose workers died; any number of sweepers at once."""

import inspect
import random
from collections.abc import Callable

from gnl_middleware.errors import RunBusyError
from gnl_middleware.model import RunRecord

from .waiting import awaited, run_coroutine

Find = Callable[[str | None], list[RunRecord]]
"""The interrupted runs: all of them, or the one of a run id if it is interrupted still."""


def sweep(
    handle: Callable[[RunRecord], object],
    find: Find,
    on_error: Callable[[RunRecord, Exception], object] | None,
) -> list[str]:
    """Call the handler for each interrupted run; gives the run ids of those that it was called for without error.

    Raises:
        ExceptionGroup: What the handler raised and nobody was told, after all the runs have had their turn.
    """
    handled: list[str] = []
    errors: list[Exception] = []
    found = find(None)
    # Sweepers that begin together part: each run is looked at again before its turn.
    for run_id in random.sample([record.run_id for record in found], len(found)):
        for record in find(run_id):
            try:
                _call(handle, record)
            except Exception as error:  # noqa: BLE001 - one bad job must not keep the others from their turn
                if isinstance(error, RunBusyError) and error.run_id == run_id:
                    continue  # another sweeper's, or its worker lives
                error.add_note(f"raised by the handler of run {run_id!r}")
                errors.append(error) if on_error is None else on_error(record, error)
            else:
                handled.append(run_id)
    if errors:
        raise ExceptionGroup(f"the handler failed for {len(errors)} of the interrupted runs", errors)
    return handled


def _call(handle: Callable[[RunRecord], object], record: RunRecord) -> None:
    answer = handle(record)
    if inspect.isawaitable(answer):
        run_coroutine(awaited(answer))
