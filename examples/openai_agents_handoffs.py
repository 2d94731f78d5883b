"""A triage agent hands off to a refund agent, which hands back: one run, whichever agent the worker dies in."""

from pathlib import Path

from agents import Agent, function_tool

from gnl_middleware import never
from gnl_openai_agents import DurableRunner

book = Path("refunds.txt")


@function_tool
def refund(order: str) -> str:
    """Refund an order."""
    with book.open("a") as entries:
        entries.write(f"{order}\n")
    return f"refunded {order}"


triage = Agent(name="Triage", model="gpt-5-mini", instructions="Answer, or hand off.")
refunds = Agent(name="Refunds", model="gpt-5-mini", tools=[refund], handoffs=[triage])
triage.handoffs = [refunds]

runner = DurableRunner("handoffs.db", policies={"refund": never})
print(runner.run_sync(triage, "Please refund order 8841.", run_id="order:8841").final_output)
