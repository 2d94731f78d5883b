"""Answers as rich shows them: tables and paragraphs for people.

Whatever a model, a tool or a caller wrote comes in as `Text` through `visible`, so no markup of theirs is obeyed.
"""

import sys
import time
from collections.abc import Callable, Sequence

from rich import box
from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from gnl_middleware.model import RunDifference, RunRecord, Step
from gnl_middleware.records import Attempt
from gnl_middleware.viewer.plain import History, WaitingStep, compact, summary, visible
from gnl_middleware.viewer.tree import tree, walked
from gnl_middleware.viewer.words import duration, moment, size, spared

_UNBOUNDED = 1000
_SHORTENED = 120
_STYLES = {
    "blocked": "bold yellow",
    "completed": "green",
    "done": "green",
    "failed": "red",
    "erased": "dim",
    "interrupted": "yellow",
    "paused": "cyan",
    "running": "cyan",
    "started": "yellow",
}


def console() -> Console:
    """Standard output; where nobody looks at it (a pipe, a file) no line is folded or cut to a terminal's width."""
    return Console(width=None if sys.stdout.isatty() else _UNBOUNDED, highlight=False)


def print_runs(out: Console, records: Sequence[RunRecord]) -> None:
    """Show a table of runs."""
    out.print(_table_of_runs(records))


def live_runs(out: Console, listed: Callable[[], Sequence[RunRecord]], every: float) -> None:
    """Show the table of runs as it changes, until the person who looks at it has seen enough."""
    with Live(_table_of_runs(listed()), console=out, auto_refresh=False) as shown:
        while True:
            shown.update(_table_of_runs(listed()), refresh=True)
            time.sleep(every)


def run_line(record: RunRecord) -> str:
    """A run on one line, for where no table can be drawn anew."""
    told = (
        f"{moment(record.updated_at)}  {record.status}  {visible(record.run_id)}  attempt {record.attempts}"
    )
    return told if record.holder is None else f"{told}  held by {visible(record.holder)}"


def _table_of_runs(records: Sequence[RunRecord]) -> Table:
    table = _table()
    table.add_column("run", overflow="fold")
    table.add_column("status", no_wrap=True)
    table.add_column("attempts", justify="right")
    table.add_column("updated", no_wrap=True)
    table.add_column("holder", overflow="fold")
    for record in records:
        table.add_row(
            _text(record.run_id),
            _status(record.status),
            str(record.attempts),
            moment(record.updated_at),
            _text(record.holder or ""),
        )
    return table


def print_run(out: Console, record: RunRecord) -> None:
    """Show the header of one run."""
    attempts = f"{record.attempts} attempt" + ("" if record.attempts == 1 else "s")
    out.print(
        Text.assemble("run ", (visible(record.run_id), "bold"), "  ", _status(record.status)), soft_wrap=True
    )
    holder = "nobody holds it"
    if record.holder is not None:
        holder = f"held by {visible(record.holder)} until {moment(record.lease_ends_at)} unless renewed"
    times = f"created {moment(record.created_at)}, updated {moment(record.updated_at)}"
    out.print(Text(f"{attempts}; {times}; {holder}"), soft_wrap=True)
    if record.forked_from is not None:
        effects = "side effects run" if record.effects else "no side effect runs"
        out.print(Text(f"fork of {visible(record.forked_from)}; {effects}"), soft_wrap=True)
    if record.metadata:
        out.print(Text(f"metadata {_shortened(compact(dict(record.metadata)))}"), soft_wrap=True)
    if record.tags:
        out.print(Text(f"tags {', '.join(visible(tag) for tag in record.tags)}"), soft_wrap=True)


def print_history(out: Console, history: History) -> None:
    """Show the attempts one under the other, with what each did not spend again, and who decided or removed what."""
    if len(history.attempts) > 1:
        for attempt in history.attempts:
            out.print(_attempt(attempt), soft_wrap=True)
    for decided in history.resolutions:
        note = f": {decided.note}" if decided.note else ""
        told = f"{decided.by} decided {decided.step_key} at {moment(decided.decided_at)}: {decided.decision}{note}"
        out.print(_text(told), soft_wrap=True)
    for gone in history.removals:
        told = f"{gone.kind} at {moment(gone.removed_at)}" + (f" by {gone.by}" if gone.by else "")
        told += f" ({gone.note})" if gone.note else ""
        kept = f", {gone.steps_kept} kept for once-per keys" if gone.steps_kept else ""
        told += f": {gone.steps} steps and {gone.payloads} payloads of {size(gone.bytes)}{kept}; digest {gone.digest}"
        out.print(_text(told), soft_wrap=True)


def _attempt(attempt: Attempt) -> Text:
    line = Text(f"attempt {attempt.number}  ").append_text(_status(attempt.status))
    line.append(f"  {moment(attempt.started_at)}")
    if attempt.ended_at is not None:
        line.append(f", took {duration(attempt.ended_at - attempt.started_at)}")
    if attempt.steps_read_back:
        line.append(f"; read back {spared(attempt)}", style="cyan")
    if attempt.error is not None:
        line.append(f"; {_shortened(visible(attempt.error))}", style="red")
    return line


