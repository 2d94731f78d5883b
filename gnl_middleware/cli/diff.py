"""`gnl diff`: where two runs part."""

import click

from gnl_middleware.viewer import plain

from .opening import journal_option, json_option, opened, place_of, record_of, utf8


@click.command("diff")
@click.argument("run_a", metavar="A", callback=utf8)
@click.argument("run_b", metavar="B", callback=utf8)
@journal_option
@json_option
@click.pass_context
def command(context: click.Context, run_a: str, run_b: str, url: str, as_json: bool) -> None:
    """Show where two runs part: the first step at which they differ, and what differs there.

    Run ids, times, call ids that providers make up, and the order in which parallel calls came are no difference.

    With --json: {"a": RUN_ID, "b": RUN_ID, "equal_steps": NUMBER, "what": WHAT, "step_a": STEP, "step_b": STEP, "difference":
    TEXT}; WHAT is only_in_a, only_in_b, name, arguments, messages, setup, reply, outcome, or null where the runs are equal;
    STEP is as for gnl show, or null.
    """
    place = place_of(context)
    with opened(url) as journal:
        for run_id in (run_a, run_b):
            record_of(journal, run_id, place)
        found = journal.diff(run_a, run_b)
    if as_json:
        click.echo(plain.json_text(plain.difference_object(found)))
        return
    from . import render  # noqa: PLC0415 - rich is loaded by those who print with it

    render.print_difference(render.console(), found)
