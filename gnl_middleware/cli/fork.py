"""`gnl fork`: begin a run as a copy of another one's past."""

import json
from typing import NoReturn

import click

from gnl_middleware.model import Done, Failed, RunRecord
from gnl_middleware.viewer import plain
from gnl_middleware.viewer.plain import Place, visible

from .opening import journal_option, json_option, opened, place_of, record_of, run_argument, utf8


def _pairs(context: click.Context, parameter: click.Parameter, texts: tuple[str, ...]) -> dict[str, str]:
    """STEP=TEXT, from each of the texts."""
    pairs: dict[str, str] = {}
    for text in texts:
        step, equals, given = (utf8(context, parameter, text) or "").partition("=")
        if not (step and equals):
            raise click.BadParameter(f"{visible(text)} is not STEP=…, such as send_email=… or 4=…")
        if step in pairs:
            raise click.BadParameter(f"{visible(step)} is given twice.")
        pairs[step] = given
    return pairs


@click.command("fork")
@run_argument
@click.argument("new_run_id", metavar="NEW", callback=utf8)
@click.option(
    "--before",
    metavar="STEP",
    callback=utf8,
    help="Keep what the run did before the reply that asks for it. [default: keep all]",
)
@click.option(
    "--edit",
    "edited",
    metavar="STEP=JSON",
    multiple=True,
    callback=_pairs,
    help="Give a step that is kept another result; a text is written 'lookup=\"gold\"'.",
)
@click.option(
    "--fail",
    "failed",
    metavar="STEP=TEXT",
    multiple=True,
    callback=_pairs,
    help="Let a step that is kept have failed with this text.",
)
@click.option("--effects", is_flag=True, help="Let never and keyed calls run in the fork.")
@click.option("--by", metavar="NAME", default="", callback=utf8, help="Who edits; kept for audit.")
@click.option("--note", metavar="TEXT", default="", callback=utf8, help="Why; kept for audit.")
@journal_option
@json_option
@click.pass_context
def command(
    context: click.Context,
    *,
    run_id: str,
    new_run_id: str,
    before: str | None,
    edited: dict[str, str],
    failed: dict[str, str],
    effects: bool,
    by: str,
    note: str,
    url: str,
    as_json: bool,
) -> None:
    """Begin the run NEW as a copy of RUN's past; then run the same code with the run id NEW.

    What is kept is read back, and the model is asked anew from there on. RUN stays as it is. STEP is a number or key
    (gnl show RUN), or the name of a tool that was called once. Without --effects, a never or keyed call does not run in the
    fork: the run stops there, and you say what the call gives.

    With --json: {"run": RUN}, the new run (see gnl runs --help).
    """
    if twice := sorted(edited.keys() & failed.keys()):
        raise click.UsageError(f"{visible(twice[0])} has a result with --edit and an error with --fail.")
    outcomes = {step: _done(step, text) for step, text in edited.items()}
    errors = {step: Failed(text) for step, text in failed.items()}
    place = place_of(context)
    with opened(url) as journal:
        record_of(journal, run_id, place)
        record = journal.fork(
            run_id, new_run_id, before=before, edits=outcomes | errors, effects=effects, by=by, note=note
        )
        kept = len(journal.steps(new_run_id))
    if as_json:
        click.echo(plain.json_text(plain.run_object_only(record)))
    else:
        _print(record, kept, len(outcomes) + len(errors), place)


def _done(step: str, text: str) -> Done:
    try:
        return Done(json.loads(text, parse_constant=_refused_constant))
    except (ValueError, RecursionError) as error:
        example = f"a text is written '{visible(step)}=\"gold\"'"
        raise click.BadParameter(f"it is not JSON ({error}); {example}.", param_hint="--edit") from None


def _refused_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is Python's, not JSON's")


def _print(record: RunRecord, kept: int, edited: int, place: Place) -> None:
    from . import render  # noqa: PLC0415 - rich is loaded by those who print with it

    out = render.console()
    render.print_run(out, record)
    steps = f"{kept} step{'' if kept == 1 else 's'} kept" + (f", {edited} of them edited" if edited else "")
    effects = "Side effects run." if record.effects else "No side effect runs: the run stops before one."
    click.echo(f"{steps}. {effects}")
    click.echo(f"Run the same code with run id {record.run_id!r}; then compare:")
    click.echo(f"  {place.command('diff', record.forked_from or '', record.run_id)}")
