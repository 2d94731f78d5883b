"""The journal: the database of runs, and what a person or a program does with it."""

import os
import secrets
import weakref
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from gnl_middleware import codec
from gnl_middleware.clock import Clock, SystemClock
from gnl_middleware.errors import (
    DivergenceError,
    JournalUnavailableError,
    ResolutionRefusedError,
    SideEffectRetryBlockedError,
)
from gnl_middleware.identity import checked_run_id
from gnl_middleware.model import (
    Decision,
    Done,
    Integrity,
    RunRecord,
    Step,
    StoredStep,
)
from gnl_middleware.policy import OnInterrupted
from gnl_middleware.replay.divergence import OnChange
from gnl_middleware.replay.payloads import shown_step
from gnl_middleware.runs import Runs, checked_tags, is_held
from gnl_middleware.session.deciding import WORDS, decided, undecided
from gnl_middleware.session.lifecycle import OnBusy, RunSettings
from gnl_middleware.session.renewal import Renewer
from gnl_middleware.session.run import Run
from gnl_middleware.session.running import running_here
from gnl_middleware.session.session import Options, Replay
from gnl_middleware.session.sharing import Shared, acquire, guard, release
from gnl_middleware.session.sweeping import sweep
from gnl_middleware.session.watching import Hooks, Watch
from gnl_middleware.storage.address import parse
from gnl_middleware.storage.encryption import Encryption
from gnl_middleware.storage.protection import Protection, Redact
from gnl_middleware.travel import Travel

if TYPE_CHECKING:
    from opentelemetry.trace import TracerProvider

    from gnl_middleware.storage.database import Database

_SHORTEST_LEASE = 0.5


