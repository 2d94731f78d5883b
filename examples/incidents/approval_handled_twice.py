"""One approval is handled twice: the button was clicked by two people, or the webhook came again. How often is it paid?

Run it: uv run python examples/incidents/approval_handled_twice.py
"""

import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from stage import QUESTION, Bank, model_that_asks_for_refunds, show

from gnl_langchain import JournalMiddleware, run_durable
from gnl_middleware import never

APPROVED = Command(resume={"decisions": [{"type": "approve"}]})
BOTH_CLICK = threading.Barrier(2)


class Desk:
    """An agent whose refunds a person approves, and the approval that it saved."""

    def __init__(self, folder: Path, *, protected: bool) -> None:
        self.bank, self._journal, self._protected = Bank(folder), folder / "runs.db", protected
        approval = HumanInTheLoopMiddleware(interrupt_on={"refund": True})
        journaling = [JournalMiddleware(policies={"refund": never})] if protected else []
        self._agent = create_agent(
            model_that_asks_for_refunds("call_1"),
            [self._tool()],
            middleware=[approval, *journaling],
            checkpointer=InMemorySaver(),
        )
        self._thread: Any = {"configurable": {"thread_id": "order:7"}}
        self._call(QUESTION, self._thread)
        self._saved: Any = self._agent.get_state(self._thread).config

    def _tool(self) -> Any:
        def refund(order: str) -> str:
            """Refund an order."""
            return self.bank.pay(order)

        return refund

    def approve(self) -> None:
        """Go on from the saved approval."""
        self._call(APPROVED, self._saved)

    def _call(self, what: Any, config: Any) -> None:
        if self._protected:
            run_durable(
                self._agent, what, run_id="order:7", journal=self._journal, config=config, on_busy="wait"
            )
        else:
            self._agent.invoke(what, config)


def one_after_the_other(desk: Desk) -> None:
    """The webhook is delivered again, minutes later."""
    desk.approve()
    desk.approve()


def at_the_same_moment(desk: Desk) -> None:
    """Two people click at once."""

    def click(_: int) -> None:
        BOTH_CLICK.wait()
        desk.approve()

    with ThreadPoolExecutor(2) as people:
        list(people.map(click, range(2)))


def refunds_paid(handled: Any, *, protected: bool) -> int:
    """Save an approval, handle it twice, and count."""
    with tempfile.TemporaryDirectory() as folder:
        desk = Desk(Path(folder), protected=protected)
        handled(desk)
        return len(desk.bank.refunds())


def main() -> None:
    ways = {
        "twice, one after the other": one_after_the_other,
        "twice, at the same moment": at_the_same_moment,
    }
    rows = {
        what: (refunds_paid(handled, protected=False), refunds_paid(handled, protected=True))
        for what, handled in ways.items()
    }
    show("One approval, handled twice", "refunds paid", rows)


if __name__ == "__main__":
    main()
