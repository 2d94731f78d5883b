"""An approval across processes: run it, and it stops; run it with ``approve``, and it goes on from the saved state.

Approve twice, or kill it in between: the refund happens once.
"""

import asyncio
import sys
from pathlib import Path

from agents import Agent, function_tool

from gnl_middleware import never
from gnl_openai_agents import DurableRunner

book, saved = Path("refunds.txt"), Path("state.json")


@function_tool(needs_approval=True)
@never
def refund(order: str) -> str:
    """Refund an order."""
    with book.open("a") as entries:
        entries.write(f"{order}\n")
    return f"refunded {order}"


agent = Agent(name="Refunds", model="gpt-5-mini", tools=[refund])
runner = DurableRunner("approvals.db")


async def ask() -> None:
    result = await runner.run(agent, "Please refund order 8841.", run_id="order:8841")
    saved.write_text(result.to_state().to_string())
    print("waits for an approval of", *(item.name for item in result.interruptions))


async def approve() -> None:
    state = await runner.load_state(
        agent, saved.read_text()
    )  # not RunState.from_string: it wraps the agent first
    for item in state.get_interruptions():
        state.approve(item)
    print((await runner.run(agent, state, run_id="order:8841")).final_output)


asyncio.run(approve() if "approve" in sys.argv else ask())
