"""Intents and outcomes of any number in one statement, which is its own transaction: one round trip to a server.

It does what ``steps`` does row by row, for what nearly all writes are: first tries and outcomes, with their payloads. A row
that is refused is not written, and the others are; ``steps`` finds out why.
"""

import base64
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

import orjson
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from gnl_middleware.storage.prepared import Prepared
from gnl_middleware.storage.protection import Protection, protection_of
from gnl_middleware.storage.protocol import Completed, Intent, Outcome, Payload
from gnl_middleware.storage.rows import (
    SET_BY_COMPLETED,
    SET_BY_OUTCOME,
    SPLICED,
    blob_row,
    completed_row,
    intent_row,
    outcome_row,
)
from gnl_middleware.storage.schema import blobs, runs, steps

from .steps import splices

_BEGUN = tuple(name for name in SET_BY_COMPLETED if name not in ("holder", "claimed_until"))
"""What a first try has, but in a run without a lock, whose tries are claimed one by one."""

_CHANGED = (*SET_BY_OUTCOME, "token")
_AT = ("at_run", "at_key", "at_token")
_PAYLOAD = tuple(column.name for column in blobs.c)


def write_at_once(
    connection: sa.Connection,
    begun: Sequence[Intent | Completed],
    ended: Sequence[Outcome],
    payloads: Sequence[Payload],
) -> set[str]:
    """Write first tries whose fence is current, outcomes whose try is still the step's, and payloads; commits by itself.

    Returns:
        The tokens of the tries that were written.

    Raises:
        TypeError: A cell is none that a row can hold.
    """
    protection, held = protection_of(connection), sorted({write.step.run_id for write in begun})
    parameters = {
        "held": _as_json(held),
        "put": _as_json(_as_text(blob_row(each, next(splices(each), None), protection)) for each in payloads),
        "begun": _as_json(_begun_row(write, protection) for write in begun),
        "ended": _as_json(outcome_row(outcome, protection) for outcome in ended),
    }
    statement = _statement(_at_most(len(held)), _at_most(len(payloads)), _at_most(len(ended)))
    return {token for (token,) in statement.fetch(connection, parameters)}


def _at_most(number: int) -> int:
    # Powers of two, since the server plans each text anew.
    return 1 << (max(number, 1) - 1).bit_length()


def _as_text(blob: dict[str, Any]) -> dict[str, Any]:
    # Shorter and faster, on both sides, than an array of bytes.
    return blob | {"body": base64.b64encode(blob["body"]).decode()}


def _begun_row(write: Intent | Completed, protection: Protection) -> dict[str, Any]:
    return intent_row(write, protection) if isinstance(write, Intent) else completed_row(write, protection)


def _as_json(items: Iterable[Any]) -> str:
    return orjson.dumps(list(items), default=_as_bytea).decode()


def _as_bytea(cell: object) -> str:
    if isinstance(cell, bytes):
        return f"\\x{cell.hex()}"
    raise TypeError(f"no column holds a {type(cell).__qualname__}")


@cache
def _statement(runs_held: int, payloads: int, ended: int) -> Prepared:
    return Prepared(lambda _: _build(runs_held, payloads, ended))


def _build(runs_held: int, payloads: int, ended: int) -> sa.CompoundSelect[Any]:
    """All parts see the tables as they were before the statement; what one has done reaches another by what it returns."""
    put, are_whole = _put(payloads)
    names = sa.func.json_array_elements_text(sa.bindparam("held", type_=postgresql.JSON))
    of_begun = sa.select(names.label("run")).limit(_limit(runs_held))
    held = (
        # Nobody takes these runs over until the statement ends; always locked in one order, as everywhere.
        sa.select(runs.c.run_id, runs.c.fence)
        .where(runs.c.run_id.in_(of_begun), are_whole)
        .order_by(runs.c.run_id)
        .with_for_update(key_share=True, of=runs)
        .cte("held")
    )
    claimed, finished = _claimed(held), _finished(ended)
    written = sa.union_all(sa.select(claimed.c.token), sa.select(finished.c.at_token))
    return written.add_cte(put, _counted(claimed))


