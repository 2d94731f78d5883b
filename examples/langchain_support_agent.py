"""A support agent that survives a crash: kill it anywhere, run it again, and it goes on where it stopped."""

from langchain.agents import create_agent
from langchain_openai import ChatOpenAI

from gnl_langchain import JournalMiddleware, run_durable
from gnl_langchain.demo.desk import HelpDesk, Mail
from gnl_middleware import Done, InterruptedCall, NotDone, current_step, never, safe

desk = HelpDesk.open("helpdesk")  # a SQLite file of tickets and a mailbox file


@safe  # It only reads: after a crash it may run again.
def lookup_customer(customer_id: str) -> dict[str, str] | None:
    """Look up a customer's company and email address."""
    return desk.lookup_customer(customer_id)


def find_ticket(call: InterruptedCall) -> Done | NotDone:
    number = desk.find_ticket(call.idempotency_key)
    return Done(number) if number else NotDone()


@never(recover=find_ticket)  # It must not run twice: after a crash, the desk is asked whether it did run.
def create_ticket(customer_id: str, subject: str) -> str:
    """Open a support ticket and return its number."""
    return desk.open_ticket(customer_id, subject, reference=current_step().idempotency_key)


@never  # Nor this, and nothing can be asked: after a crash the run stops, and `gnl resolve` tells it what happened.
def send_email(to: str, subject: str, body: str) -> str:
    """Send an email to a customer."""
    return desk.send_mail(Mail(to, subject, body))


tools = [lookup_customer, create_ticket, send_email]
agent = create_agent(ChatOpenAI(model="gpt-4.1-mini"), tools, middleware=[JournalMiddleware()])
request = {"messages": [("user", "Customer C-1042: order 8841 is water damaged. Open a ticket, email them.")]}
print(run_durable(agent, request, run_id="order:8841", journal="support.db")["messages"][-1].text)
