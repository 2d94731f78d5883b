"""`gnl prune` and `gnl erase`: remove records, and prove what is gone."""

import getpass
import sys
import typing
from datetime import timedelta
from typing import Any

import click

from gnl_middleware.model import RunStatus
from gnl_middleware.records import Removal
from gnl_middleware.viewer import plain
from gnl_middleware.viewer.plain import visible
from gnl_middleware.viewer.words import size

from .opening import (
    as_duration,
    journal_option,
    json_option,
    opened,
    place_of,
    record_of,
    runs_beginning,
    tag_option,
    utf8,
    where_option,
)

_STATUSES = [status for status in typing.get_args(RunStatus) if status not in ("running", "paused")]
_dry_run_option = click.option("--dry-run", is_flag=True, help="Remove nothing; say what would be removed.")
_yes_option = click.option("--yes", is_flag=True, help="Do not ask; a script has to say so.")
_by_option = click.option(
    "--by", metavar="NAME", default="", callback=utf8, help="Who asks for it; kept as proof."
)
_note_option = click.option("--note", metavar="TEXT", default="", callback=utf8, help="Why; kept as proof.")


@click.command("prune", short_help="Remove the records of runs that ended long ago.")
@click.option(
    "--older-than",
    metavar="TIME",
    required=True,
    callback=as_duration,
    help="Changed last that long ago: 30d, 12h …",
)
@click.option(
    "--status",
    "statuses",
    type=click.Choice(_STATUSES),
    multiple=True,
    default=("completed", "failed"),
    show_default=True,
    help="Only runs of this status. 'erased' removes the ids that are kept of removed runs.",
)
@where_option
@tag_option
@click.option(
    "--larger-than", metavar="BYTES", type=click.IntRange(min=0), help="Only runs that take more than this."
)
@_dry_run_option
@_yes_option
@_by_option
@_note_option
@journal_option
@json_option
def prune(
    *,
    older_than: timedelta,
    statuses: tuple[str, ...],
    metadata: dict[str, Any],
    tags: tuple[str, ...],
    larger_than: int | None,
    dry_run: bool,
    yes: bool,
    by: str,
    note: str,
    url: str,
    as_json: bool,
) -> None:
    """Remove the records of runs that ended long ago, in batches, while others work.

    A run that is open is never touched. The run id stays, so that a late redelivery is refused instead of doing the job
    again, and so does what once-per keys of the whole journal need.

    With --json: {"dry_run", "runs": [REMOVAL, ...], "busy": [RUN_ID, ...], "bytes", "rewritten"}.
    """
    narrowed: dict[str, Any] = {
        "status": statuses,
        "metadata": metadata,
        "tags": tags,
        "larger_than": larger_than,
    }
    with opened(url) as journal:
        found = journal.prune(older_than=older_than, dry_run=True, **narrowed)
        if not dry_run and found.runs and _agreed(found, yes=yes):
            found = journal.prune(older_than=older_than, by=by, note=note, **narrowed)
    _tell(found, dry_run=dry_run, as_json=as_json)


@click.command("erase", short_help="Remove all that a run, or all runs about somebody, recorded.")
@click.argument("run_id", metavar="[RUN]", required=False, callback=utf8, shell_complete=runs_beginning)
@where_option
@tag_option
@click.option(
    "--no-rewrite",
    is_flag=True,
    help="Do not write a SQLite file anew, though traces may stay in unused places.",
)
@_dry_run_option
@_yes_option
@_by_option
@_note_option
@journal_option
@json_option
@click.pass_context
def erase(
    context: click.Context,
    *,
    run_id: str | None,
    metadata: dict[str, Any],
    tags: tuple[str, ...],
    no_rewrite: bool,
    dry_run: bool,
    yes: bool,
    by: str,
    note: str,
    url: str,
    as_json: bool,
) -> None:
    """Remove all that RUN recorded, or all runs with this metadata and these tags, whatever their status.

    The run id stays with a proof of what is gone (gnl show RUN). A run that a worker holds stays, and the command then
    ends with 1.

    With --json: {"dry_run", "runs": [REMOVAL, ...], "busy": [RUN_ID, ...], "bytes", "rewritten"}.
    """
    if (run_id is None) is not bool(metadata or tags):
        raise click.UsageError("Give either a RUN, or --where NAME=VALUE and --tag TAG.")
    with opened(url) as journal:
        if run_id is not None:
            record_of(journal, run_id, place_of(context))
        found = journal.erase(run_id, metadata=metadata, tags=tags, dry_run=True)
        if not dry_run and found.runs and _agreed(found, yes=yes):
            by = by or _login()
            found = journal.erase(
                run_id, metadata=metadata, tags=tags, rewrite=not no_rewrite, by=by, note=note
            )
    _tell(found, dry_run=dry_run, as_json=as_json)
    if found.busy:
        raise click.ClickException(
            f"{len(found.busy)} held by a worker stayed: {visible(', '.join(found.busy))}"
        )


def _login() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return ""


def _agreed(found: Removal, *, yes: bool) -> bool:
    if not yes:
        if not sys.stdin.isatty():
            raise click.UsageError("Nobody can be asked here: add --yes, or look first with --dry-run.")
        what = f"Remove the record of {_runs(found)} ({size(found.bytes)})? It cannot be brought back."
        click.confirm(what, abort=True, err=True)
    return True


def _tell(removal: Removal, *, dry_run: bool, as_json: bool) -> None:
    if as_json:
        click.echo(plain.json_text(plain.removal_object(removal, dry_run=dry_run)))
        return
    for run in removal.runs:
        kept = f", {run.steps_kept} kept for once-per keys" if run.steps_kept else ""
        click.echo(
            f"{visible(run.run_id)}: {run.steps} steps, {run.payloads} payloads, {size(run.bytes)}{kept}"
        )
    verb = "would be removed" if dry_run else "removed"
    click.echo(f"{_runs(removal)} {verb}, {size(removal.bytes)}.")


def _runs(removal: Removal) -> str:
    return f"{len(removal.runs)} run" + ("" if len(removal.runs) == 1 else "s")
