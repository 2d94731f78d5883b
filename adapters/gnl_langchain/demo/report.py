"""What the demo says: a table for people, an object for programs."""

import json
import shlex
from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import Any

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from gnl_middleware.testing import POINTS

from .sweep import Clean, CrashPoint, Measurement
from .worker import PERSON

_LABELS = {"lookup_customer": "safe", "create_ticket": "never, recover asks the desk", "send_email": "never"}
_LISTED = 4
_PLACES = {"create_ticket": "at the desk", "send_email": "in mailbox"}


def as_json(clean: Clean, measurements: Iterable[Measurement], journal: str | None) -> dict[str, Any]:
    """The object that `--json` prints.

    Args:
        clean: The clean run.
        measurements: One for each crash point.
        journal: Where the journal was left, if it was.
    """
    return {
        "clean": {
            "run_id": clean.run_id,
            "reply": clean.reply,
            "steps": [_step_name(kind, name) for kind, name in clean.steps],
            "model_calls": len(clean.requests),
            "tickets": clean.tickets,
            "emails": clean.emails,
        },
        "points": [_point_as_json(measurement) for measurement in measurements],
        "journal": journal,
    }


def _point_as_json(measured: Measurement) -> dict[str, Any]:
    return {
        "point": str(measured.point),
        "step": _step_name(measured.point.kind, measured.point.step),
        "model_calls_repeated": measured.model_calls_repeated,
        "requests_identical": measured.requests_identical,
        "tickets": measured.tickets,
        "emails": measured.emails,
        "same_reply": measured.same_reply,
        "blocked": measured.blocked,
        "resolved_by": measured.resolved_by,
        "error": measured.error,
    }


def print_clean(console: Console, clean: Clean, relabel: Mapping[str, str]) -> None:
    """Show the agent and the turn that nobody disturbed."""
    console.print("[bold]A support agent[/] with a help desk (SQLite), a mailbox (a file), and no network.\n")
    for number, (kind, name) in enumerate(clean.steps, start=1):
        label = relabel.get(name, _LABELS.get(name))
        step = _step_name(kind, name)
        console.print(f"  {number}  {step}" if label is None else f"  {number}  {step:<17}[dim]{label}[/]")
    console.print(
        f"\n[bold]Undisturbed[/] it makes {_count(len(clean.requests), 'model call')}, "
        f"{_count(clean.tickets, 'ticket')} and {_count(clean.emails, 'email')}, and replies:"
    )
    console.print(f"  [italic]{escape(clean.reply)}[/]", soft_wrap=True)
    deaths = len(clean.points())
    console.print(
        f"\n[bold]Now its process dies[/] at each of {deaths} points; the next makes the same call again."
    )


def print_table(console: Console, clean: Clean, measurements: list[Measurement]) -> None:
    """Show what became of the run at each crash point, a section for each step."""
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("process dies at", no_wrap=True)
    for heading in ("calls\nrepeated", "tickets", "emails"):
        table.add_column(heading, justify="right")
    table.add_column("reply")
    table.add_column("what the next one found")
    for (_, name), rows in groupby(measurements, lambda row: (row.point.number, _point_step(row.point))):
        table.add_row(Text(name, style="bold"))
        for row in rows:
            table.add_row(
                f"  {row.point}",
                _expected(row.model_calls_repeated, 0),
                _expected(row.tickets, clean.tickets),
                _expected(row.emails, clean.emails),
                Text("same", style="green") if row.same_reply else Text("other", style="bold red"),
                _found(row),
            )
    console.print(table)


def print_decisions(console: Console, measurements: list[Measurement]) -> None:
    """Show the runs that stopped and asked, and the commands that a person answered with."""
    blocked = [measured for measured in measurements if measured.decided is not None]
    if not blocked:
        return
    console.print(
        f"[bold yellow]{_count(len(blocked), 'run')} stopped rather than guess[/] whether the call had happened. "
        "A person looked, and said:\n"
    )
    for measured in blocked:
        console.print(f"  {resolve_command(measured)}", soft_wrap=True, markup=False)
    console.print()


