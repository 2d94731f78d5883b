"""The report about a run's integrity, for ``gnl verify RUN --integrity``."""

import json
from dataclasses import asdict

import click

from gnl_middleware.journal import Journal
from gnl_middleware.model import Integrity
from gnl_middleware.viewer.plain import visible

_SHOWN = 5
_WITHOUT_KEY = (
    "No integrity key was given: this finds accidents and careless edits, not somebody who computes the digests anew. "
    "Keep the head elsewhere and give it back with --expect."
)


def report_integrity(
    journal: Journal, run_id: str, *, expect: str | None = None, as_json: bool = False
) -> int:
    """Print whether a run's rows are what was written.

    Args:
        journal: The journal, opened with the keys that wrote it.
        run_id: The run.
        expect: A head that was kept elsewhere.
        as_json: Print one JSON object instead: ``{"run_id", "head", "covered", "later", "problems", "keyed", "intact"}``.

    Returns:
        The exit code: 0 where nothing was found to be changed, else 1, also for a run that does not exist.

    Raises:
        JournalError: The journal cannot be read.
    """
    try:
        found = journal.verify_integrity(run_id, expect=expect)
    except KeyError:
        click.echo(f"There is no run {run_id!r} in {visible(journal.url)}.", err=True)
        return 1
    if as_json:
        click.echo(json.dumps(asdict(found) | {"intact": found.intact}))
    else:
        click.echo("\n".join(visible(line) for line in _lines(found)))
    return 0 if found.intact else 1


def _lines(found: Integrity) -> list[str]:
    lines = [f"Run {found.run_id}: {'nothing was changed' if found.intact else 'it was CHANGED'}."]
    lines += [f"  {problem}" for problem in found.problems]
    if found.head is None:
        lines.append("Head: none yet; it is made when an attempt leaves the run.")
    else:
        lines.append(f"Head: {found.head}")
    lines.append(f"Rows as they were when it was made: {found.covered}.")
    if found.later:
        more = f", and {len(found.later) - _SHOWN} more" if len(found.later) > _SHOWN else ""
        lines.append(
            f"Added or gone on since, not covered by it yet: {', '.join(found.later[:_SHOWN])}{more}."
        )
    return lines if found.keyed else [*lines, _WITHOUT_KEY]
