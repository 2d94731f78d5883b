"""The world that the demo's agent acts upon: a help desk in SQLite and a mailbox on disk.

Both are ordinary files, so what a worker did to them survives its death. Neither protects itself: the desk opens a
second ticket for the same call, and the mailbox takes the same mail twice, as most real ones do. Whatever
keeps the effects single is the journal.
"""

import json
import os
import sqlite3
from collections.abc import Generator
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

_SCHEMA = """
CREATE TABLE IF NOT EXISTS customers (id TEXT PRIMARY KEY, company TEXT NOT NULL, email TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS tickets (
    number INTEGER PRIMARY KEY, customer_id TEXT NOT NULL, subject TEXT NOT NULL, reference TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS inquiries (reference TEXT NOT NULL, answer TEXT);
INSERT OR IGNORE INTO customers VALUES ('C-1042', 'Harbour Books', 'orders@harbour-books.example');
"""
_FIRST_TICKET = 1001

SENT = "sent"
"""What sending a mail returns, and what a person says of one that is found in the mailbox."""


@dataclass(frozen=True, slots=True)
class Mail:
    """One line of the mailbox."""

    to: str
    subject: str
    body: str


@dataclass(frozen=True, slots=True)
class HelpDesk:
    """A folder that holds the desk (`desk.db`) and the mailbox (`mailbox.jsonl`).

    Example:
        >>> import tempfile
        >>> desk = HelpDesk.open(tempfile.mkdtemp())
        >>> desk.open_ticket("C-1042", "damaged parcel", reference="key-1")
        'T-1001'
        >>> desk.find_ticket("key-1")
        'T-1001'
    """

    folder: Path

    @classmethod
    def open(cls, folder: Path | str) -> "HelpDesk":
        """The desk of this folder, with its tables and its one customer in place."""
        desk = cls(Path(folder))
        desk.folder.mkdir(parents=True, exist_ok=True)
        with desk._connection() as connection:
            connection.executescript(_SCHEMA)
        return desk

    def lookup_customer(self, customer_id: str) -> dict[str, str] | None:
        """What the desk knows of a customer; None where there is no such customer."""
        with self._connection() as connection:
            query = "SELECT id, company, email FROM customers WHERE id = ?"
            row = connection.execute(query, [customer_id]).fetchone()
        return None if row is None else {"customer_id": row[0], "company": row[1], "email": row[2]}

    def open_ticket(self, customer_id: str, subject: str, *, reference: str) -> str:
        """Open a ticket and return its number; the caller's reference is filed with it, not enforced."""
        with self._connection() as connection:
            insert = (
                "INSERT INTO tickets (number, customer_id, subject, reference) "
                "SELECT coalesce(max(number) + 1, ?), ?, ?, ? FROM tickets RETURNING number"
            )
            row = connection.execute(insert, [_FIRST_TICKET, customer_id, subject, reference]).fetchone()
        return f"T-{row[0]}"

    def find_ticket(self, reference: str) -> str | None:
        """The number of the first ticket filed under this reference, if there is one.

        The question is noted, so that a report can tell that it was asked.
        """
        with self._connection() as connection:
            query = "SELECT min(number) FROM tickets WHERE reference = ?"
            number = connection.execute(query, [reference]).fetchone()[0]
            answer = None if number is None else f"T-{number}"
            connection.execute("INSERT INTO inquiries VALUES (?, ?)", [reference, answer])
        return answer

    def tickets(self) -> list[str]:
        """The numbers of all tickets, oldest first."""
        with self._connection() as connection:
            rows = connection.execute("SELECT number FROM tickets ORDER BY number").fetchall()
        return [f"T-{number}" for (number,) in rows]

    def inquiries(self) -> list[str | None]:
        """What `find_ticket` answered, each time that it was asked."""
        with self._connection() as connection:
            rows = connection.execute("SELECT answer FROM inquiries ORDER BY rowid").fetchall()
        return [answer for (answer,) in rows]

    def send_mail(self, mail: Mail) -> str:
        """Append the mail to the mailbox, on the disk when this returns."""
        append_line(self.folder / "mailbox.jsonl", json.dumps(asdict(mail)))
        return SENT

    def mails(self) -> list[Mail]:
        """Everything in the mailbox, oldest first."""
        return [Mail(**json.loads(line)) for line in read_lines(self.folder / "mailbox.jsonl")]

    @contextmanager
    def _connection(self) -> Generator[sqlite3.Connection, None, None]:
        """A connection for one transaction: closing it does not commit, and committing does not close it."""
        with closing(sqlite3.connect(self.folder / "desk.db", timeout=10)) as connection, connection:
            yield connection


def append_line(path: Path, line: str) -> None:
    """Append one line and force it to the disk: a worker may die in the very next statement."""
    with path.open("a", encoding="utf-8") as file:
        file.write(line + "\n")
        file.flush()
        os.fsync(file.fileno())


def read_lines(path: Path) -> list[str]:
    """The lines of a file that may not have been begun."""
    return path.read_text(encoding="utf-8").splitlines() if path.exists() else []
