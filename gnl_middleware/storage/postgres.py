"""A journal in a schema of a PostgreSQL database: its connections, and errors that say what to do."""

import sqlalchemy as sa
import sqlalchemy.exc

from gnl_middleware.errors import GnlError, JournalCorruptError, JournalUnavailableError

from .address import Address
from .link import PATIENCE, RETRIES, Link
from .migrate import found_version, migrate
from .prepared import execute
from .schema import SCHEMA_VERSION

try:
    import psycopg
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "A journal on PostgreSQL needs its driver: pip install 'gnl-middleware[postgres]'"
    ) from error

_MIGRATION_LOCK = (
    0x676E6C  # "gnl"; all workers that create or migrate a journal of one database take it in turn
)
_IDLE = 10
"""Seconds after which the server ends the transaction of a worker that fell silent in it and would block all others."""


class PostgresSchema(Link):
    """One schema of a PostgreSQL database.

    Args:
        address: Where it is.
    """

    always_syncs = True
    writes_at_once = True

    def __init__(self, address: Address) -> None:
        self._schema, self._shown = address.schema or "", address.shown
        # A pooler gives each transaction any connection: a statement prepared on one is unknown on the next.
        prepared = {"prepare_threshold": None} if address.pooled else {}
        self.engine = sa.create_engine(
            address.url, isolation_level="AUTOCOMMIT", pool_pre_ping=True, connect_args=prepared
        ).execution_options(schema_translate_map={None: self._schema})
        self._ready = False

    def connect(self) -> sa.Connection:
        """A connection; creates and migrates the schema before the first use."""
        connection = self.engine.connect()
        try:
            if not self._ready:
                self._migrate(connection)
                self._ready = True
        except BaseException:
            connection.invalidate()
            connection.close()
            raise
        return connection

    def _migrate(self, connection: sa.Connection) -> None:
        if found_version(connection, self._shown, self._schema) == SCHEMA_VERSION:
            return
        self.begin(connection)
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_MIGRATION_LOCK)))
        if not sa.inspect(connection).has_schema(self._schema):
            connection.execute(sa.schema.CreateSchema(self._schema))
        migrate(connection, self._shown, self._schema)
        connection.exec_driver_sql("COMMIT")

    def begin(self, connection: sa.Connection) -> None:
        """Begin a transaction, which the server ends by itself where its worker falls silent."""
        execute(connection, f"BEGIN; SET LOCAL idle_in_transaction_session_timeout = '{_IDLE}s'")

    def set_syncing(self, connection: sa.Connection, *, durable: bool) -> None:
        """Nothing: every commit waits for the disk, since a server that crashes would forget acknowledged replies."""

    def rewrite(self, connection: sa.Connection) -> bool:  # noqa: ARG002 - what a file needs
        """Nothing: the server reclaims what was deleted (VACUUM), and its backups are its keeper's."""
        return False

    def check(self) -> None:
        """Nothing: a server is known by its address."""

    def meets_all(self, error: BaseException) -> bool:
        """Without a server no write can be made."""
        return isinstance(error, sqlalchemy.exc.OperationalError)

    def gives_up(self, attempts: int, seconds: float) -> bool:
        """A server that was there is waited for while it restarts; one that never was is reported at once."""
        return seconds >= PATIENCE or (not self._ready and attempts >= RETRIES)

    def describe(self, error: BaseException) -> GnlError:
        """The library's error for what the database raised."""
        if isinstance(error, GnlError):
            return error
        original = error.orig if isinstance(error, sqlalchemy.exc.DBAPIError) else None
        text = " ".join(str(original or error).split())
        if isinstance(original, psycopg.errors.DataCorrupted | psycopg.errors.IndexCorrupted):
            return JournalCorruptError(where=self._shown, problem=text)
        remedy = next(
            (remedy for sign, remedy in _REMEDIES if sign in text),
            "Check that server, then run again; what was recorded is not lost.",
        )
        return JournalUnavailableError(url=self._shown, cause_text=text, remedy=remedy)


def holds_journal(address: Address) -> bool:
    """Whether there is a journal; looks, and creates nothing.

    Raises:
        JournalError: The server cannot be reached, or the schema is another program's.
    """
    link = PostgresSchema(address)
    try:
        with link.engine.connect() as connection:
            return found_version(connection, address.shown, address.schema) is not None
    except Exception as error:
        raise link.describe(error) from error
    finally:
        link.engine.dispose()


_REMEDIES = (
    ("prepared statement", "A transaction pooler stands in between: open with pooled=True."),
    ("is closed", "Open the journal again."),
    ("password", "Check the user and the password in the URL."),
    ("does not exist", "Create what is missing (createdb, createuser), or give another URL."),
    ("permission denied", "Let this user create the schema: GRANT CREATE ON DATABASE … TO …."),
    ("refused", "Start the server, or check host and port, then run again."),
    ("starting up", "Wait until the server has started, then run again."),
    ("too many clients", "Raise max_connections, or put a pooler in between and open with pooled=True."),
)
"""What to do about what PostgreSQL says, by a part of its message."""
