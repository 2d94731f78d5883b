"""The commands of `gnl`: each opens a journal that exists, asks it, and prints the answer.

Exit codes: 0 when it went well; 1 when what was asked about is not there, or was refused; 2 when the command could not be
understood. Importing this module loads click; rich and the journal's database load inside the commands.
"""

from importlib.metadata import entry_points
from typing import Any, NoReturn

import click

from gnl_middleware.errors import GnlError
from gnl_middleware.viewer.plain import visible

from . import (
    cassettes,
    crash_matrix,
    diff,
    doctor,
    explain,
    export,
    fork,
    removing,
    resolving,
    runs,
    serving,
    show,
    upkeep,
    verify,
)
from .opening import NotInstalledError

DEMO_GROUP = "gnl_middleware.demo"
"""Entry points under which adapters offer their demo, as a click command."""

_EXIT_CODES = (
    "Exit codes: 0 it went well; 1 what was asked about is not there, or was refused; 2 the command could not be "
    "understood, or something that it needs is not installed."
)


class _Commands(click.Group):
    """Commands whose errors are a paragraph, never a traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; the library's errors end it with exit code 1."""
        try:
            return super().invoke(ctx)
        except GnlError as error:
            told = visible(str(error.args[0] if error.args else error))
            raise click.ClickException(f"{told} (More: gnl explain {error.page}.)") from error


@click.group(cls=_Commands, epilog=_EXIT_CODES, context_settings={"help_option_names": ["-h", "--help"]})
def app() -> None:
    """Look into the journals of agents, and decide what may have happened."""


for _command in (
    *(
        crash_matrix.command,
        verify.command,
        runs.command,
        show.command,
        resolving.command,
        export.command,
        cassettes.command,
    ),
    *(removing.prune, removing.erase, doctor.command, upkeep.database, upkeep.completion),
    *(serving.command, explain.command, fork.command, diff.command),
):
    app.add_command(_command)


@app.command(
    "demo",
    short_help="Kill an agent at every crash point, and restart it.",
    add_help_option=False,
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@click.pass_context
def demo(context: click.Context, arguments: tuple[str, ...]) -> None:
    """Run the demo that is installed; its options, its help included, are its own."""
    command = _demo_command()
    with command.make_context("demo", list(arguments), parent=context.parent) as inner:
        command.invoke(inner)


def _demo_command() -> click.Command:
    """The first demo that is installed; its own options are known to itself only."""
    found = sorted(entry_points(group=DEMO_GROUP), key=lambda entry: entry.name)
    try:
        command = found[0].load() if found else None
    except ImportError as error:
        _cannot_demonstrate(visible(str(error)))
    if not isinstance(command, click.Command):
        _cannot_demonstrate("it is not installed")
    return command


def _cannot_demonstrate(reason: str) -> NoReturn:
    raise NotInstalledError(f"The demo cannot run ({reason}): pip install 'gnl-middleware[demo]'")
