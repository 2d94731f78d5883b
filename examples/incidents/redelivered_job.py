"""A queue lost the connection and delivers a job again. How often is the refund paid?

The first worker is still in its slow call to the bank, or it died right after it. Workers are real processes, and the one
that dies is really killed. Run it: uv run python examples/incidents/redelivered_job.py
"""

import multiprocessing
import os
import signal
import tempfile
import time
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any, NamedTuple

from langchain.agents import create_agent
from stage import QUESTION, Bank, model_that_asks_for_refunds, show

from gnl_langchain import JournalMiddleware, run_durable
from gnl_middleware import Done, InterruptedCall, NotDone, current_step, never

PROCESSES = multiprocessing.get_context("fork")  # no thread has begun yet: a fork of what is imported is safe
SECONDS_UNTIL_THE_BANK_ANSWERS = 0.2
PATIENCE = 30.0


class Redelivery(NamedTuple):
    """What the first worker does, and the id under which the job comes again."""

    first_worker_dies: bool
    message: str


def refund_tool(bank: Bank, paid: Event, *, dies: bool, protected: bool) -> Any:
    """A refund: the bank has paid long before its answer comes."""

    def refund(order: str) -> str:
        """Refund an order."""
        receipt = bank.pay(order, current_step().idempotency_key if protected else "-")
        paid.set()
        if dies:
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(SECONDS_UNTIL_THE_BANK_ANSWERS)
        return receipt

    return refund


def once_per_order(bank: Bank) -> JournalMiddleware:
    """One refund per order, whichever job asks for it; after a crash the bank is asked."""

    def find_refund(call: InterruptedCall) -> Done | NotDone:
        paid = call.idempotency_key in bank.refunds()
        return Done(f"order {call.arguments['order']} is refunded") if paid else NotDone()

    policy = never(recover=find_refund, once_per=lambda arguments: arguments["order"], window="journal")
    return JournalMiddleware(policies={"refund": policy})


def work(folder: Path, message: str, paid: Event, *, dies: bool, protected: bool) -> None:
    """One worker handles one delivery of the job."""
    bank, model = Bank(folder), model_that_asks_for_refunds(f"call_of_{message}")
    tools = [refund_tool(bank, paid, dies=dies, protected=protected)]
    if protected:
        agent = create_agent(model, tools, middleware=[once_per_order(bank)])
        run_durable(agent, QUESTION, run_id=message, journal=folder / "runs.db", on_busy="wait")
    else:
        create_agent(model, tools).invoke(QUESTION)


def refunds_paid(redelivery: Redelivery, *, protected: bool) -> int:
    """Deliver the job twice, and count."""
    with tempfile.TemporaryDirectory() as name:
        folder, paid = Path(name), PROCESSES.Event()

        def worker(message: str, *, dies: bool) -> Any:
            options = {"dies": dies, "protected": protected}
            return PROCESSES.Process(target=work, args=(folder, message, paid), kwargs=options)

        first = worker("message-1", dies=redelivery.first_worker_dies)
        second = worker(redelivery.message, dies=False)
        first.start()
        if not paid.wait(PATIENCE):
            raise TimeoutError("the first worker never paid")
        if redelivery.first_worker_dies:
            first.join()
        second.start()
        first.join()
        second.join()
        return len(Bank(folder).refunds())


def main() -> None:
    redeliveries = {
        "the same message, while the first worker is at it": Redelivery(False, "message-1"),
        "the same message, after the first worker paid and died": Redelivery(True, "message-1"),
        "a new message, while the first worker is at it": Redelivery(False, "message-2"),
        "a new message, after the first worker paid and died": Redelivery(True, "message-2"),
    }
    rows = {
        what: (refunds_paid(redelivery, protected=False), refunds_paid(redelivery, protected=True))
        for what, redelivery in redeliveries.items()
    }
    show("A job, delivered twice", "refunds paid", rows)


if __name__ == "__main__":
    main()
