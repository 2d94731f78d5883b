"""What commands have in common: which journal is meant, and what stands in it under a name."""

import json
import os
import re
import sqlite3
from collections.abc import Generator
from contextlib import closing, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from gnl_middleware.errors import GnlError
from gnl_middleware.journal import Journal
from gnl_middleware.model import RunRecord
from gnl_middleware.storage.address import Address, parse
from gnl_middleware.viewer.plain import Place, visible

from .loading import find_modules_here, loaded

OPEN_WITH = "GNL_OPEN_WITH"
"""Names the function that opens journals with their keys, as ``module:function``; it is given the path or URL."""

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_COMPLETED = 50


class NotInstalledError(click.ClickException):
    """A command needs something that is not installed."""

    exit_code = 2


def utf8(_context: click.Context, _parameter: click.Parameter, text: str | None) -> str | None:
    """The text, if the journal can store it: arguments of another encoding arrive as lone surrogates."""
    if text is not None and not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise click.BadParameter(f"{visible(text)} is not UTF-8: set the terminal to UTF-8.") from None
    return text


def as_duration(_context: click.Context, _parameter: click.Parameter, text: str | None) -> timedelta | None:
    """A length of time from a number and a unit: 30d, 12h, 15m, 90s or 2w."""
    if text is None:
        return None
    read = re.fullmatch(r"([0-9]{1,6})([smhdw])", text)
    if read is None:
        raise click.BadParameter(f"{visible(text)} is no length of time: write 90s, 15m, 12h, 30d or 2w.")
    return timedelta(**{_UNITS[read[2]]: int(read[1])})


def _as_marks(context: click.Context, parameter: click.Parameter, texts: tuple[str, ...]) -> dict[str, Any]:
    """Names of metadata and their values: JSON where it is JSON, else text."""
    return dict(_as_mark(utf8(context, parameter, text) or "") for text in texts)


def _as_mark(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise click.BadParameter(f"{visible(text)} is not NAME=VALUE.")
    try:
        return name, json.loads(value)
    except (ValueError, RecursionError):
        return name, value


def _as_tags(context: click.Context, parameter: click.Parameter, texts: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(utf8(context, parameter, text) or "" for text in texts)


def runs_beginning(context: click.Context, _parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """The run ids that a shell may complete; where there is no journal, none."""
    try:
        with opened(context.params.get("url") or "gnl.db") as journal:
            records = journal.runs(like=f"{begun}*", limit=_COMPLETED)
    except (click.ClickException, GnlError, ImportError):
        return []
    return [
        CompletionItem(record.run_id, help=record.status) for record in records if record.run_id.isprintable()
    ]


run_argument = click.argument("run_id", metavar="RUN", callback=utf8, shell_complete=runs_beginning)
journal_option = click.option(
    "--journal",
    "url",
    metavar="PATH_OR_URL",
    envvar="GNL_JOURNAL",
    default="gnl.db",
    show_default=True,
    show_envvar=True,
    is_eager=True,
    help="The journal; it must exist.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead.")
where_option = click.option(
    "--where",
    "metadata",
    metavar="NAME=VALUE",
    multiple=True,
    callback=_as_marks,
    help="Only runs with this metadata; VALUE is JSON, or else text. Several must all hold.",
)
tag_option = click.option(
    "--tag",
    "tags",
    metavar="TAG",
    multiple=True,
    callback=_as_tags,
    help="Only runs with this tag. Several must all be there.",
)


def place_of(context: click.Context) -> Place:
    """How commands to copy name the journal; what the environment chooses, it will choose again."""
    named = context.get_parameter_source("url") is click.core.ParameterSource.COMMANDLINE
    url = context.params["url"]
    if "://" in url:
        url = address_of(url).shown  # without its password
    return Place(("--journal", url) if named else ())


def record_of(journal: Journal, run_id: str, place: Place) -> RunRecord:
    """The run of this name.

    Raises:
        click.ClickException: There is none.
    """
    try:
        record = journal.find(run_id)
    except ValueError:
        record = None
    if record is None:
        listing = place.command("runs")
        raise click.ClickException(
            f"There is no run {run_id!r} in {visible(journal.url)}. List those that there are: {listing}"
        )
    return record


@contextmanager
def opened(url: str) -> Generator[Journal]:
    """The journal, if there is one: looking must not create it."""
    check_there(address_of(url))
    with _opened_by_the_user(url) as journal:
        yield journal


def _opened_by_the_user(url: str) -> Journal:
    """The journal, opened with its keys by the function that the environment names, if it names one."""
    named = os.environ.get(OPEN_WITH)
    if not named:
        return Journal(url)
    find_modules_here()
    found = loaded(named, "", OPEN_WITH)(url)
    if not isinstance(found, Journal):
        raise click.BadParameter(
            f"{visible(named)} gave {type(found).__name__}, no Journal", param_hint=OPEN_WITH
        )
    return found


def check_there(address: Address) -> None:
    """Refuse what is no journal.

    Raises:
        click.ClickException: Nothing is there, or something else.
    """
    problem = _problem(address.path) if address.path is not None else _server_problem(address)
    if problem is not None:
        raise click.ClickException(
            f"{visible(str(address.path or address.shown))} {problem}; nothing was created or changed. Name the journal "
            f"that your code writes with --journal PATH_OR_URL, or in the variable GNL_JOURNAL."
        )


def address_of(url: str) -> Address:
    """Where the journal is.

    Raises:
        click.BadParameter: The URL means nothing.
    """
    try:
        return parse(url)
    except ValueError as error:
        raise click.BadParameter(visible(str(error)), param_hint="--journal") from error


def _server_problem(address: Address) -> str | None:
    """Why a database is no journal, in words; None where it is one."""
    from gnl_middleware.storage.postgres import holds_journal  # noqa: PLC0415 - its driver is an extra

    return None if holds_journal(address) else f"holds no journal in the schema {address.schema}"


def _problem(path: Path) -> str | None:
    """Why a file is no journal, in words; None where it is one, or where opening it will say more."""
    try:
        if not path.is_file():
            return "is no file" if path.exists() else "does not exist"
        # Opening a journal creates its tables, which must not happen to the database of somebody else.
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as connection:
            found = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'gnl_schema'").fetchone()
    except OSError as error:
        return f"cannot be read ({error.strerror})"
    except sqlite3.Error:
        return None
    return "is a database, but no journal" if found is None else None
