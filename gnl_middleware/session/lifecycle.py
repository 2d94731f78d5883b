"""Take a run's lease and load its record; later, give the lease back and say how the attempt ended."""

import contextlib
import math
from collections.abc import Mapping
from concurrent.futures import Future, wait
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from gnl_middleware import codec
from gnl_middleware.clock import Clock
from gnl_middleware.errors import (
    ForkedEffectError,
    GnlError,
    JournalCorruptError,
    JournalKeyError,
    LeaseLostError,
    SideEffectRetryBlockedError,
)
from gnl_middleware.lease import Holder, is_dead, let_go
from gnl_middleware.replay.news import await_running
from gnl_middleware.replay.record import Record
from gnl_middleware.replay.setups import Setups
from gnl_middleware.storage.protection import Protection
from gnl_middleware.storage.protocol import Leaving, Opened, Opening, metadata_digests

from .auditing import audited, note_opened
from .renewal import Renewer
from .running import all_running_here
from .session import Lease, Options, Session
from .settling import settle_all
from .waiting import drive
from .watching import Hooks, Watch

if TYPE_CHECKING:
    from gnl_middleware.storage.database import Database

OnBusy = Literal["raise", "wait"]
_ERROR_LENGTH = 2000


@dataclass(frozen=True, slots=True)
class RunSettings:
    """What the caller of ``journal.run`` asked for.

    Attributes:
        lease: Length of the lease in seconds.
        grace: Seconds that leaving waits for bodies that still run.
        locked: One worker at a time; else several, each call claimed by one of them for the length of the lease.
        hooks: Who is told of what needs attention.
        watch: Makes who looks on, or None.
    """

    run_id: str
    input_digest: str | None = None
    options: Options = field(default_factory=Options)
    lease: float = 30.0
    grace: float = 5.0
    on_busy: OnBusy = "raise"
    locked: bool = True
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])
    tags: tuple[str, ...] = ()
    restart: bool = False
    hooks: Hooks = field(default_factory=Hooks)
    watch: Watch | None = None


def open_session(database: "Database", renewer: Renewer, settings: RunSettings, clock: Clock) -> Session:
    """Take the lease, then load: whoever held the run before can write no more when its record is read.

    Raises:
        RunBusyError: Another worker holds the run now.
        RunInputMismatchError: The run was started with another input.
        ValueError: The run was created with another ``lock``.
        JournalError: The journal cannot be used.
    """
    settings = replace(settings, options=audited(settings.options))
    session = (_look if settings.options.offline else _take)(database, renewer, settings, clock)
    note_opened(session)
    return session


def _take(database: "Database", renewer: Renewer, settings: RunSettings, clock: Clock) -> Session:
    holder, asked_at = Holder.here(), clock.monotonic()
    opened = database.take_run(_opening(settings, clock, holder, database.protection))
    if opened.locked is not settings.locked:
        raise _lock_error(settings, created=opened.locked)
    try:
        running = all_running_here()
        record = _loaded(database, settings.run_id, opened, clock)
    except BaseException as error:
        let_go(holder)
        _give_up(database, settings, opened, clock, error)
        raise
    session = Session(
        database=database,
        run_id=settings.run_id,
        attempt=opened.attempt,
        options=settings.options,
        # Without a lock the run cannot be taken away as a whole; each claim has a deadline of its own.
        lease=Lease(opened.fence, settings.lease, asked_at + settings.lease if opened.locked else math.inf),
        record=record,
        clock=clock,
        status_before=opened.status_before,
        effects=opened.effects,
        forked_from=opened.forked_from,
        wary=opened.attempt > 1 and opened.status_before == "running",
        holder=holder,
        locked=opened.locked,
    )
    await_running(record, record.steps.values(), running)
    renewer.hold(session)
    return session


def _look(database: "Database", _renewer: Renewer, settings: RunSettings, clock: Clock) -> Session:
    """A session that only reads: nothing runs in it, so it needs no lease and leaves no trace."""
    holder = Holder.here()
    found = database.look_at_run(_opening(settings, clock, holder, database.protection))
    return Session(
        database=database,
        run_id=settings.run_id,
        attempt=found.attempt,
        options=settings.options,
        lease=Lease(found.fence, settings.lease, math.inf),
        record=_loaded(database, settings.run_id, found, clock),
        clock=clock,
        status_before=found.status_before,
        holder=holder,
    )


def _loaded(database: "Database", run_id: str, opened: Opened, clock: Clock) -> Record:
    steps = database.load(run_id, clock.time())
    record = Record(
        run_id,
        steps,
        completed_before=opened.completed_before,
        journal=database.place,
        attempt=opened.attempt,
        others=None if opened.locked else opened.others,
    )
    record.as_written = database.protection.as_written
    record.setups = Setups(steps, lambda digest: database.setup(run_id, digest))
    return record


def _lock_error(settings: RunSettings, *, created: bool) -> ValueError:
    had, asked = f"lock={created}", f"lock={settings.locked}"
    return ValueError(
        f"run {settings.run_id!r} was created with {had}, and that is fixed: it cannot be opened with {asked}, which would "
        f"let two workers at one call. Open it with {had}, or take another run id"
    )


