"""Journalled chat models: a private copy whose class subclasses the original, with the provider boundary journalled.

The boundary is ``_generate``, ``_agenerate``, ``_stream`` and ``_astream``. Everything above it runs as without us:
callbacks, token streaming, structured output, ``bind_tools``, ``isinstance``.
"""

import contextlib
from collections.abc import AsyncIterator, Callable, Generator, Iterator, Sequence
from contextvars import ContextVar
from functools import cache
from typing import Any, ClassVar, TypeVar, cast

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import BaseMessage
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from langchain_core.runnables.base import Runnable

from gnl_middleware.adapter import (
    ModelCall,
    OnNoRun,
    Session,
    perform,
    perform_async,
    perform_stream,
    perform_stream_async,
    request_of,
)

from . import replies
from .described import described
from .errors import passing
from .graphs import mark_replayed, places_of
from .inside import with_models_replaced
from .private import NATIVE_STREAMS, copied_as, overrides
from .requests import model_name, setup_of
from .runs import run_named_in, session_here
from .streams import each_within, each_within_async

MARK = "gnl_journaled"
"""Key in a journalled model's metadata: callbacks see it, and ``run_durable`` refuses models without it."""

_T = TypeVar("_T", bound=Runnable[Any, Any])
_inside: ContextVar[tuple[int, ...]] = ContextVar("gnl_langchain_inside", default=())


def journaled_model(model: _T, *, on_no_run: OnNoRun = "raise") -> _T:
    """A copy of a chat model whose calls go through the journal of the run that is open around them.

    The model itself is not changed. Bindings, retries, fallbacks, chains and configurable models are copied with the models
    inside them; what a function calls is not seen, so give it a journalled model.

    Args:
        model: A chat model, or a runnable made of one by ``bind``, ``bind_tools``, ``with_retry``, ``with_fallbacks`` or
            ``with_structured_output``, or by ``init_chat_model`` with ``configurable_fields``.
        on_no_run: Outside any run: ``raise`` NoActiveRunError, or ``passthrough`` to the model.

    Raises:
        TypeError: There is no chat model in it.

    Example:
        >>> SummarizationMiddleware(model=journaled_model(model))     # doctest: +SKIP
    """
    found: list[BaseChatModel] = []

    def journal(each: BaseChatModel) -> BaseChatModel:
        found.append(each)
        return each if isinstance(each, _Journaled) else _journaled_copy(each, on_no_run)

    wrapped = with_models_replaced(model, journal)
    if wrapped is model and not found:
        raise TypeError(f"{type(model).__name__} holds no chat model that could be journalled")
    return wrapped


def _journaled_copy(model: BaseChatModel, on_no_run: OnNoRun) -> BaseChatModel:
    copy = copied_as(model, _journaled_class(type(model), on_no_run))
    copy.metadata = {**(model.metadata or {}), MARK: True}
    return copy


@cache
def _journaled_class(kind: type[BaseChatModel], on_no_run: OnNoRun) -> type[BaseChatModel]:
    bases: list[type] = [_Journaled]
    if overrides(kind, "_agenerate"):
        bases.insert(0, _JournaledAsync)
    if overrides(kind, "_stream"):
        bases.insert(0, _JournaledStream)
    if overrides(kind, "_astream"):
        bases.insert(0, _JournaledAsyncStream)
    namespace: dict[str, Any] = {
        "__module__": kind.__module__,
        "__doc__": kind.__doc__,
        "__annotations__": {"gnl_on_no_run": ClassVar[str], **dict.fromkeys(NATIVE_STREAMS, ClassVar[None])},
        "gnl_on_no_run": on_no_run,
        # A provider's own event stream would go past the journal; without it, events are made of ``_stream``.
        **dict.fromkeys(NATIVE_STREAMS),
    }
    return type(kind.__name__, (*bases, kind), namespace)


@contextlib.contextmanager
def _calling(model: object) -> Generator[None]:
    """Providers call their own ``_stream`` from ``_generate``: that is one call, and journalled once."""
    token = _inside.set((*_inside.get(), id(model)))
    try:
        yield
    finally:
        _inside.reset(token)


def _original(above: Any) -> Any:
    """What stands above a mixin in the class of a copy: the user's model class."""
    return above


def _is_inner_call(model: object) -> bool:
    return id(model) in _inside.get()


