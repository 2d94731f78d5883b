"""The commands of `gnl`: each opens a journal that exists, asks it, and prints the answer.

Exit codes: 0 when it went well; 1 when what was asked about is not there, or was refused; 2 when the command could not be
understood. Importing this module loads click; a command's module, and all that it needs, loads when the command is used.
"""

from importlib import import_module
from typing import Any, NoReturn

import click

DEMO_GROUP = "gnl_middleware.demo"
"""Entry points under which adapters offer their demo, as a click command."""

_EXIT_CODES = (
    "Exit codes: 0 it went well; 1 what was asked about is not there, or was refused; 2 the command could not be "
    "understood, or something that it needs is not installed."
)
_DEMO = "Kill an agent at every crash point, and restart it."
_COMMANDS = {
    "completion": ("upkeep:completion", "Print what makes a shell complete commands, options and run ids."),
    "crash-matrix": ("crash_matrix:command", "Kill your agent's worker at every crash point, and count."),
    "db": ("upkeep:database", "Look after the database of a journal."),
    "diff": (
        "diff:command",
        "Show where two runs part: the first step at which they differ, and what differs there.",
    ),
    "doctor": (
        "doctor:command",
        "Check the journal, and say what the next attempt of each open run would do.",
    ),
    "erase": ("removing:erase", "Remove all that a run, or all runs about somebody, recorded."),
    "explain": (
        "explain:command",
        "Tell what an error means, why it matters and what to do; without a name, list the errors.",
    ),
    "export": ("export:command", "Write a run as one HTML page, as lines of JSON, or as a cassette."),
    "fork": (
        "fork:command",
        "Begin the run NEW as a copy of RUN's past; then run the same code with the run id NEW.",
    ),
    "import": ("cassettes:command", "Journal a cassette's model calls as a run."),
    "prune": ("removing:prune", "Remove the records of runs that ended long ago."),
    "resolve": ("resolving:command", "Decide a call that may have happened; the first decision wins."),
    "runs": ("runs:command", "List the runs, the latest first."),
    "serve": ("serving:command", "Show runs live in a browser, and decide there."),
    "show": ("show:command", "Show a run, its steps, and what waits for a decision."),
    "verify": ("verify:command", "Replay a recorded run against today's code."),
}
"""Where each command stands, and its line in the help: `gnl --help` loads none of them."""


class _Commands(click.Group):
    """Commands that load when they are used, and whose errors are a paragraph, never a traceback."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, in the order of the alphabet."""
        return sorted({*super().list_commands(ctx), *_COMMANDS})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of this name, loaded."""
        if cmd_name in _COMMANDS and cmd_name not in self.commands:
            module, _, name = _COMMANDS[cmd_name][0].partition(":")
            self.add_command(getattr(import_module(f".{module}", __package__), name), cmd_name)
        return super().get_command(ctx, cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """A line for each command, from the table: nothing is loaded."""
        lines = {name: line for name, (_, line) in _COMMANDS.items()} | {"demo": _DEMO}
        with formatter.section("Commands"):
            formatter.write_dl([(name, lines[name]) for name in self.list_commands(ctx)])

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; the library's errors end it with exit code 1."""
        from gnl_middleware.errors import GnlError  # noqa: PLC0415 - the help needs neither
        from gnl_middleware.viewer.plain import visible  # noqa: PLC0415

        try:
            return super().invoke(ctx)
        except GnlError as error:
            told = visible(str(error.args[0] if error.args else error))
            raise click.ClickException(f"{told} (More: gnl explain {error.page}.)") from error


@click.group(cls=_Commands, epilog=_EXIT_CODES, context_settings={"help_option_names": ["-h", "--help"]})
def app() -> None:
    """Look into the journals of agents, and decide what may have happened."""


@app.command(
    "demo",
    short_help=_DEMO,
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
    from importlib.metadata import entry_points  # noqa: PLC0415 - only the demo looks for what is installed

    found = sorted(entry_points(group=DEMO_GROUP), key=lambda entry: entry.name)
    try:
        command = found[0].load() if found else None
    except ImportError as error:
        _cannot_demonstrate(str(error))
    if not isinstance(command, click.Command):
        _cannot_demonstrate("it is not installed")
    return command


def _cannot_demonstrate(reason: str) -> NoReturn:
    from gnl_middleware.viewer.plain import visible  # noqa: PLC0415 - the help needs neither

    from .opening import NotInstalledError  # noqa: PLC0415

    raise NotInstalledError(f"The demo cannot run ({visible(reason)}): pip install 'gnl-middleware[demo]'")
