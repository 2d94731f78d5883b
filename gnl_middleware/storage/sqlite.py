"""A journal in a SQLite file: its connections, and errors that say what to do."""

import errno
import os
import sqlite3
from pathlib import Path

import sqlalchemy as sa
import sqlalchemy.exc
import tenacity

from gnl_middleware.errors import GnlError, JournalCorruptError, JournalUnavailableError

from .link import PATIENCE, RETRIES, Link
from .migrate import found_version, migrate
from .prepared import execute

_LOCKED = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
_PRIMARY = 0xFF
"""SQLite's result codes say more in their higher bits (https://sqlite.org/rescode.html)."""


def _is_locked(error: BaseException) -> bool:
    # By its code: the text of an error may name anything, a column called "locked" included.
    original = error.orig if isinstance(error, sqlalchemy.exc.OperationalError) else error
    return (
        isinstance(original, sqlite3.OperationalError)
        and getattr(original, "sqlite_errorcode", 0) & _PRIMARY in _LOCKED
    )


class SqliteFile(Link):
    """One SQLite file; knows when it was replaced.

    Args:
        path: The file.
        url: Its URL.
    """

    always_syncs = False
    writes_at_once = False

    def __init__(self, path: Path, url: str) -> None:
        self._path, self._url = path, url
        self.engine = sa.create_engine(
            url,
            isolation_level="AUTOCOMMIT",
            connect_args={"timeout": PATIENCE, "check_same_thread": False},
        )
        self._file: tuple[int, int] | None = None

    def connect(self) -> sa.Connection:
        """A connection with our settings; creates and migrates the schema before the first use."""
        connection = self.engine.connect()
        try:
            if self._file is None:
                self._prepare(connection)
            connection.exec_driver_sql("PRAGMA synchronous=NORMAL")
        except BaseException:
            connection.invalidate()
            connection.close()
            raise
        return connection

    @tenacity.retry(
        # A change of the journal mode does not wait for a lock: while another process creates the file, it fails at once.
        retry=tenacity.retry_if_exception(_is_locked),
        wait=tenacity.wait_random_exponential(multiplier=0.01, max=0.2),
        stop=tenacity.stop_after_delay(PATIENCE),
        reraise=True,
    )
    def _prepare(self, connection: sa.Connection) -> None:
        found_version(connection, self._url)  # before anything is changed in a file that is not ours
        connection.exec_driver_sql("PRAGMA journal_mode=WAL")
        self._migrate(connection)
        self._file = self._identity()

    def _migrate(self, connection: sa.Connection) -> None:
        self.begin(connection)
        try:
            migrate(connection, self._url)
        except BaseException:
            connection.exec_driver_sql("ROLLBACK")
            raise
        connection.exec_driver_sql("COMMIT")

    def begin(self, connection: sa.Connection) -> None:
        """Begin a transaction, alone in it from its beginning."""
        execute(connection, "BEGIN IMMEDIATE")

    def set_syncing(self, connection: sa.Connection, *, durable: bool) -> None:
        """Let commits wait for the disk from now on, or not."""
        execute(connection, f"PRAGMA synchronous={'FULL' if durable else 'NORMAL'}")

    def meets_all(self, error: BaseException) -> bool:
        """A locked file is locked for each write; to wait for it again and again would take as many times as long."""
        return _is_locked(error)

    def gives_up(self, attempts: int, seconds: float) -> bool:
        """SQLite has waited for a lock by itself."""
        return attempts >= RETRIES or seconds >= PATIENCE

    def rewrite(self, connection: sa.Connection) -> bool:
        """Write the file anew and empty its log; a reader that does not end keeps the log, and so the answer is False."""
        connection.exec_driver_sql("VACUUM")
        busy, _, _ = connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)").one()
        return not busy

    def check(self) -> None:
        """Raise if the file was deleted or replaced: SQLite would go on writing where nobody reads."""
        if self._file is not None and self._identity() != self._file:
            raise JournalUnavailableError(
                url=self._url,
                cause_text="the file was deleted or replaced while it was open",
                remedy="Put the file back (or accept that its record is gone) and start the process again.",
            )

    def _identity(self) -> tuple[int, int] | None:
        try:
            status = os.stat(self._path)  # noqa: PTH116 - one system call before every commit
        except OSError:
            return None
        return status.st_dev, status.st_ino

    def describe(self, error: BaseException) -> GnlError:
        """The library's error for what the database raised."""
        if isinstance(error, GnlError):
            return error
        original = error.orig if isinstance(error, sqlalchemy.exc.DBAPIError) else None
        cause: BaseException = original or error
        text = str(cause)
        if isinstance(cause, sqlite3.DatabaseError) and not isinstance(cause, sqlite3.OperationalError):
            if "not a database" in text:
                remedy = f"{self._path} is no journal: give another path."
                return JournalUnavailableError(url=self._url, cause_text=text, remedy=remedy)
            return JournalCorruptError(where=self._url, problem=text)
        if "Could not decode to UTF-8" in text:
            return JournalCorruptError(where=self._url, problem=text)
        return JournalUnavailableError(
            url=self._url, cause_text=text, remedy=_remedy(text, self._path, cause)
        )


def _remedy(text: str, path: Path, cause: BaseException) -> str:
    if path.is_dir():
        return f"{path} is a folder: give the path of a file."
    if getattr(cause, "errno", None) == errno.ENOSPC:
        text = "disk is full"
    if _is_locked(cause):
        return "Another process holds the file for long: end it, then run again."
    for sign, remedy in _REMEDIES:
        if sign in text:
            return remedy.format(path=path, folder=path.parent)
    return f"Check the disk under {path}, then run again."


_OTHER_SHAPE = "{path} holds tables of another shape: give another path."
_REMEDIES = (
    ("is closed", "Open it again: Journal('{path}')."),
    ("disk is full", "Free space on that disk, then run again."),
    ("readonly", "Make {path} and its folder writable for this user, then run again."),
    ("read-only", "Make {path} and its folder writable for this user, then run again."),
    ("unable to open", "Create the folder {folder} and make it writable for this user, then run again."),
    ("has no column", _OTHER_SHAPE),
    ("no such column", _OTHER_SHAPE),
    ("no such table", _OTHER_SHAPE),
    ("duplicate column", _OTHER_SHAPE),
)
"""What to do about what SQLite says, by a part of its message."""