class _Journaled:
    """Journals ``_generate``, and finds the run that a call's configuration names."""

    gnl_on_no_run: ClassVar[OnNoRun] = "raise"

    def invoke(self, input: Any, config: Any = None, **options: Any) -> Any:  # noqa: A002 - LangChain's name
        with run_named_in(config):
            return _original(super()).invoke(input, config, **options)

    async def ainvoke(self, input: Any, config: Any = None, **options: Any) -> Any:  # noqa: A002 - LangChain's name
        with run_named_in(config):
            return await _original(super()).ainvoke(input, config, **options)

    def stream(self, input: Any, config: Any = None, **options: Any) -> Iterator[Any]:  # noqa: A002 - LangChain's name
        chunks = _original(super()).stream(input, config, **options)
        return each_within(chunks, lambda: run_named_in(config))

    def astream(self, input: Any, config: Any = None, **options: Any) -> AsyncIterator[Any]:  # noqa: A002 - LangChain's name
        chunks = _original(super()).astream(input, config, **options)
        return each_within_async(chunks, lambda: run_named_in(config))

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: Any = None,
        **options: Any,
    ) -> ChatResult:
        def ask() -> ChatResult:
            with _calling(self):
                return _original(super(_Journaled, self))._generate(
                    messages, stop=stop, run_manager=run_manager, **options
                )

        session = self._gnl_session()
        if session is None:
            return ask()
        return perform(
            session, self._gnl_call(session, messages, stop, options, replies.as_result, run_manager), ask
        )

    def _gnl_session(self) -> Session | None:
        if _is_inner_call(self):
            return None
        return session_here(name=model_name(cast("BaseChatModel", self)), on_no_run=self.gnl_on_no_run)

    def _gnl_call(  # noqa: PLR0917 - one place for what four methods of LangChain are given
        self,
        session: Session,
        messages: Sequence[BaseMessage],
        stop: Sequence[str] | None,
        options: dict[str, Any],
        decode: Callable[[Any], Any],
        run_manager: Any,
    ) -> ModelCall:
        model = cast("BaseChatModel", self)
        told, parts = described(session, messages)
        setup = setup_of(model, stop, options)
        return ModelCall(
            name=model_name(model),
            request=request_of(told, parts, setup),
            messages=told,
            setup=setup,
            encode=replies.encode,
            decode=decode,
            describe=replies.describe,
            redescribe=replies.redescribe,
            whole=replies.whole,
            as_control=passing,
            served=mark_replayed,
            places=places_of(run_manager),
        )


class _JournaledAsync(_Journaled):
    """Journals ``_agenerate`` of models that have one; others come to ``_generate`` by themselves."""

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: Any = None,
        **options: Any,
    ) -> ChatResult:
        async def ask() -> ChatResult:
            with _calling(self):
                return await _original(super(_JournaledAsync, self))._agenerate(
                    messages, stop=stop, run_manager=run_manager, **options
                )

        session = self._gnl_session()
        if session is None:
            return await ask()
        return await perform_async(
            session, self._gnl_call(session, messages, stop, options, replies.as_result, run_manager), ask
        )


class _JournaledStream(_Journaled):
    """Journals ``_stream``: chunks are recorded as the provider gave them."""

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: Any = None,
        **options: Any,
    ) -> Iterator[ChatGenerationChunk]:
        def ask() -> Iterator[ChatGenerationChunk]:
            # Without the run manager: whoever called us reports each token to it, once.
            chunks = _original(super(_JournaledStream, self))._stream(messages, stop=stop, **options)
            return each_within(chunks, lambda: _calling(self))

        session = self._gnl_session()
        if session is None:
            yield from ask()
            return
        call = self._gnl_call(session, messages, stop, options, replies.as_chunks, run_manager)
        yield from perform_stream(session, call, ask, replies.kept)


class _JournaledAsyncStream(_Journaled):
    """Journals ``_astream`` of models that have one."""

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: Any = None,
        **options: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        def ask() -> AsyncIterator[ChatGenerationChunk]:
            chunks = _original(super(_JournaledAsyncStream, self))._astream(messages, stop=stop, **options)
            return each_within_async(chunks, lambda: _calling(self))

        session = self._gnl_session()
        if session is None:
            async for chunk in ask():
                yield chunk
            return
        call = self._gnl_call(session, messages, stop, options, replies.as_chunks, run_manager)
        async for chunk in perform_stream_async(session, call, ask, replies.kept):
            yield chunk
