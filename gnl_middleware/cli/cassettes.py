"""``gnl export RUN --cassette FILE`` and ``gnl import FILE``: a journalled run as a cassette, and a cassette as a run."""

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import click

from gnl_middleware.journal import Journal
from gnl_middleware.viewer.plain import visible

from .opening import NotInstalledError, utf8


def write_cassette(
    journal: Journal, run_id: str, path: Path, *, replace: Sequence[str], allow: Sequence[str]
) -> None:
    """Write what the models of a run were asked and answered, and say how to play it.

    Args:
        journal: The journal.
        run_id: The run.
        path: The file to write.
        replace: ``TEXT=TEXT``: what to write in the place of what.
        allow: Texts that look like secrets and are none.

    Raises:
        click.ClickException: Something that it needs is not installed, or an option cannot be understood.
        GnlError: The run cannot be exported, or holds a secret.
    """
    _check_installed()
    from gnl_middleware.cassettes import export_run  # noqa: PLC0415 - vcrpy is an extra

    count = export_run(journal, run_id, path, replace=_pairs(replace), allow=allow)
    click.echo(f"{_calls(count)} written to {visible(str(path))}.")
    click.echo(f"Play it in a test: with use_cassette({visible(repr(str(path)))}): ...")


@click.command("import", short_help="Journal a cassette's model calls as a run.")
@click.argument("path", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--run", "run_id", metavar="RUN", callback=utf8, help="The new run. [default: the file's name]")
@click.option(
    "--journal",
    "url",
    metavar="PATH_OR_URL",
    envvar="GNL_JOURNAL",
    default="gnl.db",
    show_default=True,
    show_envvar=True,
    help="The journal; it is created where there is none.",
)
def command(*, path: Path, run_id: str | None, url: str) -> None:
    """Journal the model calls of a cassette as a new run, as JournalTransport would have recorded them."""
    _check_installed()
    from gnl_middleware.cassettes import import_cassette  # noqa: PLC0415 - vcrpy is an extra

    if not path.is_file():
        raise click.ClickException(f"There is no file {visible(str(path))}.")
    name = run_id or path.stem
    with Journal(url) as journal:
        count = import_cassette(journal, path, name)
    click.echo(f"{_calls(count)} journalled as run {visible(repr(name))}.")


def _calls(count: int) -> str:
    return "1 model call" if count == 1 else f"{count} model calls"


def _pairs(given: Sequence[str]) -> dict[str, str]:
    pairs = dict[str, str]()
    for item in given:
        secret, equals, placeholder = item.partition("=")
        if not secret or not equals:
            raise click.BadParameter(f"{visible(item)} is not TEXT=TEXT", param_hint="--replace")
        pairs[secret] = placeholder
    return pairs


def _check_installed() -> None:
    if find_spec("vcr") is None:
        raise NotInstalledError("Cassettes need vcrpy: pip install 'gnl-middleware[cassettes]'")
