"""`gnl doctor`: is the journal fit, and what would the next attempt of each interrupted run do?"""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import click

from gnl_middleware.errors import JournalError
from gnl_middleware.journal import Journal
from gnl_middleware.model import RunRecord, Step
from gnl_middleware.viewer import plain
from gnl_middleware.viewer.plain import Place, visible
from gnl_middleware.viewer.words import size

from .opening import address_of, check_there, journal_option, json_option, opened, place_of

if TYPE_CHECKING:
    from gnl_middleware.storage.looking import Health

_LARGE = 1_000_000
_SKEW = 5.0
_SHOWN = 20


@dataclass(frozen=True, slots=True)
class Finding:
    """What was looked at.

    Attributes:
        check: ``database``, ``schema``, ``sync``, ``clock``, ``runs`` or ``payloads``.
        ok: Nothing needs to be done about it.
        told: What was found.
        remedy: What to do about it; empty where nothing is.
    """

    check: str
    ok: bool
    told: str
    remedy: str = ""


@click.command("doctor")
@journal_option
@json_option
@click.pass_context
def command(context: click.Context, url: str, as_json: bool) -> None:
    """Check the journal, and say what the next attempt of each open run would do.

    Looks at the connection, the schema, what is synced to the disk, the clock, the runs that are blocked or interrupted,
    and large payloads. Changes nothing (but brings the tables up to date). Ends with 1 where something needs doing.

    With --json: {"ok", "findings": [{"check", "ok", "told", "remedy"}, ...], "counts": {"runs", "steps", "payloads",
    "bytes"}, "open": [{"run_id", "status", "next": [TEXT, ...]}, ...]}.
    """
    place = place_of(context)
    check_there(address_of(url))
    try:
        findings, counts, waiting = _examined(url, place)
    except JournalError as error:
        findings, counts, waiting = [Finding("database", ok=False, told=str(error))], {}, []
    ok = all(finding.ok for finding in findings)
    if as_json:
        told = [asdict(finding) for finding in findings]
        click.echo(plain.json_text({"ok": ok, "findings": told, "counts": counts, "open": waiting}))
    else:
        _print(findings, waiting)
    if not ok:
        context.exit(1)


def _examined(url: str, place: Place) -> tuple[list[Finding], Mapping[str, int], list[dict[str, Any]]]:
    from gnl_middleware.storage.looking import health_of, version_at  # noqa: PLC0415 - it loads the database
    from gnl_middleware.storage.schema import SCHEMA_VERSION  # noqa: PLC0415

    address = address_of(url)
    version = version_at(address)
    health = health_of(address, time.time())
    with opened(url) as journal:
        open_runs = journal.runs(status=("blocked", "interrupted"))
        waiting = [_open(journal, record, place) for record in open_runs[:_SHOWN]]
    before = "" if version == SCHEMA_VERSION else f", was {version} until now"
    findings = [
        Finding("database", ok=True, told=f"{visible(address.shown)} answers; {_counted(health)}"),
        Finding("schema", ok=True, told=f"version {SCHEMA_VERSION}{before}"),
        _sync(health),
        _clock(health),
        _runs(open_runs, place),
        _payloads(health),
    ]
    return findings, health.counts, waiting


def _counted(health: "Health") -> str:
    counts = health.counts
    return f"runs: {counts['runs']}, steps: {counts['steps']}, payloads: {size(counts['bytes'])}"


def _sync(health: "Health") -> Finding:
    wrong = {name for name, value in health.syncing.items() if value in _UNSAFE.get(name, ())}
    told = ", ".join(f"{name}={value}" for name, value in health.syncing.items())
    remedy = (
        f"An acknowledged outcome could be lost, and its effect repeated: change {', '.join(wrong)}."
        if wrong
        else ""
    )
    return Finding("sync", ok=not wrong, told=told, remedy=remedy)


_UNSAFE = {
    "journal_mode": ("off", "memory", "delete", "truncate", "persist"),
    "fsync": ("off",),
    "full_page_writes": ("off",),
    "synchronous_commit": ("off",),
}


def _clock(health: "Health") -> Finding:
    apart = max(0.0, health.seconds_apart)
    remedy = "Leases go by the clock: synchronise it (NTP)." if apart > _SKEW else ""
    return Finding("clock", ok=not remedy, told=f"{apart:.1f} s apart from the journal's", remedy=remedy)


def _runs(open_runs: Sequence[RunRecord], place: Place) -> Finding:
    blocked = sum(record.status == "blocked" for record in open_runs)
    told = f"{blocked} blocked, {len(open_runs) - blocked} interrupted"
    remedy = f"Decide what waits: {place.command('runs', options=['--status', 'blocked'])}" if blocked else ""
    return Finding("runs", ok=not blocked, told=told, remedy=remedy)


def _payloads(health: "Health") -> Finding:
    large = [row for row in health.largest if row["bytes"] > _LARGE]
    if not large:
        return Finding("payloads", ok=True, told=f"none is larger than {size(_LARGE)}")
    told = ", ".join(
        f"{row['what']} of {visible(row['name'])} in {visible(row['run_id'])}: {size(row['bytes'])}"
        for row in large
    )
    return Finding("payloads", ok=True, told=f"large: {told}")


def _open(journal: Journal, record: RunRecord, place: Place) -> dict[str, Any]:
    steps = journal.steps(record.run_id)
    return {"run_id": record.run_id, "status": record.status, "next": list(_next(record, steps, place))}


def _next(record: RunRecord, steps: Sequence[Step], place: Place) -> Iterator[str]:
    """What the next attempt would do about each step that has no outcome."""
    waiting = {item.step.key: item for item in plain.waiting_steps(record, steps, place)}
    done = sum(step.status == "done" for step in steps)
    yield f"{done} of {len(steps)} steps are read back"
    for step in steps:
        name = f"step {step.number}, {visible(step.name)},"
        if step.key in waiting:
            how = (
                "waits for a decision"
                if step.blocked is not None
                else "may have happened: its recover= is asked, else it stops"
            )
            yield f"{name} {how}: {waiting[step.key].happened}"
        elif step.status == "started" and step.resolution is None:
            yield f"{name} {_AGAIN.get(step.policy, 'is asked again')}"


_AGAIN = {
    "safe": "runs again",
    "keyed": "runs again with the same idempotency key",
    "never": "is settled first",
}


def _print(findings: Sequence[Finding], waiting: Sequence[dict[str, Any]]) -> None:
    for finding in findings:
        click.echo(f"{'ok ' if finding.ok else '!! '} {finding.check:9} {finding.told}")
        if finding.remedy:
            click.echo(f"              {finding.remedy}")
    for run in waiting:
        click.echo(f"\n{visible(run['run_id'])} is {run['status']}. Its next attempt:")
        for line in run["next"]:
            click.echo(f"  {line}")
