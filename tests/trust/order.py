"""The code of a run with one step of each kind, some of which fail, are decided, or never end."""

import contextlib
from typing import Any

from gnl_middleware import Done, Journal, SideEffectRetryBlockedError, journaled, never, safe
from tests.storage.conversations import Conversation

RUN = "order-7"
SECRET = "sk-live-4471"  # noqa: S105 - what must not be found


class Killed(BaseException):
    """Ends an attempt as a signal does."""


class Order:
    """A run whose bodies are counted.

    Attributes:
        ran: The bodies that ran.
        dies: Whether ``charge`` is cut off.
    """

    def __init__(self, *, dies: bool = False) -> None:
        self.ran: list[str] = []
        self.dies = dies
        self.conversation = Conversation(size=100)

        @journaled(replay=never)
        def charge(order: str) -> dict[str, Any]:
            self.ran.append("charge")
            if self.dies:
                raise Killed
            return {"receipt": f"{order} paid with {SECRET}", "lines": ["x" * 2000, ("EUR", 5)]}

        @journaled(replay=safe)
        def look_up(order: str) -> str:
            self.ran.append("look_up")
            raise ValueError(f"there is no order {order} of {SECRET}")

        self.charge, self.look_up = charge, look_up

    def run(self, journal: Journal, **options: Any) -> list[Any]:
        """Play the run to its end; gives what each step gave."""
        with journal.run(RUN, metadata={"customer": SECRET}, **options) as run:
            answers: list[Any] = [self.charge(f"seven {SECRET}")]
            try:
                answers.append(self.look_up("eight"))
            except ValueError as error:
                answers.append(str(error))
            self.conversation.say(f"hello {SECRET}")
            answers += [self.conversation.ask(), run.value("moment", lambda: f"noon {SECRET}")]
            return answers


def blocked(journal: Journal) -> None:
    """A run whose charge may have happened, and that waits for a person."""
    with contextlib.suppress(Killed):
        Order(dies=True).run(journal)
    try:
        Order().run(journal)
    except SideEffectRetryBlockedError:
        return
    raise AssertionError("it should have blocked")


def decided(journal: Journal) -> None:
    """The same, decided by a person and brought to its end."""
    blocked(journal)
    journal.resolve(
        RUN, "charge", Done({"receipt": f"by hand {SECRET}"}), by="ops", note=f"asked the bank about {SECRET}"
    )
    Order().run(journal)
