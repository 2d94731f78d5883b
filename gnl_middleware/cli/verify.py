"""``gnl verify``: replay a recorded run against today's code, with the model and the tools switched off."""

import json
from typing import TYPE_CHECKING, Any

import click

from gnl_middleware.viewer.plain import visible

from .integrity import report_integrity
from .loading import find_modules_here, loaded
from .opening import journal_option, json_option, opened, run_argument

if TYPE_CHECKING:
    from gnl_middleware.testing import Verification


class _CannotVerifyError(click.ClickException):
    """Nothing can be said of the run."""

    exit_code = 2


@click.command("verify", short_help="Replay a recorded run against today's code.")
@run_argument
@click.argument("build", metavar="MODULE:BUILD", required=False)
@click.option("--run", default="run", show_default=True, metavar="NAME", help="run(agent, run_id, journal).")
@click.option("--integrity", is_flag=True, help="Check instead whether the record is what was written.")
@click.option("--expect", metavar="HEAD", help="With --integrity: a head that was kept elsewhere.")
@journal_option
@json_option
def command(
    *,
    run_id: str,
    build: str | None,
    run: str,
    integrity: bool,
    expect: str | None,
    url: str,
    as_json: bool,
) -> None:
    """Replay a recorded run against today's code, and report the first difference.

    Nothing runs, nobody is asked, and the journal stays as it is. MODULE:BUILD builds the agent; --run is found in the same
    module, unless it is given as MODULE:NAME itself. Modules are found from the current folder on.

    Exits with 0 when the code does what the record holds, with 1 when it does not, and with 2 when nothing can be said: there
    is no such run, a function cannot be loaded, or it does not open the run.

    With --json: {"run_id", "same", "recorded", "read_back", "verdict", "difference", "unasked", "went_on"}. difference is null
    or {"type", "step_key", "part", "diff"}; unasked lists {"number", "key", "name"}.

    With --integrity nothing is replayed: the rows are compared with their seals, hashes and the head of their chain (see
    docs/trust.md). It exits with 0 where nothing was changed, else with 1. With --json: {"run_id", "head", "covered",
    "later", "problems", "keyed", "intact"}.
    """
    if integrity is (build is not None):
        raise click.UsageError("Give MODULE:BUILD to replay the run, or --integrity to check its record.")
    if expect is not None and not integrity:
        raise click.UsageError("--expect belongs to --integrity.")
    if build is None:
        with opened(url) as journal:
            raise SystemExit(report_integrity(journal, run_id, expect=expect, as_json=as_json))
    verification = _verified(run_id, build, run, url)
    if as_json:
        click.echo(json.dumps(_object(verification)))
    else:
        click.echo("\n".join(visible(line) for line in verification.verdict.splitlines()))
    raise SystemExit(0 if verification.same else 1)


def _verified(run_id: str, build: str, run: str, url: str) -> "Verification":
    from gnl_middleware.testing import CrashToolkitError, verify  # noqa: PLC0415 - `gnl --help` must not wait for it

    module = build.partition(":")[0]
    find_modules_here()
    build_agent, do = loaded(build, module, "MODULE:BUILD"), loaded(run, module, "--run")
    with opened(url) as journal:
        try:
            return verify(build_agent, do, run_id, journal)
        except CrashToolkitError as error:
            raise _CannotVerifyError("\n".join(visible(line) for line in str(error).splitlines())) from error


def _object(verification: "Verification") -> dict[str, Any]:
    error = verification.difference
    return {
        "run_id": verification.run_id,
        "same": verification.same,
        "recorded": verification.recorded,
        "read_back": verification.read_back,
        "verdict": verification.verdict,
        "difference": None
        if error is None
        else {
            "type": type(error).__name__,
            "step_key": getattr(error, "step_key", None),
            "part": getattr(error, "part", None),
            "diff": getattr(error, "diff", None),
        },
        "unasked": [
            {"number": step.number, "key": step.key, "name": step.name} for step in verification.unasked
        ],
        "went_on": verification.went_on,
    }
