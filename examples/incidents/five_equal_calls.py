"""One reply asks for the same refund five times, under five call ids. How often is it paid?

Run it: uv run python examples/incidents/five_equal_calls.py
"""

import tempfile
from pathlib import Path

from langchain.agents import create_agent
from stage import QUESTION, Bank, model_that_asks_for_refunds, show

from gnl_langchain import JournalMiddleware, run_durable
from gnl_middleware import never

FIVE = [f"call_{number}" for number in range(1, 6)]


def ask(folder: Path, *, protected: bool) -> tuple[int, int]:
    """Let the agent answer; gives how often the refund was paid and how many calls got an answer."""
    bank = Bank(folder)

    def refund(order: str) -> str:
        """Refund an order."""
        return bank.pay(order)

    model = model_that_asks_for_refunds(*FIVE)
    if protected:
        once = JournalMiddleware(policies={"refund": never(once_per="args")})
        agent = create_agent(model, [refund], middleware=[once])
        state = run_durable(agent, QUESTION, run_id="order:7", journal=folder / "runs.db")
    else:
        state = create_agent(model, [refund]).invoke(QUESTION)
    answered = [message.tool_call_id for message in state["messages"] if message.type == "tool"]
    return len(bank.refunds()), len(set(answered))


def main() -> None:
    with tempfile.TemporaryDirectory() as bare, tempfile.TemporaryDirectory() as guarded:
        unprotected, protected = ask(Path(bare), protected=False), ask(Path(guarded), protected=True)
    show(
        "Five equal calls in one reply",
        "",
        {
            "refunds paid": (unprotected[0], protected[0]),
            "calls that got an answer of their own": (unprotected[1], protected[1]),
        },
    )


if __name__ == "__main__":
    main()
