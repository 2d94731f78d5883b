"""An agent that refunds an order: one side effect between two model calls."""

from typing import Any

from langchain.agents import create_agent

from gnl_langchain import JournalMiddleware
from tests.langchain.scripted import Script, ScriptedModel, calling, said, turns
from tests.worlds import Log


def refunding(effects: Log) -> Any:
    """The tool."""

    def refund(order: int) -> str:
        """Refund an order."""
        effects.add(f"refund {order}")
        return f"refunded {order}"

    return refund


def refunding_agent(effects: Log, script: Script | None = None, **options: Any) -> tuple[ScriptedModel, Any]:
    """The model, and the agent with its tool labelled ``never``."""
    model = ScriptedModel(script=script or turns(calling("refund", order=7), said()))
    agent = create_agent(
        model, [refunding(effects)], middleware=[JournalMiddleware(never=["refund"])], **options
    )
    return model, agent
