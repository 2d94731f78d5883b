"""A journal with one step of each kind, and ways to damage it."""

from typing import Any

from gnl_middleware import GnlError, Journal, journaled, never, safe
from tests.storage import rows
from tests.storage.conversations import Conversation

RUN = "order-7"
RECEIPT = {"receipt": "r" * 1500, "paid": ("EUR", 5)}


class Order:
    """The code of the run: one step of each kind; a body that runs is noted."""

    def __init__(self) -> None:
        self.ran: list[str] = []
        self.conversation = Conversation(size=100)

        @journaled(replay=never)
        def charge(order: str) -> dict[str, Any]:
            self.ran.append("charge")
            return RECEIPT

        @journaled(replay=safe)
        def look_up(order: str) -> str:
            self.ran.append("look_up")
            raise ValueError("there is no such order")

        self.charge, self.look_up = charge, look_up

    def run(self, journal: Journal) -> list[Any]:
        """Play the run to its end; gives what each step gave."""
        with journal.run(RUN, metadata={"customer": "ann"}) as run:
            answers: list[Any] = [self.charge("seven")]
            try:
                answers.append(self.look_up("eight"))
            except ValueError as error:
                answers.append(str(error))
            self.conversation.say("hello")
            answers += [self.conversation.ask(), run.value("moment", self._moment)]
            return answers

    def _moment(self) -> str:
        self.ran.append("moment")
        return "noon"

    @property
    def bodies(self) -> list[str]:
        """The bodies that ran, the model's too."""
        return self.ran + ["model"] * self.conversation.asked


def play(path: Any) -> tuple[list[Any] | GnlError, list[str]]:
    """Open the journal and play the run; gives its answers, or the library's error, and the bodies that ran."""
    order = Order()
    with Journal(path) as journal:
        try:
            return order.run(journal), order.bodies
        except GnlError as error:
            return error, order.bodies


def cells(path: Any, table: str, columns: list[str]) -> list[tuple[int, str, Any]]:
    """The row id, column and content of every cell that holds something."""
    names = ", ".join(columns)
    found = rows.rows(path, f"SELECT rowid, {names} FROM {table}")
    return [
        (row[0], column, content)
        for row in found
        for column, content in zip(columns, row[1:], strict=True)
        if content not in (None, "", b"")
    ]


def put(path: Any, table: str, rowid: int, column: str, content: Any) -> None:
    """Write one cell."""
    rows.change(path, f"UPDATE {table} SET {column} = ? WHERE rowid = ?", content, rowid)


def flipped(content: Any, place: int, bit: int) -> Any:
    """The content with one bit of one of its bytes turned, as text where it was text and still is."""
    data = bytearray(content if isinstance(content, bytes) else content.encode())
    data[place % len(data)] ^= 1 << bit
    if isinstance(content, bytes):
        return bytes(data)
    return bytes(data).decode("utf-8", "replace")