def _put(at_most: int) -> tuple[sa.CTE, sa.ColumnElement[bool]]:
    """The payloads; and whether all that they are spliced from stands whole, without which nothing can be begun."""
    types = {column.name: column.type for column in blobs.c} | {"body": sa.Text()}
    all_cells: sa.ColumnElement[Any] = sa.literal_column("*")
    every = sa.select(all_cells).select_from(_given("put", types))
    given, whole = every.limit(_limit(at_most)).subquery("p"), blobs.alias("w")
    is_source = (whole.c.run_id == _cell(given, "run_id")) & (whole.c.hash == _cell(given, "source"))
    stands = sa.exists().where(is_source, whole.c.compressed != sa.literal_column(str(SPLICED)))
    fits = _cell(given, "source").is_(None) | stands
    body = sa.func.decode(_cell(given, "body"), sa.literal_column("'base64'")).label("body")
    row = [_cell(given, name) if name != "body" else body for name in _PAYLOAD]
    rows = sa.select(*row, fits.label("fits")).select_from(given).cte("given")
    cells = sa.select(*[_cell(rows, name) for name in _PAYLOAD]).select_from(rows).where(rows.c.fits)
    insert = postgresql.insert(blobs).from_select(list(_PAYLOAD), cells)
    return insert.on_conflict_do_nothing().cte("put"), ~sa.exists().where(~rows.c.fits)


def _claimed(held: sa.CTE) -> sa.CTE:
    begun = _given("begun", _types(_BEGUN) | {"held_fence": runs.c.fence.type})
    is_held = (_cell(begun, "run_id") == held.c.run_id) & (_cell(begun, "held_fence") == held.c.fence)
    rows = sa.select(*[_cell(begun, name) for name in _BEGUN]).select_from(begun.join(held, is_held))
    insert = postgresql.insert(steps).from_select(list(_BEGUN), rows).on_conflict_do_nothing()
    return insert.returning(steps.c.run_id, steps.c.side_effect, steps.c.token).cte("begun")


def _counted(claimed: sa.CTE) -> sa.CTE:
    """Counts exactly the side effects whose rows were inserted."""
    new = (
        sa.select(claimed.c.run_id, sa.func.sum(claimed.c.side_effect).label("number"))
        .group_by(claimed.c.run_id)
        .subquery("new")
    )
    began = runs.update().where(runs.c.run_id == new.c.run_id, new.c.number > sa.literal_column("0"))
    return began.values(side_effects=runs.c.side_effects + new.c.number).cte("counted")


def _finished(at_most: int) -> sa.CTE:
    given = _given("ended", _types(_CHANGED) | dict.fromkeys(_AT, sa.Text()))
    ended = sa.select(given).limit(_limit(at_most)).subquery("ended")
    its = (steps.c.run_id == ended.c.at_run) & (steps.c.key == ended.c.at_key)
    update = steps.update().where(its, steps.c.token == ended.c.at_token)
    changed = {name: ended.c[name] for name in _CHANGED} | {"blocked": sa.null()}
    return update.values(changed).returning(ended.c.at_token).cte("done")


def _given(parameter: str, types: dict[str, Any]) -> sa.TableValuedAlias:
    """Rows that are handed over as one JSON text: each value of its own would take the driver longer."""
    text = sa.bindparam(parameter, type_=postgresql.JSON)
    columns = [sa.column(name, kind) for name, kind in types.items()]
    rows = sa.func.json_to_recordset(text).table_valued(*columns)
    # A short name, a hundred times: the driver reads a text anew each time that has more than 4,096 characters.
    return rows.render_derived(name=parameter[0], with_types=True)


def _limit(at_most: int) -> sa.ColumnElement[int]:
    """Tells the planner how many rows there are in a JSON text.

    It takes any such text for a hundred rows, and would rather read a whole table than look for so many.
    """
    return sa.literal_column(str(at_most))


def _cell(given: Any, name: str) -> sa.ColumnElement[Any]:
    # As it is written, without a label: see the name of what is given.
    return sa.literal_column(f"{given.name}.{name}")


def _types(names: Iterable[str]) -> dict[str, Any]:
    return {name: steps.c[name].type for name in names}
