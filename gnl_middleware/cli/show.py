"""`gnl show`: one run, whole."""

import click

from gnl_middleware.model import RunRecord
from gnl_middleware.viewer import plain
from gnl_middleware.viewer.plain import History

from .opening import journal_option, json_option, opened, place_of, record_of, run_argument


@click.command("show")
@run_argument
@journal_option
@json_option
@click.pass_context
def command(context: click.Context, run_id: str, url: str, as_json: bool) -> None:
    """Show a run, its steps, and what waits for a decision.

    What happened inside a step, or on a named branch, stands indented under it. The column "attempt" says in which attempt
    a step ran; every later one read it back.

    With --json: {"run": RUN, "steps": [STEP, ...], "waiting": [WAITING, ...], "attempts": [ATTEMPT, ...],
    "resolutions": [RESOLUTION, ...], "removals": [REMOVAL, ...]}; see docs/command-line.md for what stands in each.
    """
    place = place_of(context)
    with opened(url) as journal:
        record = record_of(journal, run_id, place)
        steps = journal.steps(run_id)
        history = History(journal.attempts(run_id), journal.resolutions(run_id), journal.removals(run_id))
    waiting = plain.waiting_steps(record, steps, place)
    if as_json:
        click.echo(plain.json_text(plain.show_object(record, steps, waiting, history)))
        return
    from . import render  # noqa: PLC0415 - rich is loaded by those who print with it

    out = render.console()
    render.print_run(out, record)
    render.print_history(out, history)
    if record.status != "erased" or steps:
        render.print_steps(out, steps)
    render.print_waiting(out, record, waiting)
    _say_how_to_go_on(record)


def _say_how_to_go_on(record: RunRecord) -> None:
    if record.status == "erased":
        click.echo(f"Its record was removed; journal.run({record.run_id!r}, restart=True) begins it anew.")