def print_steps(out: Console, steps: Sequence[Step]) -> None:
    """Show the tree of steps: what happened inside a step, or on a named branch, stands indented under it."""
    table = _table()
    table.add_column("#", justify="right", no_wrap=True)
    table.add_column("step")
    table.add_column("label", no_wrap=True)
    table.add_column("status", no_wrap=True)
    table.add_column("attempt", justify="right", no_wrap=True)
    table.add_column("tries", justify="right", no_wrap=True)
    table.add_column("took", justify="right", no_wrap=True)
    table.add_column("value or error")
    for depth, branch in walked(tree(steps)):
        indent = "  " * depth
        if branch.step is None:
            table.add_row("", _line(f"{indent}{visible(branch.label)}", style="dim"))
        else:
            table.add_row(*_cells(indent, branch.step))
    out.print(table)


def print_waiting(out: Console, record: RunRecord, waiting: Sequence[WaitingStep]) -> None:
    """Show what may have happened with the commands that decide it, or that the run can simply go on."""
    if not waiting and record.status in ("blocked", "interrupted"):
        out.print("Nothing waits for a decision. Run the same code again: it goes on from here.")
    for item in waiting:
        step = item.step
        state = Text("blocked", style="bold yellow") if item.blocked else Text("interrupted", style="yellow")
        call = f"{visible(step.name)}({_shortened(compact(step.arguments))})"
        if item.withheld and item.happened is not None:
            _print_withheld(out, state, f": step {step.number}, {call}", item.happened)
            continue
        told = (
            f": step {step.number}, {call}, may have happened. It began at {moment(step.started_at)} and "
            f"{'left no outcome' if step.error is None else 'failed'} ({visible(item.reason)}). Look whether it happened "
            f"(idempotency key {item.idempotency_key}), say so, and run the same code again:"
        )
        out.print(state.append(Text(told, style="default not bold")), soft_wrap=True)
        for meaning, command in (
            ("it happened (with --result JSON, if the agent needs its result):", item.happened),
            ("it did not and no longer can, so it may run:", item.did_not_happen),
            ("neither; the agent gets an error with your text:", item.failed),
        ):
            if command is None:
                continue
            out.print(Text(f"  {meaning}", style="dim"), soft_wrap=True)
            out.print(Text(f"    {command}"), soft_wrap=True)


def _print_withheld(out: Console, state: Text, call: str, command: str) -> None:
    told = f"{call}, has not run, since this fork performs no side effects. Say what it gives, and run the same code again:"
    out.print(state.append(Text(told, style="default not bold")), soft_wrap=True)
    out.print(Text(f"    {command} --result JSON"), soft_wrap=True)


_PARTED = {
    "only_in_a": "only the first run has this step",
    "only_in_b": "only the second run has this step",
    "name": "another model or tool is called",
    "arguments": "the arguments differ",
    "messages": "the messages differ",
    "setup": "the model, its settings or its tools differ",
    "reply": "the reply differs",
    "outcome": "the outcome differs",
}


def print_difference(out: Console, found: RunDifference) -> None:
    """Show where two runs part, or that they do not."""
    steps = f"{found.equal_steps} step{'' if found.equal_steps == 1 else 's'}"
    if found.what is None:
        out.print(Text(f"The runs are equal: {steps}."), soft_wrap=True)
        return
    out.print(Text.assemble(f"{steps} equal, then ", (_PARTED[found.what], "bold"), ":"), soft_wrap=True)
    for side, run_id, step in (("a", found.a, found.step_a), ("b", found.b, found.step_b)):
        call = "no such step"
        if step is not None:
            call = f"step {step.number}, {step.kind} {visible(step.name)}, {step.status}"
        out.print(Text.assemble(f"  {side}  ", (visible(run_id), "bold"), f": {call}"), soft_wrap=True)
    styles = {"-": "red", "+": "green"}
    for line in found.difference.splitlines():
        out.print(Text(f"  {visible(line)}", style=styles.get(line[:1], "dim")), soft_wrap=True)


def _cells(indent: str, step: Step) -> tuple[Text | str, ...]:
    name = _line(indent).append(f"{step.kind} ", style="dim").append(visible(step.name))
    status = _status(step.status)
    notes = ["blocked"] if step.blocked is not None else []
    notes += ["drifted"] if step.drifted else []
    notes += [step.resolution] if step.resolution is not None else []
    for note in notes:
        status.append(Text(f", {visible(note)}", style=_STYLES.get(note, "default not bold")))
    counted = str(step.attempt), str(step.attempts)
    return str(step.number), name, step.policy, status, *counted, _took(step), _outcome(step)


def _took(step: Step) -> str:
    # Who decides a call later ends it later: that time says nothing about the call.
    if step.finished_at is None or step.resolution is not None:
        return ""
    return duration(step.finished_at - step.started_at)


def _outcome(step: Step) -> Text:
    if step.error is not None and step.status == "done":
        kind, _, path = step.error.partition(": ")
        return _line(visible(f"its value could not be recorded: {path} is of type {kind}"), style="red")
    if step.error is not None:
        return _line(_shortened(visible(step.error)), style="red")
    return _line(_shortened(summary(step.value)) if step.status == "done" else "")


def _line(text: str, style: str = "") -> Text:
    """Text that a narrow column cuts instead of folding it; such columns are the first to be narrowed."""
    return Text(text, style=style, no_wrap=True, overflow="ellipsis")


def _status(word: str) -> Text:
    return Text(word, style=_STYLES.get(word, ""))


def _text(text: str) -> Text:
    return Text(visible(text))


def _shortened(text: str) -> str:
    return text if len(text) <= _SHORTENED else f"{text[: _SHORTENED - 1]}…"


def _table() -> Table:
    return Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