def resolve_command(measured: Measurement) -> str:
    """The command that gives the journal what the person found."""
    decided = measured.decided or {}
    words = ["gnl", "resolve", measured.run_id, str(decided["tool"])]
    if decided["result"] is None:
        words.append("--did-not-happen")
    else:
        words += ["--happened", "--result", json.dumps(decided["result"])]
    return shlex.join([*words, "--by", PERSON])


def print_verdict(
    console: Console, measurements: list[Measurement], relabel: Mapping[str, str], seconds: float
) -> None:
    """Say in one line what was proved, and at what cost."""
    tried, broken = len(measurements), [measured for measured in measurements if not measured.held]
    if broken:
        points = _count(tried, "point")
        console.print(f"[bold red]Broken at {len(broken)} of {points}[/], in {seconds:.1f} s.")
        tickets = [str(row.point) for row in broken if row.tickets > 1]
        emails = [str(row.point) for row in broken if row.emails > 1]
        _print_doubled(console, "The ticket was opened", tickets, relabel.get("create_ticket"))
        _print_doubled(console, "The email was sent", emails, relabel.get("send_email"))
        return
    blocked = sum(measured.blocked for measured in measurements)
    asked = sum(bool(measured.inquiries) for measured in measurements)
    console.print(
        f"[bold green]{tried} deaths, {tried} times the same reply[/], in {seconds:.1f} s: no finished model call was "
        "repeated, each request was the clean run's byte for byte, and there was one ticket and one email every time. "
        f"{tried - blocked - asked} runs needed nothing, {asked} asked the desk, {blocked} asked a person."
    )


def _print_doubled(console: Console, happened: str, points: list[str], relabelled: str | None) -> None:
    """Say where a side effect happened twice, and why it could."""
    if points:
        more = f" and {len(points) - _LISTED} more" if len(points) > _LISTED else ""
        reason = "that must not happen." if relabelled is None else f"`{relabelled}` lets it."
        console.print(f"[bold red]{happened} twice[/] at {', '.join(points[:_LISTED])}{more}: {reason}")


def print_next(
    console: Console, measurements: list[Measurement], relabel: Mapping[str, str], journal: str | None
) -> None:
    """Say what to try next."""
    interesting = next((row for row in measurements if row.blocked or row.doubled), measurements[0])
    offers = list[tuple[str, str]]()
    if journal is None:
        offers.append(("gnl demo --keep", "leaves the journal, to look into"))
    else:
        offers.append(
            (f"gnl show {interesting.run_id} --journal {shlex.quote(journal)}", "the steps of one run")
        )
    if not relabel:
        offers.append(("gnl demo --relabel send_email=safe", "the same deaths without the guard"))
    width = max(len(command) for command, _ in offers)
    console.print("\nTry next:")
    for command, use in offers:
        console.print(f"  {command:<{width}}   [dim]{use}[/]", soft_wrap=True)


def _found(measured: Measurement) -> Text:
    """How the run got past the step at which its process died, or why it did not."""
    if measured.error is not None:
        return Text(measured.error.strip().splitlines()[-1], style="bold red")
    if measured.doubled:
        return Text("happened twice", style="bold red")
    if measured.decided is not None:
        place = _PLACES.get(str(measured.decided["tool"]), "in sight")
        found = place if measured.decided["result"] is not None else f"not {place}"
        return Text(f"blocked; {found}", style="yellow")
    if measured.inquiries:
        return Text(
            "desk has the ticket" if measured.inquiries[-1] else "desk has no ticket: ran", style="cyan"
        )
    return Text(_undisputed(measured.point), style="dim")


def _undisputed(point: CrashPoint) -> str:
    """What a step looks like to the next process when nobody needs to be asked."""
    if point.phase == POINTS[0]:
        return "step not begun"
    if point.phase == POINTS[-1]:
        return "outcome recorded"
    return "no outcome: asked" if point.kind == "model" else "no outcome: ran"


def _expected(count: int, wanted: int) -> Text:
    return Text(str(count), style="" if count == wanted else "bold red")


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _point_step(point: CrashPoint) -> str:
    return f"{point.number} {_step_name(point.kind, point.step)}"


def _step_name(kind: str, name: str) -> str:
    """Tools by their name; a model is a model, whatever it is called."""
    return "model" if kind == "model" else name