def _give_up(
    database: "Database", settings: RunSettings, opened: Opened, clock: Clock, error: BaseException
) -> None:
    """Nobody works on it: whoever repairs the record must not have to wait for the lease."""
    leaving = Leaving(
        run_id=settings.run_id,
        fence=opened.fence,
        attempt=opened.attempt,
        status="failed",
        now=clock.time(),
        error=_text(error, database.protection),
        locked=opened.locked,
        readable=not isinstance(error, JournalCorruptError | JournalKeyError),
    )
    with contextlib.suppress(GnlError):
        database.leave_run(leaving, durable=False)


def _opening(settings: RunSettings, clock: Clock, holder: Holder, protection: Protection) -> Opening:
    return Opening(
        run_id=settings.run_id,
        holder=holder.to_text(),
        now=clock.time(),
        lease=settings.lease,
        input_digest=settings.input_digest,
        metadata=protection.redacted(codec.encode(dict(settings.metadata))),
        is_dead=is_dead,
        locked=settings.locked,
        tags=settings.tags,
        metadata_digests=metadata_digests(settings.metadata),
        restart=settings.restart,
    )


def leave_session(
    session: Session, renewer: Renewer, error: BaseException | None, grace: float
) -> GnlError | None:
    """Wait for bodies that still run, note how the attempt ended and give the lease back.

    Returns:
        The control error to raise, where it was lost or swallowed on the way out.
    """
    if session.lease.lost == "fork":
        return None if error is not None else LeaseLostError(run_id=session.run_id, reason="fork")
    wait(_bodies(session), timeout=grace)
    for end in list(session.suspended.values()):
        end()
    if error is None and session.latch is None and not session.options.offline:
        _settle_what_is_left(session)
    ended: BaseException | None = (
        session.latch if isinstance(error, Exception | None) and session.latch else error
    )
    renewer.drop(session)
    lost = None if session.options.offline else _give_back(session, ended)
    if session.watcher is not None:
        offline = session.options.offline
        session.watcher.attempt_ended(session.status_before if offline else _status(session, ended), ended)
    if lost is not None or isinstance(ended, LeaseLostError):
        let_go(session.holder)
    # Code that outlives its run (a thread, a task) must start nothing more without the lease.
    session.lease.lost = session.lease.lost or "left"
    if session.latch is not None and ended is session.latch:
        return session.latch if error is not session.latch else None
    return lost if error is None else None


def _bodies(session: Session) -> "list[Future[None]]":
    """The bodies that still run: those of other workers of this process, in a run without a lock, go on without it."""
    with session.record.lock:
        running = dict(session.record.running)
        steps = session.record.steps
        own = {key for key in running if session.locked or steps[key].token in session.claims}
    return [running[key] for key in own]


def _settle_what_is_left(session: Session) -> None:
    try:
        drive(settle_all(session, None))
    except GnlError as error:
        session.latch = session.latch or error


def _give_back(session: Session, error: BaseException | None) -> GnlError | None:
    if isinstance(error, LeaseLostError) and session.locked:
        return None  # the run may be another's already; its row is not ours to write
    leaving = Leaving(
        run_id=session.run_id,
        fence=session.lease.fence,
        attempt=session.attempt,
        status=_status(session, error),
        now=session.clock.time(),
        error=_text(error, session.database.protection),
        locked=session.locked,
        spared=_spared(session),
    )
    # Whatever this attempt wrote reaches the disk before its caller hears that the run has ended.
    try:
        ours = session.database.leave_run(leaving, durable=session.spared.ran > 0)
    except GnlError as unwritten:
        # The lease runs out by itself; what stopped the attempt says more than that its end could not be noted.
        return unwritten
    return None if ours else LeaseLostError(run_id=session.run_id, reason="fence")


def _spared(session: Session) -> dict[str, float]:
    spared = session.spared
    return {
        "steps_ran": spared.ran,
        "steps_read_back": spared.read_back,
        "tokens_not_spent": spared.tokens,
        "seconds_not_spent": spared.seconds,
    }


def _status(session: Session, error: BaseException | None) -> str:
    if isinstance(error, SideEffectRetryBlockedError | ForkedEffectError):
        return "blocked"
    if isinstance(error, Exception):
        # Without a lock whoever took the call over goes on, or a sweeper does.
        return "running" if isinstance(error, LeaseLostError) else "failed"
    if error is not None:
        return "running"  # killed from outside: nobody holds it now, so it shows as interrupted
    if _bodies(session):
        return "running"  # a body outlives the grace: the next attempt finds out how it ends
    return "paused" if session.paused else "completed"


def _text(error: BaseException | None, protection: Protection) -> str | None:
    if error is None:
        return None
    text = protection.redacted_text(f"{type(error).__qualname__}: {error}")[:_ERROR_LENGTH]
    return text.encode("utf-8", "backslashreplace").decode().replace("\x00", "\\x00")
