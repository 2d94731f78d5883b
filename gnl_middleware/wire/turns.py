"""A conversation in no provider's words: who said what, which tools were asked for, and what they answered.

Messages of the three formats and those that the adapters journal become the same turns, so that what one has recorded can
be compared with what another asks.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from . import responses
from .told import Asks, Json, arguments_of, objects, text_of

_TEXTS = ("text", "output_text", "input_text")
_CALLS = frozenset({"tool_use", "server_tool_use", "mcp_tool_use"})


@dataclass(frozen=True, slots=True)
class Turn:
    """One message.

    Attributes:
        role: ``system``, ``user``, ``assistant`` or ``tool``.
        text: Its text.
        asks: For an assistant's, the tools that it asks for.
        answers: For a tool's, the call id that it answers.
        besides: The types of its parts that are no text, such as images.
    """

    role: str
    text: str
    asks: tuple[Asks, ...] = ()
    answers: str | None = None
    besides: tuple[str, ...] = ()

    def as_data(self) -> Json:
        """As plain data, in a fixed order; what is empty is left out."""
        asks = [{"name": each.name, "arguments": each.arguments, "id": each.call_id} for each in self.asks]
        found = {"role": self.role, "text": self.text, "asks": asks, "answers": self.answers}
        return {name: value for name, value in (found | {"besides": list(self.besides)}).items() if value}


def turns_of(messages: Iterable[Mapping[str, Any]]) -> tuple[Turn, ...]:
    """The turns of a conversation: as a request tells it, or as an adapter has journalled it."""
    return tuple(_turn(dict(message)) for message in messages)


def _turn(message: Json) -> Turn:
    if isinstance(message.get("items"), list):
        said = responses.said_by(objects(message["items"]))
        return Turn("assistant", said.text, said.asks)
    content, role = _content(message), str(message.get("role") or "")
    answers = next(
        (message[name] for name in ("tool_call_id", "tool_use_id", "call_id") if message.get(name)), None
    )
    if answers is not None:
        return Turn("tool", _text(content), answers=str(answers), besides=_besides(content))
    if role == "assistant":
        return Turn(role, _text(content), (*_calls(message), *_calls_inside(content)))
    return Turn("system" if role == "developer" else role, _text(content), besides=_besides(content))


def _content(message: Json) -> list[Any]:
    content = message.get("content", message.get("output"))
    return cast("list[Any]", content) if isinstance(content, list) else [content or ""]


def _text(content: list[Any]) -> str:
    return "".join(part if isinstance(part, str) else text_of([part], _TEXTS) for part in content)


def _besides(content: list[Any]) -> tuple[str, ...]:
    kinds = (str(part.get("type")) for part in objects(content))
    return tuple(kind for kind in kinds if kind not in _TEXTS)


def _calls(message: Json) -> Iterable[Asks]:
    for call in objects(message.get("tool_calls")):
        function: Json = call.get("function") or call.get("custom") or call
        given = next((function[name] for name in ("arguments", "args", "input") if name in function), None)
        yield Asks(str(call.get("id") or ""), str(function.get("name") or ""), arguments_of(given))


def _calls_inside(content: list[Any]) -> Iterable[Asks]:
    for block in objects(content):
        if block.get("type") in _CALLS:
            yield Asks(
                str(block.get("id") or ""), str(block.get("name") or ""), arguments_of(block.get("input"))
            )
