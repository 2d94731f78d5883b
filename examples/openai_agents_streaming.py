"""A streamed run: what a crash cut off is asked again, what was finished is given again, event by event."""

import asyncio
from pathlib import Path

from agents import Agent, SQLiteSession, function_tool

from gnl_middleware import never
from gnl_openai_agents import DurableRunner

book = Path("refunds.txt")


@function_tool
@never
def refund(order: str) -> str:
    """Refund an order."""
    with book.open("a") as entries:
        entries.write(f"{order}\n")
    return f"refunded {order}"


async def main() -> None:
    agent = Agent(name="Refunds", model="gpt-5-mini", tools=[refund])
    session = SQLiteSession(
        "customer:1042", "conversations.db"
    )  # Each item is written to it once, whatever crashes.
    stream = DurableRunner("streams.db").run_streamed(
        agent, "Please refund order 8841.", run_id="order:8841", session=session
    )
    async for event in stream.stream_events():  # What stops the run is raised here.
        if event.type == "raw_response_event" and event.data.type == "response.output_text.delta":
            print(event.data.delta, end="", flush=True)
    print()
    session.close()


asyncio.run(main())
