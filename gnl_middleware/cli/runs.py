"""`gnl runs`: which runs there are, once or live."""

import time
import typing
from collections.abc import Callable, Generator
from datetime import timedelta
from typing import Any

import click

from gnl_middleware.journal import Journal
from gnl_middleware.model import RunRecord, RunStatus
from gnl_middleware.viewer import plain

from .opening import as_duration, journal_option, json_option, opened, tag_option, utf8, where_option

_EVERY = 1.0


@click.command("runs")
@journal_option
@click.option(
    "--status",
    "statuses",
    type=click.Choice(typing.get_args(RunStatus)),
    multiple=True,
    help="Only runs of this status. Several are alternatives.",
)
@where_option
@tag_option
@click.option(
    "--like", metavar="PATTERN", callback=utf8, help="Only runs whose id fits; * and ? stand for others."
)
@click.option(
    "--since", metavar="TIME", callback=as_duration, help="Only runs that changed within 15m, 12h, 30d …"
)
@click.option("--limit", metavar="N", type=click.IntRange(min=1), help="At most this many.")
@click.option("--watch", is_flag=True, help="Go on showing what changes, until you press Ctrl-C.")
@json_option
def command(
    *,
    url: str,
    statuses: tuple[str, ...],
    metadata: dict[str, Any],
    tags: tuple[str, ...],
    like: str | None,
    since: timedelta | None,
    limit: int | None,
    watch: bool,
    as_json: bool,
) -> None:
    """List the runs, the latest first.

    blocked: waits for a decision (gnl show RUN); interrupted: has not ended and nobody holds it, so run its code again;
    erased: its record was removed (listed only with --status erased).

    With --json: {"runs": [RUN, ...]}, each RUN with run_id, status, attempts, created_at, updated_at, holder,
    lease_ends_at, metadata and tags; times in seconds since the epoch. With --watch --json: one RUN a line, whenever it
    has changed.
    """

    def listed(journal: Journal) -> list[RunRecord]:
        return journal.runs(
            status=statuses or None,
            metadata=metadata,
            tags=tags,
            like=like,
            changed_within=since,
            limit=limit,
        )

    with opened(url) as journal:
        if watch:
            _watch(lambda: listed(journal), as_json=as_json)
            return
        records = listed(journal)
    if as_json:
        click.echo(plain.json_text(plain.runs_object(records)))
    elif not records:
        narrowed = any((metadata, tags, like, since))
        click.echo(
            "No run fits." if narrowed else f"No run is {' or '.join(statuses)}." if statuses else "No runs."
        )
    else:
        from . import render  # noqa: PLC0415 - rich is loaded by those who print with it

        render.print_runs(render.console(), records)


def _watch(listed: Callable[[], list[RunRecord]], *, as_json: bool) -> None:
    from . import render  # noqa: PLC0415 - rich is loaded by those who print with it

    out = render.console()
    try:
        if as_json or not out.is_terminal:
            for record in _changes(listed):
                click.echo(plain.json_text(plain.run_object(record)) if as_json else render.run_line(record))
        else:
            render.live_runs(out, listed, _EVERY)
    except KeyboardInterrupt:
        return  # the way out


def _changes(listed: Callable[[], list[RunRecord]]) -> Generator[RunRecord]:
    """Each run as it is, and again whenever it has changed."""
    seen: dict[str, RunRecord] = {}
    while True:
        for record in reversed(listed()):
            before = seen.get(record.run_id)
            if before is None or _told(before) != _told(record):
                seen[record.run_id] = record
                yield record
        time.sleep(_EVERY)


def _told(record: RunRecord) -> tuple[object, ...]:
    # Not the lease: a renewal is no news.
    return record.status, record.attempts, record.updated_at, record.holder
