"""A support agent that survives a crash: kill it anywhere, run it again, and it goes on where it stopped."""

from pathlib import Path

from agents import Agent, function_tool

from gnl_middleware import Done, InterruptedCall, NotDone, current_step, never, safe
from gnl_openai_agents import DurableRunner

tickets, mails = (
    Path("tickets"),
    Path("mails.txt"),
)  # A folder of tickets, named by their reference; a mailbox.


@function_tool
@safe  # It only reads: after a crash it may run again.
def lookup_customer(customer_id: str) -> str:
    """Look up a customer's email address."""
    return f"{customer_id.lower()}@customers.example"


def find_ticket(call: InterruptedCall) -> Done | NotDone:
    ticket = tickets / call.idempotency_key
    return Done(f"T-{ticket.name[:6]}") if ticket.exists() else NotDone()


@function_tool
@never(recover=find_ticket)  # It must not run twice: after a crash, the desk is asked whether it did run.
def create_ticket(customer_id: str, subject: str) -> str:
    """Open a support ticket and return its number."""
    tickets.mkdir(exist_ok=True)
    ticket = tickets / current_step().idempotency_key
    ticket.write_text(f"{customer_id}: {subject}\n")
    return f"T-{ticket.name[:6]}"


@function_tool
@never  # Nor this, and nothing can be asked: after a crash the run stops, and `gnl resolve` tells it what happened.
def send_email(to: str, body: str) -> str:
    """Send an email to a customer."""
    with mails.open("a") as mailbox:
        mailbox.write(f"{to}: {body}\n")
    return "sent"


agent = Agent(name="Support", model="gpt-5-mini", tools=[lookup_customer, create_ticket, send_email])
request = "Customer C-1042: order 8841 is water damaged. Open a ticket, email them."
print(DurableRunner("support.db").run_sync(agent, request, run_id="order:8841").final_output)
