"""What differs between databases: how to connect, begin and sync, and what their errors mean."""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TypeVar

import sqlalchemy as sa
import sqlalchemy.exc
import tenacity

from gnl_middleware.errors import GnlError

_Result = TypeVar("_Result")

RETRIES = 5
"""How often a transaction is tried, each time on a fresh connection, before its callers are told."""

PATIENCE = 30.0
"""Seconds that a process waits for a lock, or for a server that restarts."""


class Link(ABC):
    """Opens connections to one database that are ready for use.

    Attributes:
        engine: SQLAlchemy's engine.
        always_syncs: Every commit waits for the disk.
        writes_at_once: A statement costs a round trip, so all rows of a batch go in one.
    """

    engine: sa.Engine
    always_syncs: bool
    writes_at_once: bool

    @abstractmethod
    def connect(self) -> sa.Connection:
        """A connection with our settings; creates and migrates the schema before the first use."""

    @abstractmethod
    def check(self) -> None:
        """Raise if the database is no longer the one that was opened."""

    @abstractmethod
    def begin(self, connection: sa.Connection) -> None:
        """Begin a transaction that writes."""

    @abstractmethod
    def set_syncing(self, connection: sa.Connection, *, durable: bool) -> None:
        """Let commits wait for the disk from now on, or not."""

    @abstractmethod
    def rewrite(self, connection: sa.Connection) -> bool:
        """Write the database anew, so that nothing of what was deleted stays in unused places; False where that is not ours."""

    @abstractmethod
    def describe(self, error: BaseException) -> GnlError:
        """The library's error for what the database raised."""

    @abstractmethod
    def meets_all(self, error: BaseException) -> bool:
        """Whether whatever is tried next would fail alike, so that nobody should wait for each write anew."""

    @abstractmethod
    def gives_up(self, attempts: int, seconds: float) -> bool:
        """Whether a transaction that failed so often, for so long, is not tried again."""

    def persist(self, run: Callable[[], _Result]) -> _Result:
        """Run a transaction; where it fails in a way that may pass, try it again, each time on a fresh connection."""
        began = time.monotonic()
        try:
            # Nearly all succeed at once, and need not pay for the counting of tries.
            return run()
        except sqlalchemy.exc.OperationalError as error:
            return self._retrying(time.monotonic() - began)(_after(error, run))

    def _retrying(self, spent: float) -> tenacity.Retrying:
        return tenacity.Retrying(
            stop=lambda state: self.gives_up(
                state.attempt_number, spent + (state.seconds_since_start or 0.0)
            ),
            wait=tenacity.wait_random_exponential(multiplier=0.05, max=1.0),
            retry=tenacity.retry_if_exception_type(sqlalchemy.exc.OperationalError),
            reraise=True,
        )


def _after(error: Exception, run: Callable[[], _Result]) -> Callable[[], _Result]:
    """What has failed once already, as a function that fails so the first time."""
    failed = [error]

    def again() -> _Result:
        if failed:
            raise failed.pop()
        return run()

    return again
