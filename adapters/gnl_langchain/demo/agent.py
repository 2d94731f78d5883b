"""The demo's agent: a support desk with one tool of each kind that matters.

`lookup_customer` reads, so it may run twice. `create_ticket` must not, and the desk can be asked whether it did.
`send_email` must not either, and nobody but a person can tell: a mailbox has no such question.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any

from langchain.agents import create_agent  # pyright: ignore[reportUnknownVariableType]
from langchain_core.runnables import Runnable
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from gnl_langchain import JournalMiddleware
from gnl_middleware import Done, InterruptedCall, NotDone, Policy, current_step, keyed, never, safe

from .desk import HelpDesk, Mail

LABELS: dict[str, Policy] = {"safe": safe, "keyed": keyed, "never": never}
"""The replay labels that `gnl demo --relabel` takes, by name."""

MODEL = "scripted-support-1"
"""The model's name in the recorded traffic; it is a script's, not a provider's."""

BASE_URL = "http://127.0.0.1:8931/v1"
"""Where the recorded traffic says that it came from: loopback, so that even a broken guard reaches nobody."""

INSTRUCTIONS = "You run a print shop's support desk. Look the customer up, open one ticket, email its number."
REQUEST = "Customer C-1042: order 8841 arrived with water damage. Open a ticket, and email them its number."


def support_model(base_url: str = BASE_URL) -> ChatOpenAI:
    """The real OpenAI client, pointed at the recorded traffic; no key is needed, and a refusal is not retried."""
    return ChatOpenAI(model=MODEL, base_url=base_url, api_key=SecretStr("no-key-needed"), max_retries=0)


def support_agent(
    desk: HelpDesk, *, model: ChatOpenAI, relabel: Mapping[str, str] | None = None
) -> Runnable[Any, Any]:
    """The support agent, working on this desk, with its calls journalled.

    Args:
        desk: Where tickets and emails end up.
        model: The chat model that plans.
        relabel: Other replay labels, by tool name; a tool relabelled `never` loses its `recover`.
    """
    policies: dict[str, Policy] = {
        "lookup_customer": safe,
        "create_ticket": never(recover=ticket_finder(desk)),
        "send_email": never,
    }
    policies |= {tool: LABELS[label] for tool, label in (relabel or {}).items()}
    return create_agent(
        model,
        _tools(desk),
        system_prompt=INSTRUCTIONS,
        middleware=[JournalMiddleware(policies=policies)],
    )


def ticket_finder(desk: HelpDesk) -> Callable[[InterruptedCall], Done | NotDone]:
    """The `recover` of `create_ticket`: ask the desk what became of the interrupted call."""

    def find_ticket(call: InterruptedCall) -> Done | NotDone:
        number = desk.find_ticket(call.idempotency_key)
        return NotDone() if number is None else Done(number)

    return find_ticket


def _tools(desk: HelpDesk) -> list[Callable[..., str]]:
    def lookup_customer(customer_id: str) -> str:
        """Look up a customer's company and email address."""
        return json.dumps(desk.lookup_customer(customer_id))

    def create_ticket(customer_id: str, subject: str) -> str:
        """Open a support ticket and return its number."""
        return desk.open_ticket(customer_id, subject, reference=current_step().idempotency_key)

    def send_email(to: str, subject: str, body: str) -> str:
        """Send an email to a customer."""
        return desk.send_mail(Mail(to, subject, body))

    return [lookup_customer, create_ticket, send_email]
