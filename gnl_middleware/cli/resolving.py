"""`gnl resolve`: a person's decision about a call that may have happened, in one line or asked for."""

import getpass
import json
import sys
from typing import NoReturn

import click

from gnl_middleware.model import Decision, Done, Failed, NotDone, Step
from gnl_middleware.viewer import plain
from gnl_middleware.viewer.plain import Place, WaitingStep, compact, visible
from gnl_middleware.viewer.words import moment

from .opening import journal_option, json_option, opened, place_of, record_of, run_argument, utf8


@click.command("resolve")
@run_argument
@click.argument("step", metavar="[STEP]", required=False, callback=utf8)
@click.option(
    "--happened", is_flag=True, help="It happened. Without --result the agent gets 'confirmed by NAME'."
)
@click.option(
    "--result", metavar="JSON", callback=utf8, help="What it returned; a text is written '\"sent\"'."
)
@click.option("--did-not-happen", is_flag=True, help="It has not happened and no longer can: it may run.")
@click.option("--failed", metavar="TEXT", callback=utf8, help="The agent gets an error with this text.")
@click.option("--by", metavar="NAME", callback=utf8, help="Who decides. [default: your login, on a terminal]")
@click.option("--note", metavar="TEXT", default="", callback=utf8, help="Why; kept for audit.")
@journal_option
@json_option
@click.pass_context
def command(
    context: click.Context,
    *,
    run_id: str,
    step: str | None,
    happened: bool,
    result: str | None,
    did_not_happen: bool,
    failed: str | None,
    by: str | None,
    note: str,
    url: str,
    as_json: bool,
) -> None:
    """Decide a call that may have happened; the first decision wins.

    STEP is its number or key (gnl show RUN), or the name of its tool where only one call of it waits. Give exactly one of
    --happened, --did-not-happen and --failed. On a terminal, all of them and STEP may be left out: you are shown each call
    that waits, and asked. Then run the same code again.

    With --json: {"step": STEP}, the step as it stands now (see gnl show --help).
    """
    given = happened + did_not_happen + (failed is not None)
    place = place_of(context)
    if given == 0 and not as_json and sys.stdin.isatty():
        ask(url, run_id, step, by, place)
        return
    if given != 1 or step is None:
        raise click.UsageError(
            "Give a STEP, and exactly one of --happened, --did-not-happen and --failed TEXT."
        )
    if result is not None and not happened:
        raise click.UsageError("--result belongs to --happened: only what happened has a result.")
    person = _person(by)
    decision = (
        NotDone() if did_not_happen else _happened(result, person) if failed is None else _failed(failed)
    )
    with opened(url) as journal:
        record = record_of(journal, run_id, place)
        decided = journal.resolve(run_id, step, decision, by=person, note=note)
        others = plain.waiting_steps(record, journal.steps(run_id), place)
    if as_json:
        click.echo(plain.json_text(plain.resolve_object(decided)))
        return
    _tell(decided, person)
    _go_on(run_id, len(others), place.command("show", run_id))


def _tell(decided: Step, person: str) -> None:
    click.echo(
        f"Step {decided.number}, {visible(decided.name)}, is decided: {decided.resolution}, by {visible(person)}."
    )


def _go_on(run_id: str, others: int, command: str) -> None:
    if others:
        click.echo(f"The run waits for {others} more: {command}")
    else:
        click.echo(f"Run the same code again with run id {run_id!r}: it goes on from there.")


def ask(url: str, run_id: str, step: str | None, by: str | None, place: Place) -> None:
    """Show a person each call of a run that waits, and take the decision."""
    with opened(url) as journal:
        record = record_of(journal, run_id, place)
        waiting = plain.waiting_steps(record, journal.steps(run_id), place)
        meant = [
            item for item in waiting if step in (None, item.step.key, str(item.step.number), item.step.name)
        ]
        if not meant:
            there = ", ".join(f"{item.step.number} ({visible(item.step.name)})" for item in waiting)
            raise click.ClickException(f"No such step waits for a decision; waiting: {there or 'none'}.")
        person = _person(by)
        left = len(meant)
        for item in meant:
            _show(item)
            decision = _asked(person)
            if decision is not None:
                note = click.prompt("Why, for the audit", default="", show_default=False)
                _tell(journal.resolve(run_id, item.step.key, decision, by=person, note=note), person)
                left -= 1
    _go_on(run_id, left, place.command("resolve", run_id))


def _show(item: WaitingStep) -> None:
    step = item.step
    told = "has not run" if item.withheld else "may have happened"
    click.echo(f"\nStep {step.number}, {visible(step.name)}, {told}.")
    click.echo(f"  arguments        {compact(step.arguments)}")
    click.echo(f"  idempotency key  {item.idempotency_key}")
    click.echo(f"  began            {moment(step.started_at)}, try {step.attempts}")
    click.echo(f"  left unsettled   {visible(item.reason)}")
    if step.error is not None:
        click.echo(f"  its error        {visible(step.error)}")


def _asked(person: str) -> Decision | None:
    choices = {
        "h": "it happened",
        "n": "it did not, and no longer can: it may run",
        "f": "the agent gets an error",
    }
    for letter, meaning in (*choices.items(), ("s", "skip: decide later")):
        click.echo(f"  [{letter}] {meaning}")
    chosen = click.prompt(
        "Look whether it happened. What is it", type=click.Choice([*choices, "s"]), show_choices=False
    )
    if chosen == "h":
        return click.prompt(
            "Its result, as JSON",
            default="",
            show_default=False,
            value_proc=lambda text: _happened(text or None, person),
        )
    if chosen == "f":
        return click.prompt("The error that the agent gets", value_proc=_failed)
    return NotDone() if chosen == "n" else None


def _happened(result: str | None, person: str) -> Done:
    if result is None:
        return Done(f"confirmed by {person}")
    try:
        return Done(json.loads(result, parse_constant=_refused_constant))
    except (ValueError, RecursionError) as error:
        example = "a text is written '\"sent\"'"
        raise click.BadParameter(f"it is not JSON ({error}); {example}.", param_hint="--result") from None


def _refused_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is Python's, not JSON's")


def _failed(text: str) -> Failed:
    if not text.strip():
        raise click.UsageError("--failed needs a text: it is the error that the agent gets.")
    return Failed(text)


def _person(by: str | None) -> str:
    if by is None and sys.stdin.isatty():
        try:
            by = getpass.getuser()
        except (OSError, KeyError, ImportError):
            by = None
    if by is None or not by.strip():
        raise click.UsageError("Say who decides, for the audit: --by NAME")
    return by
