"""What every worker here does with a job: the same code at its first delivery and at each further one."""

import os

from langchain.agents import create_agent
from langchain_openai import ChatOpenAI

from gnl_langchain import JournalMiddleware, run_durable
from gnl_langchain.demo.desk import HelpDesk, Mail
from gnl_middleware import Done, InterruptedCall, Journal, NotDone, current_step, never

journal = Journal(os.environ.get("JOURNAL", "journal.db"))  # a path, or postgresql://user@host/database
desk = HelpDesk.open("helpdesk")


def find_ticket(call: InterruptedCall) -> Done | NotDone:
    number = desk.find_ticket(call.idempotency_key)
    return Done(number) if number else NotDone()


@never(recover=find_ticket)
def create_ticket(customer_id: str, subject: str) -> str:
    """Open a support ticket and return its number."""
    return desk.open_ticket(customer_id, subject, reference=current_step().idempotency_key)


@never
def send_email(to: str, subject: str, body: str) -> str:
    """Send an email to a customer."""
    return desk.send_mail(Mail(to, subject, body))


agent = create_agent(
    ChatOpenAI(model="gpt-4.1-mini"), [create_ticket, send_email], middleware=[JournalMiddleware()]
)


def run_id_of(case: str) -> str:
    """One run per job. A queue's own message id will not do where it changes with each delivery."""
    return f"case:{case}"


def handle(case: str) -> str:
    """Do the job; what an earlier delivery did is read back.

    Raises:
        RunBusyError: Another worker is at it: come back later.
        SideEffectRetryBlockedError: A mail may have gone out: a person decides, with `gnl resolve`.
    """
    request = {
        "messages": [("user", f"Case {case}: order 8841 of C-1042 is damaged. Open a ticket, email them.")]
    }
    return run_durable(agent, request, run_id=run_id_of(case), journal=journal)["messages"][-1].text
