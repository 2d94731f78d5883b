"""What opens and leaves every run, compiled once: a short run spends as much on these as on its steps."""

from typing import Any

import sqlalchemy as sa

from gnl_middleware.storage.prepared import Prepared
from gnl_middleware.storage.schema import attempts, runs, steps

from .dialects import insert

COLUMNS = tuple(column.name for column in runs.c)
"""What ``LOCKED`` gives."""

_CREATED = (
    *("run_id", "status", "attempts", "created_at", "updated_at", "fence", "lease_ends_at", "input_digest"),
    *("metadata", "locked"),
)
SPARED = ("steps_ran", "steps_read_back", "tokens_not_spent", "seconds_not_spent")
"""What an attempt did not spend again."""


def _given(name: str, column: sa.Column[Any]) -> sa.BindParameter[Any]:
    return sa.bindparam(name, type_=column.type)


_ITS_RUN, _ITS_ATTEMPT = (
    runs.c.run_id == _given("at_run", runs.c.run_id),
    (attempts.c.run_id == _given("at_run", attempts.c.run_id))
    & (attempts.c.attempt == _given("at_attempt", attempts.c.attempt)),
)
LOCKED = Prepared(lambda _: sa.select(runs).where(_ITS_RUN).with_for_update(key_share=True))
ANY_STEP = Prepared(
    lambda _: (
        sa.select(steps.c.key)
        .where(steps.c.run_id == _given("at_run", steps.c.run_id))
        .limit(sa.literal_column("1"))
    )
)
CREATE = Prepared(lambda dialect: insert(dialect, runs).on_conflict_do_nothing(), _CREATED)
TAKE = Prepared(
    lambda _: (
        runs.update()
        .where(_ITS_RUN)
        .values(
            attempts=_given("attempt", runs.c.attempts),
            updated_at=_given("now", runs.c.updated_at),
            **{
                name: _given(name, runs.c[name])
                for name in ("status", "fence", "holder", "lease_ends_at", "input_digest")
            },
        )
    )
)
BEGIN = Prepared(
    lambda _: attempts.insert().values(
        run_id=_given("at_run", attempts.c.run_id),
        started_at=_given("now", attempts.c.started_at),
        **{name: _given(name, attempts.c[name]) for name in ("attempt", "holder", "status")},
    )
)


def _left(*times: str) -> sa.Update:
    """A lease is given back if it is still ours."""
    ours = _ITS_RUN & (runs.c.fence == _given("at_fence", runs.c.fence))
    now = dict.fromkeys(times, _given("now", runs.c.updated_at))
    free: dict[str, Any] = {"holder": sa.null(), "lease_ends_at": sa.literal_column("0.0")}
    return runs.update().where(ours).values({"status": _given("status", runs.c.status), **free, **now})


LEAVE = Prepared(lambda _: _left("updated_at"))
LEAVE_COMPLETED = Prepared(lambda _: _left("updated_at", "completed_at"))
END = Prepared(
    lambda _: (
        attempts.update()
        .where(_ITS_ATTEMPT)
        .values(
            ended_at=_given("now", attempts.c.ended_at),
            **{name: _given(name, attempts.c[name]) for name in ("status", "error", *SPARED)},
        )
    )
)
