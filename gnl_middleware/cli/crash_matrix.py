"""``gnl crash-matrix``: kill the workers of an agent of the user's own at every point, and count what happened."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gnl_middleware.viewer.plain import visible

from .loading import find_modules_here, loaded

if TYPE_CHECKING:
    from gnl_middleware.testing import CrashMatrix
    from gnl_middleware.testing.jobs import Subject
    from gnl_middleware.testing.sweep import Settings

_POINTS = (
    "before_intent",
    "after_intent",
    "before_body",
    "mid_stream",
    "after_body",
    "before_outcome",
    "after_outcome",
)
_NONE = "none"


class _CannotCheckError(click.ClickException):
    """Nothing can be said of the agent."""

    exit_code = 2


@click.command("crash-matrix", short_help="Kill your agent's worker at every crash point, and count.")
@click.argument("build", metavar="MODULE:BUILD")
@click.option("--run", default="run", show_default=True, metavar="NAME", help="run(agent, run_id, journal).")
@click.option(
    "--effects",
    default="effects",
    show_default=True,
    metavar="NAME",
    help=f"effects(run_id), or effects(), counts by tool name; '{_NONE}' for an agent without effects.",
)
@click.option("--resolve", default=_NONE, metavar="NAME", help="resolve(call) decides the calls that block.")
@click.option("--point", "points", multiple=True, type=click.Choice(_POINTS), help="Only this point.")
@click.option("--step", "steps", multiple=True, metavar="STEP", help="Only this step: a number or a name.")
@click.option(
    "--processes", default=2, show_default=True, type=click.IntRange(min=1), help="Workers at once."
)
@click.option(
    "--timeout",
    default=60.0,
    show_default=True,
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="After which a worker counts as hung.",
)
@click.option("--journal", metavar="PATH_OR_URL", help="Keep all runs in this journal, to look into.")
@click.option(
    "--html",
    metavar="FILE",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    help="Write the matrix as a page, too.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead.")
def command(
    *,
    build: str,
    run: str,
    effects: str,
    resolve: str,
    points: Sequence[str],
    steps: Sequence[str],
    processes: int,
    timeout: float,
    journal: str | None,
    html: Path | None,
    as_json: bool,
) -> None:
    """Kill an agent's worker at every crash point, restart it with the same call, and count what happened.

    MODULE:BUILD builds the agent. The other functions are found in the same module, unless they are given as MODULE:NAME
    themselves; modules are found from the current folder on. What the functions do is told in docs/testing.md.

    Exits with 0 when the agent is safe, with 1 when it is not, and with 2 when nothing can be said: a function cannot be
    loaded, or the run fails without any crash.

    With --json: {"version", "safe", "seconds", "clean", "cells"}, as CrashMatrix.to_json() describes it.
    """
    from gnl_middleware.testing.sweep import Settings  # noqa: PLC0415 - `gnl --help` must not wait for it

    _check_folder(html)
    settings = Settings(
        journal=journal,
        points=[point for point in _POINTS if point in points] or None,
        steps=[int(step) if step.isdecimal() else step for step in steps] or None,
        processes=processes,
        timeout=timeout,
    )
    matrix = _explored(_subject(build, run, effects, resolve), settings, as_json=as_json)
    if html is not None:
        html.write_text(matrix.to_html(), encoding="utf-8")
    if as_json:
        click.echo(matrix.to_json())
    else:
        from . import matrix_table, render  # noqa: PLC0415 - rich is loaded by those who print with it

        matrix_table.print_matrix(render.console(), matrix, journal=journal)
    raise SystemExit(0 if matrix.safe else 1)


def _check_folder(html: Path | None) -> None:
    if html is not None and not html.absolute().parent.is_dir():
        told = f"the folder {visible(str(html.parent))} does not exist"
        raise click.BadParameter(told, param_hint="--html")


def _subject(build: str, run: str, effects: str, resolve: str) -> "Subject":
    from gnl_middleware.testing.jobs import Subject  # noqa: PLC0415 - `gnl --help` must not wait for it

    module = build.partition(":")[0]
    find_modules_here()
    return Subject(
        build=loaded(build, module, "MODULE:BUILD"),
        run=loaded(run, module, "--run"),
        effects=None if effects == _NONE else loaded(effects, module, "--effects"),
        resolve=None if resolve == _NONE else loaded(resolve, module, "--resolve"),
    )


def _explored(subject: "Subject", settings: "Settings", *, as_json: bool) -> "CrashMatrix":
    """The matrix, with a bar on a terminal while it is made."""
    from gnl_middleware.testing import CrashToolkitError  # noqa: PLC0415 - `gnl --help` must not wait for it
    from gnl_middleware.testing.exploring import assembled  # noqa: PLC0415

    from .matrix_table import watched  # noqa: PLC0415 - rich is loaded by those who print with it

    try:
        return assembled(watched(subject, settings, quiet=as_json))
    except CrashToolkitError as error:
        lines = str(error).splitlines()
        raise _CannotCheckError("\n".join(visible(line) for line in lines)) from error
    except ValueError as error:
        raise click.UsageError(visible(str(error))) from error
