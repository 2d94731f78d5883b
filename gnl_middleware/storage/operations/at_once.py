"""Intents and outcomes of any number in one statement, which is its own transaction: one round trip to a server.

It does what ``steps`` does row by row, for what nearly all writes are: first tries and outcomes, with their payloads. A row
that is refused is not written, and the others are; ``steps`` finds out why.
"""

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

import orjson
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from gnl_middleware.storage.prepared import Prepared
from gnl_middleware.storage.protection import Protection, protection_of
from gnl_middleware.storage.protocol import Completed, Intent, Outcome
from gnl_middleware.storage.rows import (
    SET_BY_COMPLETED,
    SET_BY_OUTCOME,
    blob_row,
    completed_row,
    intent_row,
    outcome_row,
)
from gnl_middleware.storage.schema import blobs, runs, steps

Payloads = Sequence[tuple[str, str, bytes]]

_CHANGED = (*SET_BY_OUTCOME, "token")
_AT = ("at_run", "at_key", "at_token")
_PAYLOAD = tuple(column.name for column in blobs.c)


def write_at_once(
    connection: sa.Connection,
    begun: Sequence[Intent | Completed],
    ended: Sequence[Outcome],
    payloads: Payloads,
) -> set[str]:
    """Write first tries whose fence is current, outcomes whose try is still the step's, and payloads; commits by itself.

    Returns:
        The tokens of the tries that were written.

    Raises:
        TypeError: A cell is none that a row can hold.
    """
    protection = protection_of(connection)
    blob_rows = [blob_row(*payload, protection) for payload in payloads]
    parameters = {f"payload_{name}": [row[name] for row in blob_rows] for name in _PAYLOAD} | {
        "held_runs": sorted({step.run_id for step in (write.step for write in begun)}),
        "begun": _as_json(_begun_row(write, protection) for write in begun),
        "ended": _as_json(outcome_row(outcome, protection) for outcome in ended),
    }
    # Few texts, since the server plans each anew.
    at_most = 1 << (max(len(begun), len(ended), 1) - 1).bit_length()
    return {token for (token,) in _statement(at_most).fetch(connection, parameters)}


def _begun_row(write: Intent | Completed, protection: Protection) -> dict[str, Any]:
    return intent_row(write, protection) if isinstance(write, Intent) else completed_row(write, protection)


def _as_json(rows: Iterable[dict[str, Any]]) -> str:
    return orjson.dumps(list(rows), default=_as_bytea).decode()


def _as_bytea(cell: object) -> str:
    if isinstance(cell, bytes):
        return f"\\x{cell.hex()}"
    raise TypeError(f"no column holds a {type(cell).__qualname__}")


@cache
def _statement(at_most: int) -> Prepared:
    return Prepared(lambda _: _build(at_most))


def _build(at_most: int) -> sa.CompoundSelect[Any]:
    """All parts see the tables as they were before the statement; what one has done reaches another by what it returns."""
    held = (
        # Nobody takes these runs over until the statement ends; always locked in one order, as everywhere.
        sa.select(runs.c.run_id, runs.c.fence)
        .where(runs.c.run_id == sa.any_(sa.bindparam("held_runs", type_=postgresql.ARRAY(sa.Text))))
        .order_by(runs.c.run_id)
        .with_for_update(key_share=True)
        .cte("held")
    )
    claimed, finished = _claimed(held, at_most), _finished(at_most)
    written = sa.union_all(sa.select(claimed.c.token), sa.select(finished.c.at_token))
    return written.add_cte(_put(), _counted(claimed))


def _put() -> sa.CTE:
    arrays = [
        sa.bindparam(f"payload_{name}", type_=postgresql.ARRAY(blobs.c[name].type)) for name in _PAYLOAD
    ]
    given = sa.func.unnest(*arrays).table_valued(*map(sa.column, _PAYLOAD)).render_derived(name="payload")
    insert = postgresql.insert(blobs).from_select(list(_PAYLOAD), sa.select(given))
    return insert.on_conflict_do_nothing().cte("put")


def _claimed(held: sa.CTE, at_most: int) -> sa.CTE:
    begun = _given("begun", (*SET_BY_COMPLETED, "held_fence"), at_most)
    is_held = (begun.c.run_id == held.c.run_id) & (begun.c.held_fence == held.c.fence)
    rows = sa.select(*[begun.c[name] for name in SET_BY_COMPLETED]).join(held, is_held)
    insert = postgresql.insert(steps).from_select(list(SET_BY_COMPLETED), rows).on_conflict_do_nothing()
    return insert.returning(steps.c.run_id, steps.c.side_effect, steps.c.token).cte("claimed")


def _counted(claimed: sa.CTE) -> sa.CTE:
    """Counts exactly the side effects whose rows were inserted."""
    effects = (
        sa.select(claimed.c.run_id, sa.func.sum(claimed.c.side_effect).label("number"))
        .group_by(claimed.c.run_id)
        .subquery("effects")
    )
    began = runs.update().where(runs.c.run_id == effects.c.run_id, effects.c.number > sa.literal_column("0"))
    return began.values(side_effects=runs.c.side_effects + effects.c.number).cte("counted")


def _finished(at_most: int) -> sa.CTE:
    ended = _given("ended", (*_CHANGED, *_AT), at_most)
    its = (steps.c.run_id == ended.c.at_run) & (steps.c.key == ended.c.at_key)
    update = steps.update().where(its, steps.c.token == ended.c.at_token)
    changed = {name: ended.c[name] for name in _CHANGED} | {"blocked": sa.null()}
    return update.values(changed).returning(ended.c.at_token).cte("finished")


def _given(parameter: str, names: Sequence[str], at_most: int) -> sa.Subquery:
    """Rows that are handed over as one JSON text.

    The limit tells the planner how many there are: it takes any such text for a hundred rows, and would rather read a whole
    table than look for so many.
    """
    columns = [sa.column(name, _type_of(name)) for name in names]
    text = sa.bindparam(parameter, type_=postgresql.JSON)
    rows = sa.func.json_to_recordset(text).table_valued(*columns).render_derived(with_types=True)
    return sa.select(rows).limit(sa.literal_column(str(at_most))).subquery(parameter)


def _type_of(name: str) -> Any:
    if name == "held_fence":
        return runs.c.fence.type
    return sa.Text() if name in _AT else steps.c[name].type
