"""The demo from its first line to its last."""

import json
import sys
import tempfile
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from gnl_middleware import Journal

from . import report
from .errors import DemoError
from .sweep import Clean, Measurement, World, run_clean, run_killed


def run_demo(*, relabel: Mapping[str, str], journal: str | None, keep: bool, as_json: bool) -> bool:
    """Run the sweep and print what it showed.

    Args:
        relabel: Other replay labels, by tool name.
        journal: The journal to write to; None for a new one.
        keep: Leave the folder with the journal, desks and mailboxes.
        as_json: Print one JSON object to standard output and nothing else.

    Returns:
        Whether every crash point held.

    Raises:
        DemoError: Nothing can be said of the crash points.
    """
    if journal is not None:
        _check(journal)
    console = Console(quiet=as_json, highlight=False)
    with _folder(keep) as folder:
        world = World(folder, journal or str(folder / "journal.db"), relabel)
        began = time.monotonic()
        clean = run_clean(world)
        report.print_clean(console, clean, relabel)
        measurements = _with_progress(world, clean)
        seconds = time.monotonic() - began
        kept = world.journal if keep or journal else None
        if as_json:
            sys.stdout.write(json.dumps(report.as_json(clean, measurements, kept)) + "\n")
        report.print_table(console, clean, measurements)
        report.print_decisions(console, measurements)
        report.print_verdict(console, measurements, relabel, seconds)
        report.print_next(console, measurements, relabel, kept)
    return all(measurement.held for measurement in measurements)


def _check(journal: str) -> None:
    """Refuse what cannot name a journal before anything runs."""
    try:
        Journal(journal).close()
    except ValueError as error:
        raise DemoError(str(error)) from error


def _with_progress(world: World, clean: Clean) -> list[Measurement]:
    """Run the killed runs, in order of their crash points when all have ended, with a bar on a terminal."""
    points, found = clean.points(), list[Measurement]()
    columns = (TextColumn("dying and resuming"), BarColumn(None), MofNCompleteColumn(), TimeElapsedColumn())
    console = Console(stderr=True)
    # Refreshed by hand: the thread that would do it must not exist while processes fork.
    progress = Progress(
        *columns, console=console, transient=True, auto_refresh=False, disable=not console.is_terminal
    )
    with progress as bar:
        task = bar.add_task("", total=len(points))
        for measurement in run_killed(world, clean):
            found.append(measurement)
            bar.advance(task)
            bar.refresh()
    return sorted(found, key=lambda measurement: points.index(measurement.point))


@contextmanager
def _folder(keep: bool) -> Generator[Path, None, None]:
    if keep:
        yield Path(tempfile.mkdtemp(prefix="gnl-demo-"))
        return
    with tempfile.TemporaryDirectory(prefix="gnl-demo-") as folder:
        yield Path(folder)
