"""`gnl explain`: the page of an error, without a network."""

from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

import click
from click.shell_completion import CompletionItem

_SHIPPED = "pages"
_IN_THE_REPOSITORY = Path(__file__).parents[2] / "docs" / "errors"


def _pages() -> dict[str, Traversable]:
    """The page of each error, by its name in small letters."""
    shipped = files(__package__ or "") / _SHIPPED
    folder: Traversable = shipped if shipped.is_dir() else _IN_THE_REPOSITORY
    found = [page for page in folder.iterdir() if page.name.endswith("Error.md")]
    return {page.name.removesuffix(".md").lower(): page for page in sorted(found, key=lambda page: page.name)}


def _completed(_context: click.Context, _parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    names = [page.name.removesuffix(".md") for page in _pages().values()]
    return [CompletionItem(name) for name in names if name.lower().startswith(begun.lower())]


@click.command("explain")
@click.argument("error", metavar="[ERROR]", required=False, shell_complete=_completed)
def command(error: str | None) -> None:
    """Tell what an error means, why it matters and what to do; without a name, list the errors."""
    pages = _pages()
    if error is None:
        click.echo("\n".join(page.name.removesuffix(".md") for page in pages.values()))
        return
    wanted = error.rpartition(".")[2].lower()
    page = pages.get(wanted) or pages.get(f"{wanted}error")
    if page is None:
        raise click.ClickException("There is no such error. List those that there are: gnl explain")
    click.echo(page.read_text(encoding="utf-8"), nl=False)