class Journal(Runs, Travel):
    """A journal of runs in a SQLite file or a PostgreSQL database, opened on first use.

    Within a process, journals of the same URL share one writer thread. A journal serves any number of threads and
    event loops; it is a context manager, and a forgotten one closes itself.

    Args:
        url: A path, ``sqlite:///path`` or ``postgresql://user@host/database``; ``./gnl.db`` by default.
        schema: Of a PostgreSQL database: the schema that holds the journal, ``gnl`` by default.
        pooled: Of a PostgreSQL database: a transaction pooler such as pgbouncer stands in between.
        integrity_key: At least 32 bytes. Rows are sealed with it (HMAC-SHA256) and checked on every read: who has no key
            cannot change a row unseen.
        encryption: How payloads are encrypted; plain by default. What stays readable: ``docs/trust.md``.
        redact: Takes each text that is about to be written (arguments, messages, values, errors, metadata, notes) and gives
            what to write; the program gets the same, so that a replay is equal.
        clock: Where the time is read; for tests.
        on_blocked: Called with the error when an attempt has stopped at a side effect that may have happened.
        on_divergence: Called with the error when an attempt has stopped because a call no longer matches its record.
        on_resume: Called with the run when an attempt begins that is not the first, on a run that has not completed.
            What these three raise is logged and changes nothing.
        tracing: Whether attempts and steps become spans of OpenTelemetry (extra ``otel``); also the provider that they
            go to, if it is not the global one.

    Raises:
        ValueError: The URL has another scheme, or names no file; the integrity key is too short; on first use: the journal
            is open in this process with another protection.
        JournalKeyError: There is no key to encrypt with.

    Example:
        >>> journal = Journal("runs.db")     # doctest: +SKIP
        >>> with journal.run("order-4471") as run:     # doctest: +SKIP
        ...     agent.invoke(question)
    """

    def __init__(
        self,
        url: str | os.PathLike[str] = "gnl.db",
        *,
        schema: str | None = None,
        pooled: bool = False,
        integrity_key: bytes | None = None,
        encryption: Encryption | None = None,
        redact: Redact | None = None,
        clock: Clock | None = None,
        on_blocked: Callable[[SideEffectRetryBlockedError], object] | None = None,
        on_divergence: Callable[[DivergenceError], object] | None = None,
        on_resume: Callable[[Run], object] | None = None,
        tracing: "bool | TracerProvider" = False,
    ) -> None:
        self._address = parse(url, schema=schema, pooled=pooled)
        self._protection = Protection(integrity_key, encryption, redact)
        self._protection.check()
        self._hooks = Hooks(on_blocked, on_divergence, on_resume)
        self._watch = _watch(tracing) if tracing else None
        self._clock = clock or SystemClock()
        self._shared: Shared | None = None
        self._closed = False

    @property
    def url(self) -> str:
        """The journal's URL, without its password."""
        return self._address.shown

    def run(
        self,
        run_id: str,
        *,
        input: Any = None,  # noqa: A002 - the word that the frameworks use
        replay: Replay = "lenient",
        offline: bool = False,
        lock: bool = True,
        lease: float = 30.0,
        grace: float = 5.0,
        on_busy: OnBusy = "raise",
        on_interrupted: OnInterrupted = "block",
        on_change: OnChange | None = None,
        metadata: Mapping[str, Any] | None = None,
        tags: Iterable[str] = (),
        restart: bool = False,
    ) -> Run:
        """Open a run: ``with journal.run("order-4471") as run: ...`` (also ``async with``).

        Run the same code again with the same run id, and what finished is read back.

        Args:
            run_id: Names one job: an order, a queue message; never a chat session.
            input: The outermost input; another one under the same run id is refused.
            replay: ``lenient`` serves records to slightly different calls, ``strict`` raises DivergenceError.
            offline: Nothing runs live; a call without a record raises ReplayMissError.
            lock: One worker at a time works on the run. With False several may, each call is claimed by one of them, and
                the others wait for its outcome; fixed when the run is created.
            lease: Seconds after which another worker may take the run (without a lock: the call) if this one falls silent.
            grace: Seconds that leaving waits for bodies that still run.
            on_busy: While another worker holds the run: ``raise`` RunBusyError, or ``wait``.
            on_interrupted: For a side effect that may have happened: ``block`` the run, or ``tell_model``.
            on_change: For recorded calls that a changed setup of the agent (instructions, model, settings, tools) asks
                otherwise: ``stop`` raises DivergenceError before anything runs, ``continue`` gives them their records. By
                default ``stop`` where the replay is strict.
            metadata: Plain data to store with a new run, and to find it by.
            tags: Words to find a new run by.
            restart: Begin a run anew whose record was removed; without it, that raises RunErasedError.

        Raises:
            ValueError: The run id cannot name a run, or an option means nothing; on entering: the run was created with
                another ``lock``.
            RunBusyError: On entering: another worker holds the run.
            RunInputMismatchError: On entering: the run was started with another input.
            RunErasedError: On entering: the run's record was removed.

        Example:
            >>> with journal.run("order-4471", replay="strict") as run: ...     # doctest: +SKIP
        """
        if lease < _SHORTEST_LEASE:
            raise ValueError(f"a lease must last at least {_SHORTEST_LEASE} s, not {lease}")
        _check_choice("replay", replay, ("lenient", "strict"))
        _check_choice("on_busy", on_busy, ("raise", "wait"))
        _check_choice("on_interrupted", on_interrupted, ("block", "tell_model"))
        _check_choice("on_change", on_change, ("continue", "stop", None))
        options = Options(replay=replay, offline=offline, on_interrupted=on_interrupted, on_change=on_change)
        settings = RunSettings(
            run_id=checked_run_id(run_id),
            input_digest=None if input is None else codec.digest(input),
            options=options,
            lease=lease,
            grace=grace,
            on_busy=on_busy,
            locked=lock,
            metadata=metadata or {},
            tags=checked_tags(tags),
            restart=restart,
            hooks=self._hooks,
            watch=self._watch,
        )
        return Run(self._parts, settings, self._clock)

    def sweep(
        self,
        handle: Callable[[RunRecord], object],
        *,
        on_error: Callable[[RunRecord, Exception], object] | None = None,
    ) -> list[str]:
        """Call a handler again for each run whose worker died; gives the run ids that it was called for without error.

        Any number of sweepers may do so at once: the handler opens the run, and whoever comes second is told that it is
        busy, which is no error here. Runs that are paused, blocked or failed are left alone.

        Args:
            handle: The code that handled the job the first time, synchronous or not; it opens the run before it acts.
            on_error: Is told of each error of the handler, in place of the error below.

        Raises:
            ExceptionGroup: What the handler raised, after all the runs have had their turn.
            JournalError: The journal cannot be read.

        Example:
            >>> def handle(job):     # doctest: +SKIP
            ...     with journal.run(job.run_id):
            ...         agent.invoke(question_of(job))
            >>> journal.sweep(handle)     # doctest: +SKIP
            ['order-4471']
        """
        return sweep(handle, self._interrupted, on_error)

    def steps(self, run_id: str) -> list[Step]:
        """The steps of a run, in the order in which they first began; none for an unknown run.

        Raises:
            JournalCorruptError: A row is not what was written.

        Example:
            >>> journal.steps("order-4471")[0].name     # doctest: +SKIP
            'charge'
        """
        rows = self._database().load(checked_run_id(run_id), self._clock.time())
        return [shown_step(row) for row in rows if row.status != "withdrawn"]

    def resolve(self, run_id: str, step: str | int, decision: Decision, *, by: str, note: str = "") -> Step:
        """Take a person's decision about a call that may have happened; the first decision wins.

        Args:
            run_id: The run.
            step: The step's key, its number, or the name of its tool where only one call of it waits.
            decision: ``Done(value)``: it happened, with this raw result; ``NotDone()``: it has not and no longer can;
                ``Failed(text)``: the agent gets this error.
            by: Who decided; kept for audit.
            note: Why; kept for audit.

        Raises:
            ResolutionRefusedError: The step does not wait for a decision, is alive, or fits several.
            UnserializableValueError: The result cannot be journalled.

        Example:
            >>> journal.resolve("order-4471", "send_email", Done("sent"), by="ops")     # doctest: +SKIP
        """
        from gnl_middleware.storage import operations  # noqa: PLC0415 - storage is loaded on first use

        run_id, row = checked_run_id(run_id), self._waiting_step(run_id, step)
        if row.kind == "model" and isinstance(decision, Done):
            raise self._refused(run_id, step, _NO_REPLY)
        protection = self._protection
        outcome, word = decided(row, decision, self._clock.time(), protection), WORDS[type(decision)]
        note = protection.redacted_text(note)
        audit = secrets.token_hex(8)
        taken = self._database().write(
            lambda connection: operations.resolve_step(
                connection, row, decision=word, outcome=outcome, by=by, note=note, audit_id=audit
            ),
            durable=True,
        )
        if not taken:
            raise self._refused(run_id, step, "it was decided or tried anew meanwhile")
        return next(found for found in self.steps(run_id) if found.key == row.key)

    def verify_integrity(self, run_id: str, *, expect: str | None = None) -> Integrity:
        """Whether a run's rows are what was written: their seals, their payloads, and the chain over all of them.

        Without an integrity key this finds accidents and careless edits, never somebody who computes the digests anew;
        against them, keep ``head`` elsewhere and give it back.

        Args:
            run_id: The run.
            expect: A head that was kept elsewhere; the run's must be the same.

        Raises:
            JournalError: The journal cannot be read.
            KeyError: There is no such run.

        Example:
            >>> journal.verify_integrity("order-4471").intact     # doctest: +SKIP
            True
        """
        found = self._database().inspect(checked_run_id(run_id))
        if found is None:
            raise KeyError(run_id)
        if expect is not None and found.head != expect:
            other = f"its head is {found.head}, and not {expect}: the run went on since then, or its record was replaced"
            found = found.with_problems([other, *found.problems])
        return found

    def close(self) -> None:
        """Commit what is queued, end the writer thread and close the file; a second time does nothing.

        Example:
            >>> journal.close()     # doctest: +SKIP
        """
        with guard():
            self._closed = True
            shared, self._shared = self._shared, None
        if shared is not None:
            self._finalizer()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _parts(self) -> "tuple[Database, Renewer]":
        with guard():
            if self._closed:
                remedy = f"Open it again: Journal({str(self._address.path or self.url)!r})."
                raise JournalUnavailableError(url=self.url, cause_text="it is closed", remedy=remedy)
            if self._shared is None:
                self._shared = acquire(self._address, self._protection)
                self._finalizer = weakref.finalize(self, release, self._shared)
            return self._shared.database, self._shared.renewer

    def _database(self) -> "Database":
        return self._parts()[0]

    def _record_of(self, run_id: str) -> RunRecord | None:
        return self.find(run_id)

    def _waiting_step(self, run_id: str, step: str | int) -> StoredStep:
        rows = self._database().load(run_id, self._clock.time())
        waiting = undecided(run_id, rows, self._database().last_completed(run_id))
        fitting = [row for row in rows if str(step) in (row.key, str(row.number))]
        if not fitting:
            named = [row for row in waiting if row.name == step]
            fitting = [row for row in named if row.blocked] or named

        if not fitting:
            names = ", ".join(f"{row.number} ({row.name})" for row in waiting) or "none"
            raise self._refused(run_id, step, f"no such step waits for a decision; waiting: {names}")
        if len(fitting) > 1:
            raise self._refused(
                run_id, step, f"it fits several: {', '.join(f'{row.number} ({row.key})' for row in fitting)}"
            )
        row = fitting[0]
        if row not in waiting:
            raise self._refused(
                run_id, step, f"it is a {row.kind} step with status {row.resolution or row.status}"
            )
        if self._is_alive(row):
            raise self._refused(run_id, step, "the call is still running, under a live lease")
        return row

    def _refused(self, run_id: str, step: str | int, reason: str) -> ResolutionRefusedError:
        place = self._database().place
        return ResolutionRefusedError(run_id=run_id, step=str(step), reason=reason, journal=place)

    def _is_alive(self, row: StoredStep) -> bool:
        if row.claimed or running_here(row.token) is not None:
            return True
        held = self._database().run(row.run_id, self._clock.time())
        return held is not None and held.locked and held.fence == row.fence and is_held(held)


_NO_REPLY = (
    "it is a model call, and its reply, from which the agent would go on, is lost; take what it left in the conversation out "
    "of it and say that it did not happen, or give it up with an error"
)


def _watch(tracing: "bool | TracerProvider") -> Watch:
    from gnl_middleware.telemetry import Tracing  # noqa: PLC0415 - its package is an extra

    return lambda run: Tracing(run, None if isinstance(tracing, bool) else tracing)


def _check_choice(name: str, value: str | None, choices: tuple[str | None, ...]) -> None:
    if value not in choices:
        raise ValueError(f"{name} is {value!r}; choose one of {', '.join(filter(None, choices))}")
