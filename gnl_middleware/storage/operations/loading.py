"""The query that loads a run: its steps with their payloads, in one statement."""

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from gnl_middleware.storage.prepared import Prepared
from gnl_middleware.storage.reading import LoadedRow
from gnl_middleware.storage.schema import attempts, blobs, resolutions, runs, steps

_AT: sa.BindParameter[Any] = sa.bindparam("at_run")
# How many rows the run had when its chain was made, those of its attempts and decisions besides: at least so many steps.
_LINKED = sa.select(sa.func.max(attempts.c.attempt)).where(
    attempts.c.run_id == _AT, attempts.c.links.is_not(None)
)
_DECIDED = sa.select(sa.func.count()).select_from(resolutions).where(resolutions.c.run_id == _AT)
_EXPECTED = runs.c.chain_rows - _LINKED.scalar_subquery() - _DECIDED.scalar_subquery()
_PAYLOADS = sa.func.coalesce(steps.c.payloads, steps.c.run_id)


def with_source(query: sa.Select[Any], payload: sa.FromClause, name: str) -> sa.Select[Any]:
    """The query with the payload that another one was spliced from, if any: how it is stored, and its body."""
    source = blobs.alias(f"{name}_blob")
    found = query.add_columns(
        source.c.compressed.label(f"{name}_compressed"), source.c.body.label(f"{name}_body")
    )
    its = (source.c.run_id == payload.c.run_id) & (source.c.hash == payload.c.source)
    return found.outerjoin(source, its)


def _build_load() -> sa.Select[Any]:
    # A run without steps is a row, too: what it has counted must be found.
    found = sa.select(steps, runs.c.side_effects, _EXPECTED.label("expected_steps")).select_from(
        runs.outerjoin(steps, steps.c.run_id == runs.c.run_id)
    )
    for name in ("arguments", "value"):
        payload = blobs.alias(f"{name}_blob")
        its = (payload.c.run_id == _PAYLOADS) & (payload.c.hash == steps.c[f"{name}_hash"])
        found = found.outerjoin(payload, its).add_columns(
            *(payload.c[cell].label(f"{name}_{cell}") for cell in ("compressed", "body", "source"))
        )
        found = with_source(found, payload, f"{name}_source")
    return found.where(runs.c.run_id == _AT).order_by(steps.c.number)


_LOAD = _build_load()
"""Gives what ``LOADED`` names, in that order."""
_RUN = Prepared(lambda _: _LOAD)
_STEP = Prepared(lambda _: _LOAD.where(steps.c.key == sa.bindparam("at_key")))


def loaded_rows(connection: sa.Connection, run_id: str) -> Sequence[LoadedRow]:
    """The rows of a run's steps; one without a key where it has none, and no row where there is no run."""
    return _RUN.fetch(connection, {"at_run": run_id})


def loaded_row(connection: sa.Connection, run_id: str, key: str) -> LoadedRow | None:
    """The row of one step."""
    found = _STEP.fetch(connection, {"at_run": run_id, "at_key": key})
    return found[0] if found else None
