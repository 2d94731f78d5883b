"""What the three incidents share: a bank that keeps a ledger, a model that says its lines, and a table of counts."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult

QUESTION = {"messages": [("user", "Order 7 arrived broken. Please refund it.")]}


class Bank:
    """Pays refunds, and writes each one into a ledger that outlives every process."""

    def __init__(self, folder: Path) -> None:
        self._ledger = folder / "ledger.txt"

    def pay(self, order: str, reference: str = "-") -> str:
        """Pay a refund."""
        with self._ledger.open("a", encoding="utf-8") as ledger:
            ledger.write(f"{order} {reference}\n")
            ledger.flush()
            os.fsync(ledger.fileno())
        return f"order {order} is refunded"

    def refunds(self) -> list[str]:
        """The references of all refunds that were paid."""
        lines = self._ledger.read_text(encoding="utf-8").splitlines() if self._ledger.exists() else []
        return [line.split()[1] for line in lines]


class ScriptedModel(BaseChatModel):
    """A model without a network: the n-th line of its script answers a conversation with n replies in it."""

    lines: list[AIMessage]

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        line = self.lines[sum(isinstance(message, AIMessage) for message in messages)]
        return ChatResult(generations=[ChatGeneration(message=line)])

    def bind_tools(self, _tools: Sequence[Any], **_: Any) -> Any:
        """It knows its tools by heart."""
        return self


def model_that_asks_for_refunds(*call_ids: str) -> ScriptedModel:
    """Asks for a refund of order 7 under each of the call ids in one reply, then thanks."""
    calls = [{"name": "refund", "args": {"order": "7"}, "id": call_id} for call_id in call_ids]
    return ScriptedModel(lines=[AIMessage("", tool_calls=calls), AIMessage("Your refund is on its way.")])


def show(title: str, counted: str, rows: Mapping[str, tuple[int, int]]) -> None:
    """Print what was counted, without and with the journal."""
    width = max(map(len, [counted, *rows]))
    print(f"\n{title}\n\n  {counted:<{width}}   unprotected   protected")
    for what, (unprotected, protected) in rows.items():
        print(f"  {what:<{width}}   {unprotected:>11}   {protected:>9}")
