"""A refund that a person approves: `python langgraph_refund_approval.py`, later `... approve` or `... reject`.

The approval may come days later and in another process. Approving twice refunds once.
"""

import sqlite3
import sys
from contextlib import closing

from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command

from gnl_langchain import JournalMiddleware, run_durable
from gnl_langchain.demo.desk import HelpDesk
from gnl_middleware import Done, InterruptedCall, NotDone, current_step, never

desk = HelpDesk.open("helpdesk")


def find_ticket(call: InterruptedCall) -> Done | NotDone:
    number = desk.find_ticket(call.idempotency_key)
    return Done(number) if number else NotDone()


@never(recover=find_ticket)
def create_ticket(customer_id: str, subject: str) -> str:
    """Open a refund ticket and return its number."""
    return desk.open_ticket(customer_id, subject, reference=current_step().idempotency_key)


given = {"messages": [("user", "Customer C-1042: order 8841 is water damaged. Refund it.")]}
if len(sys.argv) > 1:
    decision = {"type": sys.argv[1]}  # approve, or reject
    given = Command(resume={"decisions": [decision]})

with closing(sqlite3.connect("threads.db", check_same_thread=False)) as connection:
    agent = create_agent(
        ChatOpenAI(model="gpt-4.1-mini"),
        [create_ticket],
        middleware=[HumanInTheLoopMiddleware(interrupt_on={"create_ticket": True}), JournalMiddleware()],
        checkpointer=SqliteSaver(connection),
    )
    thread = {"configurable": {"thread_id": "order:8841"}}
    state = run_durable(agent, given, run_id="order:8841", journal="support.db", config=thread)

print("waits for approval" if "__interrupt__" in state else state["messages"][-1].text)
