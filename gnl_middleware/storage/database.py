"""A journal's database: its reads, its writes through the one writer thread, and forks."""

import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import sqlalchemy as sa

from gnl_middleware import codec
from gnl_middleware.errors import GnlError
from gnl_middleware.model import Integrity, StoredStep

from . import operations
from .address import Address
from .counters import Counters
from .gate import Gate
from .link import Link
from .protection import NONE, OPTION, Protection
from .protocol import (
    Effect,
    Forking,
    Intent,
    Leaving,
    Opened,
    Opening,
    Outcome,
    Owner,
    RunFilter,
    StoredRun,
    Task,
    Write,
)
from .sqlite import SqliteFile
from .writer import Writer

_T = TypeVar("_T")


class Database:
    """One journal's database, opened on first use; it serves any number of threads and event loops.

    Args:
        address: Where it is.
        protection: How its rows are protected.
    """

    def __init__(self, address: Address, protection: Protection = NONE) -> None:
        self.address, self.protection = address, protection
        self.counters = Counters()
        self._start()

    def _start(self) -> None:
        # The writer gets the link, not this object: its thread must not keep the database alive.
        self._link = link = link_to(self.address)
        link.engine.update_execution_options(**{OPTION: self.protection})
        self._gate = Gate()
        self.writer = Writer(link, self.counters, self._gate)
        self._finalizer = weakref.finalize(self, _shut, self.writer, link.engine)

    @property
    def engine(self) -> sa.Engine:
        """SQLAlchemy's engine, whose events tell what happens."""
        return self._link.engine

    @property
    def place(self) -> str | None:
        """The journal as commands to copy name it; None where ``gnl`` finds it by itself."""
        return self.address.place

    def submit(self, write: Write) -> Write:
        """Have a write committed by another thread; ``write.ended`` tells when it is."""
        return self.writer.submit(write)

    def hand_over(self, write: Write) -> Write:
        """Hand over a write whose caller waits for it next: ``write.result()``, or ``write.wake()`` and ``write.ended``."""
        return self.writer.hand_over(write)

    def tell(self, write: Write) -> None:
        """Hand over a write for which nobody waits: it is committed with the next one, or a moment later."""
        self.writer.tell(write)

    def write(self, run: Callable[[sa.Connection], _T], *, durable: bool = False) -> _T:
        """Run statements in a transaction of the writer and wait for the commit."""
        return self.hand_over(Task(run, durable=durable)).result()

    def read(self, run: Callable[[sa.Connection], _T]) -> _T:
        """Run a query on a connection of its own.

        Raises:
            JournalUnavailableError: The database cannot be read now.
            JournalCorruptError: A row is not readable.
        """
        try:
            return self._link.persist(lambda: self._read(run))
        except GnlError:
            raise
        except Exception as error:
            raise self._link.describe(error) from error

    def _read(self, run: Callable[[sa.Connection], _T]) -> _T:
        with self._gate, self._link.connect() as connection:
            self._link.check()
            return run(connection)

    def take_run(self, opening: Opening) -> Opened:
        """Take a run's lease and begin an attempt; see ``operations.take_run``."""
        return self.hand_over(
            Task(lambda connection: operations.take_run(connection, opening), about=opening.run_id)
        ).result()

    def look_at_run(self, opening: Opening) -> Opened:
        """A run as whoever may not touch it finds it; see ``operations.look_at_run``."""
        return self.read(lambda connection: operations.look_at_run(connection, opening))

    def leave_run(self, leaving: Leaving, *, durable: bool) -> bool:
        """Give a run's lease back; False if it was no longer ours."""
        leave = Task(
            lambda connection: operations.leave_run(connection, leaving),
            about=leaving.run_id,
            durable=durable,
        )
        return self.hand_over(leave).result()

    def block_step(self, step: StoredStep, reason: str) -> Write:
        """Note that a step waits for a person; committed when the write has ended."""
        return self.hand_over(Task(lambda connection: operations.block_step(connection, step, reason)))

    def record_shared(self, intent: Intent, outcome: Outcome) -> Write:
        """Record a call that got the outcome of another one."""
        return self.hand_over(
            Task(lambda connection: operations.record_shared(connection, intent, outcome), durable=True)
        )

    def mark_drifted(self, step: StoredStep) -> Write:
        """Note that a replay asked something slightly different and got this record."""
        return self.submit(Task(lambda connection: operations.mark_drifted(connection, step)))

    def load(self, run_id: str, now: float) -> list[StoredStep]:
        """The steps of a run, in one query; in a run without a lock, claimed or not at this time."""
        with self.counters.lock:
            self.counters.loads += 1
        return self.read(lambda connection: operations.load_steps(connection, run_id, now))

    def load_written(self, run_id: str, now: float) -> list[StoredStep]:
        """The same, with all in it that was handed to the writer before, whether or not anybody waits for it."""
        with self.counters.lock:
            self.counters.loads += 1
        return self.write(lambda connection: operations.load_steps(connection, run_id, now))

    def inspect(self, run_id: str) -> Integrity | None:
        """Everything that can be checked about a run's rows; None where there is no run."""
        return self.read(lambda connection: operations.inspect_run(connection, run_id))

    def step(self, run_id: str, key: str, now: float) -> StoredStep | None:
        """One step; in a run without a lock, claimed or not at this time."""
        return self.read(lambda connection: operations.load_step(connection, run_id, key, now))

    def setup(self, run_id: str, digest: str) -> Any:
        """A setup that models of the run were asked with, as plain data; None where it is not kept."""
        kept = self.read(lambda connection: operations.load_setup(connection, run_id, digest))
        return None if kept is None else codec.outline(kept)

    def run(self, run_id: str, now: float) -> StoredRun | None:
        """One run, held or not at this time, in seconds since the epoch; a server goes by its own clock."""
        return self.read(lambda connection: operations.read_run(connection, run_id, now))

    def last_completed(self, run_id: str) -> int:
        """The last attempt of a run that ended cleanly, or 0."""
        return self.read(lambda connection: operations.last_completed(connection, run_id))

    def effect_owner(self, effect: Effect) -> Owner | None:
        """Who performs a piece of business that may happen once, or has performed it."""
        return self.read(lambda connection: operations.effect_owner(connection, effect))

    def fork(self, forking: Forking) -> None:
        """Begin a run as a copy of another one; see ``operations.fork_run``."""
        self.hand_over(
            Task(
                lambda connection: operations.fork_run(connection, forking),
                about=forking.run_id,
                durable=True,
            )
        ).result()

    def runs(self, wanted: RunFilter, now: float) -> list[StoredRun]:
        """The runs that are meant, the latest first, held or not at this time; a server goes by its own clock."""
        return self.read(lambda connection: operations.list_runs(connection, wanted, now))

    def rewrite(self) -> bool:
        """Write the file anew, so that nothing of what was deleted stays in it; False where that is not ours to do."""
        return self.read(self._link.rewrite)

    def renew_lease(self, run_id: str, fence: int, now: float, seconds: float) -> bool:
        """Prolong a lease from now on, past the writer's queue; False if it is no longer ours."""
        return self.read(lambda connection: operations.renew_lease(connection, run_id, fence, now, seconds))

    def renew_claims(self, at: tuple[str, int], tokens: Sequence[str], *, now: float, seconds: float) -> bool:
        """Prolong the claims of an attempt, past the writer's queue; False if one is no longer ours."""
        return self.read(
            lambda connection: operations.renew_claims(connection, at, tokens, now=now, seconds=seconds)
        )

    def release_claim(self, step: StoredStep) -> Write:
        """Let others take a call that was cut off here."""
        return self.submit(Task(lambda connection: operations.release_claim(connection, step)))

    def close(self) -> None:
        """Commit what is queued and close all connections; a second time does nothing."""
        self._finalizer()

    def pause_for_fork(self) -> None:
        """Wait for whoever uses a connection, and close them all: none may be carried over a fork."""
        self._gate.shut()
        self.writer.drop_connection()
        self._link.engine.dispose()

    def resume_after_fork(self) -> None:
        """Go on in the parent; connections are opened anew when they are needed."""
        self._gate.open()

    def restart_after_fork(self) -> None:
        """Begin anew in the child, whose parent keeps the writer thread and what waits for it."""
        self._finalizer.detach()
        # Another thread of the parent may have held the lock at the moment of the fork.
        self.counters.lock = threading.Lock()
        self._start()


def link_to(address: Address) -> Link:
    """What opens connections there; nothing is opened yet."""
    if address.path is not None:
        return SqliteFile(address.path, address.url)
    from .postgres import PostgresSchema  # noqa: PLC0415 - its driver is an extra

    return PostgresSchema(address)


def _shut(writer: Writer, engine: sa.Engine) -> None:
    writer.close()
    engine.dispose()
