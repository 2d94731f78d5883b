"""The chain over a run's rows: made when an attempt leaves, checked when somebody wants to know."""

from collections.abc import Sequence

import sqlalchemy as sa

from gnl_middleware.errors import JournalCorruptError, JournalError
from gnl_middleware.model import Integrity, StoredStep
from gnl_middleware.storage import chain
from gnl_middleware.storage.prepared import Prepared
from gnl_middleware.storage.protection import protection_of
from gnl_middleware.storage.reading import KEY, check_complete, stored_step
from gnl_middleware.storage.rows import CHAINED, MARKS
from gnl_middleware.storage.schema import attempts, resolutions, runs, steps

from .loading import loaded_rows

_FIXED = ("run_id", "created_at", "metadata", "locked", "forked_from", "effects")
_MOVING = ("status", "attempts", "completed_at", "side_effects", "input_digest")
_RUN = (
    sa.select(
        *[runs.c[name] for name in (*_FIXED, *_MOVING)],
        *(runs.c.holder, runs.c.chain_head),
        *(attempts.c.attempt.label("linked"), attempts.c.links),
    )
    # The links stand with the attempt that made them: head and links are read at one moment.
    .select_from(
        runs.outerjoin(attempts, (attempts.c.run_id == runs.c.run_id) & attempts.c.links.is_not(None))
    )
    .where(runs.c.run_id == sa.bindparam("at_run"))
    .order_by(attempts.c.attempt.desc())
)
_STEPS = Prepared(
    lambda _: (
        sa.select(*[steps.c[name] for name in (*CHAINED, *MARKS)])
        .where(steps.c.run_id == sa.bindparam("at_run"))
        .order_by(steps.c.number, steps.c.key)
    )
)
_ATTEMPTS = (
    sa.select(
        *[attempts.c[name] for name in ("attempt", "holder", "started_at", "ended_at", "status", "error")]
    )
    .where(attempts.c.run_id == sa.bindparam("at_run"))
    .order_by(attempts.c.attempt)
)
_RESOLUTIONS = (
    sa.select(resolutions).where(resolutions.c.run_id == sa.bindparam("at_run")).order_by(resolutions.c.id)
)


def read_chain(connection: sa.Connection, run_id: str) -> chain.ChainedRows | None:
    """The rows of a run and the head that is kept of them; None where there is no run."""
    at = {"at_run": run_id}
    # First what the rows are compared with: they may only be newer than that.
    run = connection.execute(_RUN, at).mappings().first()
    if run is None:
        return None
    left = connection.execute(_ATTEMPTS, at).all()
    return chain.ChainedRows(
        run_id=run_id,
        head=run["chain_head"],
        links=run["links"],
        fixed=[run[name] for name in _FIXED],
        locked=run["locked"] == 1,
        moving=[run[name] for name in _MOVING],
        at_rest=run["holder"] is None and bool(left) and left[-1][0] == run["linked"],
        steps=_STEPS.fetch(connection, at),
        attempts=left,
        resolutions=connection.execute(_RESOLUTIONS, at).all(),
    )


def renew_chain(connection: sa.Connection, run_id: str) -> None:
    """Make the chain over the rows as they are now, unless they do not fit the one before.

    A head that does not fit stays as it is: it is the proof that somebody changed what it covers.
    """
    rows = read_chain(connection, run_id)
    if rows is None or not rows.attempts or not rows.locked:
        return  # workers who share a run have no moment at which its rows are at rest
    if chain.compared(rows, protection_of(connection), leaving=rows.attempts[-1][0]).problems:
        return
    made = chain.made(rows, protection_of(connection))
    its, last = attempts.c.run_id == run_id, rows.attempts[-1][0]
    connection.execute(
        attempts.update()
        .where(its, attempts.c.links.is_not(None), attempts.c.attempt != last)
        .values(links=None)
    )
    connection.execute(attempts.update().where(its, attempts.c.attempt == last).values(links=made.links))
    head = {"chain_head": made.head, "chain_rows": made.covered}
    connection.execute(runs.update().where(runs.c.run_id == run_id).values(head))


def check_chain(connection: sa.Connection, run_id: str) -> None:
    """Raise where the rows of a run do not fit the head that is kept of them.

    Raises:
        JournalCorruptError: Something was changed, or is gone.
        JournalKeyError: The head was made with another key.
    """
    problems: Sequence[str] = ()
    for _ in range(2):  # a person's decision between two of the queries looks like a change: look again
        rows = read_chain(connection, run_id)
        if rows is None or not (problems := chain.compared(rows, protection_of(connection)).problems):
            return
    raise JournalCorruptError(where=f"run {run_id!r}", problem=_told(problems))


def inspect_run(connection: sa.Connection, run_id: str) -> Integrity | None:
    """Everything that can be checked about a run: seals, payloads and chain. None where there is no run."""
    rows = read_chain(connection, run_id)
    if rows is None:
        return None
    protection = protection_of(connection)
    try:
        found = chain.compared(rows, protection)
    except JournalError as error:
        found = Integrity(run_id=run_id, head=rows.head, problems=(str(error),), keyed=True)
    problems = [*found.problems, *_row_problems(connection, run_id)]
    return found.with_problems(problems)


def _row_problems(connection: sa.Connection, run_id: str) -> list[str]:
    problems: list[str] = []
    loaded: list[StoredStep] = []
    protection, found = protection_of(connection), loaded_rows(connection, run_id)
    for row in found:
        try:
            if row[KEY] is not None:
                loaded.append(stored_step(row, protection))
        except JournalError as error:
            problems.append(str(error))
    if found and not problems:
        try:
            check_complete(run_id, loaded, found[0])
        except JournalError as error:
            problems.append(str(error))
    return problems


def _told(problems: Sequence[str]) -> str:
    first, *others = problems
    more = f", and {len(others)} more" if others else ""
    return f"it does not fit the head of its chain: {first}{more}"
