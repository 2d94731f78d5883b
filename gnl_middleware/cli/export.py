"""`gnl export`: a run as one page, as lines of JSON, or as a cassette."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from gnl_middleware.journal import Journal
from gnl_middleware.model import RunRecord
from gnl_middleware.viewer import plain
from gnl_middleware.viewer.plain import History, Place, visible

from . import cassettes
from .opening import NotInstalledError, journal_option, opened, place_of, record_of, run_argument

_FORMATS = {".html": "html", ".htm": "html", ".jsonl": "jsonl", ".ndjson": "jsonl"}


@click.command("export", short_help="Write a run as one HTML page, as lines of JSON, or as a cassette.")
@run_argument
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    type=click.Path(dir_okay=False, writable=True, allow_dash=True, path_type=Path),
    default="-",
    help="Where to; - is standard output.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["html", "jsonl"]),
    help="What to write; by default as the name of the file ends, else html.",
)
@click.option(
    "--cassette",
    metavar="FILE",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    help="Write its model calls as a cassette, which use_cassette(FILE) plays in an offline test.",
)
@click.option(
    "--replace",
    multiple=True,
    metavar="TEXT=TEXT",
    help="In a cassette, write the second text for the first.",
)
@click.option(
    "--allow", multiple=True, metavar="TEXT", help="In a cassette, this looks like a secret and is none."
)
@journal_option
@click.pass_context
def command(
    context: click.Context,
    *,
    run_id: str,
    output: Path,
    form: str | None,
    cassette: Path | None,
    replace: tuple[str, ...],
    allow: tuple[str, ...],
    url: str,
) -> None:
    """Write a run as one self-contained page that needs no network, or as JSON, one object a line.

    The file holds what the journal holds: what the agent said and did. JSONL: {"type": "run" | "attempt" | "step" |
    "resolution" | "removal", ...}, otherwise as gnl show --json has them. A cassette that would hold a key, a token or an
    e-mail address is refused: see --replace.
    """
    form = form or _FORMATS.get(output.suffix.lower(), "html")
    place = place_of(context)
    with opened(url) as journal:
        record = record_of(journal, run_id, place)
        if cassette is not None:
            cassettes.write_cassette(journal, run_id, cassette, replace=replace, allow=allow)
            return
        written = _page(journal, record, place) if form == "html" else "".join(_lines(journal, record))
    if str(output) == "-":
        click.echo(written, nl=False)
        return
    try:
        output.write_text(written, encoding="utf-8")
    except OSError as error:
        raise click.ClickException(f"{visible(str(output))} cannot be written: {error.strerror}.") from error
    click.echo(f"Wrote {visible(str(output))}.", err=True)


def _history(journal: Journal, run_id: str) -> History:
    return History(journal.attempts(run_id), journal.resolutions(run_id), journal.removals(run_id))


def _page(journal: Journal, record: RunRecord, place: Place) -> str:
    try:
        from gnl_middleware.viewer.html import export  # noqa: PLC0415 - its template engine is an extra
    except ImportError as error:
        raise NotInstalledError("Pages need jinja2: pip install 'gnl-middleware[cli]'") from error
    from gnl_middleware.viewer.page import page_of  # noqa: PLC0415

    return export(page_of(record, journal.steps(record.run_id), _history(journal, record.run_id), place))


def _lines(journal: Journal, record: RunRecord) -> Iterator[str]:
    told = plain.show_object(record, journal.steps(record.run_id), [], _history(journal, record.run_id))
    yield _line("run", told["run"])
    for kind in ("attempts", "steps", "resolutions", "removals"):
        for item in told[kind]:
            yield _line(kind.removesuffix("s"), item)


def _line(kind: str, item: dict[str, Any]) -> str:
    return f"{json.dumps({'type': kind} | item)}\n"
