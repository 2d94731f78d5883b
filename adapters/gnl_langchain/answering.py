"""Make of recorded replies the messages that LangChain makes of them, without asking for them turn by turn."""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import BaseMessage
from langchain_core.outputs import ChatGenerationChunk, ChatResult

from .private import copied_as, generated, overrides
from .replies import as_chunks, as_result

_RECORDED = "_gnl_recorded"


class Answering:
    """A copy of a model that gives recorded replies, through all that LangChain does with a provider's answer.

    Args:
        model: The model; it is not changed.
    """

    def __init__(self, model: BaseChatModel) -> None:
        self._copy = copied_as(model, _answering_class(type(model)))
        # What was answered once is neither looked up nor held back.
        vars(self._copy).update(cache=False, rate_limiter=None)

    def message(self, recorded: Mapping[str, Any]) -> BaseMessage:
        """The message that stands in the agent's history after this reply."""
        vars(self._copy)[_RECORDED] = recorded
        return generated(self._copy).generations[0].message


@cache
def _answering_class(kind: type[BaseChatModel]) -> type[BaseChatModel]:
    bases: tuple[type, ...] = (_Answers, kind)
    if overrides(kind, "_stream") or overrides(kind, "_astream"):
        bases = (_AnswersInChunks, *bases)
    return type(kind.__name__, bases, {"__module__": kind.__module__, "__annotations__": {}})


def _recorded(copy: Any) -> Mapping[str, Any]:
    return copy.__dict__[_RECORDED]


class _Answers:
    def _generate(self, *_given: Any, **_options: Any) -> ChatResult:
        return as_result(_recorded(self))


class _AnswersInChunks:
    def _stream(self, *_given: Any, **_options: Any) -> Iterator[ChatGenerationChunk]:
        return as_chunks(_recorded(self))
