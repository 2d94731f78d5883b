"""The script of one support turn: look the customer up, open a ticket, email its number, say so.

It reads everything it says from the request, as a model would: the address from the lookup's answer, the number from
the ticket's. It serves the demo's recording and the example in the README alike.
"""

import json
import re
from typing import Any

from tests.servers.scripted_openai import Failure, Reply, ToolCall


def support_turn(request: dict[str, Any]) -> Reply | Failure:
    """What the model of the support desk says next."""
    messages = request["messages"]
    asked = next(message["content"] for message in messages if message["role"] == "user")
    customer, order = re.search(r"C-\d+", asked), re.search(r"order (\d+)", asked)
    if customer is None or order is None:
        return Failure(400, "the script knows requests that name a customer (C-…) and an order only")
    answers = {
        message["tool_call_id"]: message["content"] for message in messages if message["role"] == "tool"
    }
    subject = f"Order {order[1]}: water damage"
    if "call_lookup_1" not in answers:
        return Reply(calls=(ToolCall("call_lookup_1", "lookup_customer", {"customer_id": customer[0]}),))
    if "call_ticket_1" not in answers:
        arguments = {"customer_id": customer[0], "subject": subject}
        return Reply(calls=(ToolCall("call_ticket_1", "create_ticket", arguments),))
    number, email = answers["call_ticket_1"], json.loads(answers["call_lookup_1"])["email"]
    if "call_email_1" not in answers:
        body = f"We are sorry about your order {order[1]}. Your ticket is {number}; a reprint is on its way."
        arguments = {"to": email, "subject": f"{number}: {subject}", "body": body}
        return Reply(calls=(ToolCall("call_email_1", "send_email", arguments),))
    return Reply(f"Ticket {number} is open, and {email} has been told that a reprint is on its way.")
