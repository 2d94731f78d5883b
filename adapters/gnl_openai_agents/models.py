"""Journalled models: every call of a model goes through the journal, wherever the model comes from.

Retries of the SDK stand outside: a call that failed is asked again under the same step.
"""

import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator
from contextvars import ContextVar
from typing import Any
from weakref import WeakKeyDictionary

from agents import Model, ModelProvider, ModelResponse, ModelRetryAdvice, Usage
from agents.items import TResponseStreamEvent
from agents.models.interface import ModelTracing
from agents.retry import ModelRetryAdviceRequest, ModelRetryNormalizedError

from gnl_middleware import never, safe
from gnl_middleware.adapter import (
    Message,
    ModelCall,
    OnNoRun,
    Session,
    perform_async,
    perform_stream_async,
)

from . import replies
from .described import described
from .errors import is_ours, passing
from .private import clean_up
from .requests import Asked, model_name
from .runs import session_here

_replied: "WeakKeyDictionary[Session, dict[str, Message]]" = WeakKeyDictionary()
_used: "ContextVar[tuple[Usage, ...]]" = ContextVar("gnl_openai_agents_used", default=())


@contextlib.contextmanager
def usage_added_to(usage: Usage) -> Generator[None]:
    """Add up what the models that are asked in here use."""
    token = _used.set((*_used.get(), usage))
    try:
        yield
    finally:
        _used.reset(token)


class JournaledModel(Model):
    """A model whose calls are answered from the journal, or run once and recorded.

    Args:
        model: The user's model; whatever else the SDK asks of a model is asked of it.
        on_no_run: Outside any run: ``raise`` NoActiveRunError, or ``passthrough`` to the model.
    """

    def __init__(self, model: Model, on_no_run: OnNoRun = "raise") -> None:
        self._gnl_model = model
        self._gnl_on_no_run: OnNoRun = on_no_run

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_gnl"):
            raise AttributeError(name)
        return getattr(self._gnl_model, name)

    async def close(self) -> None:
        """Close the model."""
        await self._gnl_model.close()

    async def _cleanup_on_run_end(self, owner: object) -> None:
        await clean_up(self._gnl_model, owner)

    def get_retry_advice(self, request: ModelRetryAdviceRequest) -> ModelRetryAdvice | None:
        """The model's advice; an error of ours must never be retried, whatever the user's policy says."""
        if is_ours(request.error):
            abort = ModelRetryNormalizedError(is_abort=True)
            return ModelRetryAdvice(suggested=False, replay_safety="unsafe", normalized=abort)
        return self._gnl_model.get_retry_advice(request)

    async def get_response(  # noqa: PLR0917 - the SDK gives these by position
        self,
        system_instructions: str | None,
        input: str | list[Any],  # noqa: A002 - the SDK's name
        model_settings: Any,
        tools: list[Any],
        output_schema: Any,
        handoffs: list[Any],
        tracing: ModelTracing,
        *,
        previous_response_id: str | None,
        conversation_id: str | None,
        prompt: Any,
    ) -> ModelResponse:
        """Answer from the record, or ask the model once."""
        session = session_here(name=model_name(self._gnl_model), on_no_run=self._gnl_on_no_run)
        given = (system_instructions, input, model_settings, tools, output_schema, handoffs)
        asked = Asked(*given, previous_response_id, conversation_id, prompt)

        async def ask() -> ModelResponse:
            return await self._gnl_model.get_response(*given, tracing, **asked.continued())

        if session is None:
            return await ask()
        call = self._gnl_call(session, asked, replies.as_response)
        response: ModelResponse = await perform_async(session, call, ask)
        _note(session, response)
        return response

    async def stream_response(  # noqa: PLR0917 - the SDK gives these by position
        self,
        system_instructions: str | None,
        input: str | list[Any],  # noqa: A002 - the SDK's name
        model_settings: Any,
        tools: list[Any],
        output_schema: Any,
        handoffs: list[Any],
        tracing: ModelTracing,
        *,
        previous_response_id: str | None,
        conversation_id: str | None,
        prompt: Any,
    ) -> AsyncGenerator[TResponseStreamEvent]:
        """Give the recorded events, or the model's own, recorded as they come."""
        session = session_here(name=model_name(self._gnl_model), on_no_run=self._gnl_on_no_run)
        given = (system_instructions, input, model_settings, tools, output_schema, handoffs)
        asked = Asked(*given, previous_response_id, conversation_id, prompt)
        events = self._gnl_model.stream_response(*given, tracing, **asked.continued())
        if session is None:
            async for event in events:
                yield event
            return
        call = self._gnl_call(session, asked, replies.as_chunks)
        async with contextlib.aclosing(_recorded(session, call, events)) as recorded:
            async for event in recorded:
                yield event

    def _gnl_call(self, session: Session, asked: Asked, decode: Callable[[Any], Any]) -> ModelCall:
        model = self._gnl_model
        request, messages, setup = asked.request(
            model, _replied.get(session, {}), lambda items: described(session, items)
        )
        return ModelCall(
            name=model_name(model),
            # The server keeps the conversation, and may have gone on from a call that was cut off.
            policy=safe if asked.conversation_id is None else never,
            request=request,
            messages=messages,
            setup=setup,
            encode=replies.encode,
            decode=decode,
            describe=replies.describe,
            redescribe=replies.redescribe,
            whole=replies.whole,
            as_control=passing,
        )


class _CutError(Exception):
    """The model's stream has ended without bringing its reply: that is no outcome."""


async def _recorded(
    session: Session, call: ModelCall, events: AsyncIterator[TResponseStreamEvent]
) -> AsyncGenerator[TResponseStreamEvent]:
    last: list[replies.Chunk] = []
    live = _chunks(events, last)
    given = perform_stream_async(session, call, lambda: live, lambda chunk: chunk.kept)
    try:
        async with contextlib.aclosing(given):
            async for chunk in given:
                if replies.is_end(chunk.event):
                    _note(session, replies.response_of(chunk.event))
                yield chunk.event
    except _CutError:
        # The last event is held back until there is an outcome: there will be none, and the SDK must see it.
        for chunk in last:
            yield chunk.event
    finally:
        await live.aclose()


async def _chunks(
    events: AsyncIterator[TResponseStreamEvent], last: list[replies.Chunk]
) -> AsyncGenerator[replies.Chunk]:
    async with contextlib.aclosing(_closable(events)) as closing:
        async for event in closing:
            chunk = replies.chunk(event)
            last[:] = [chunk]
            yield chunk
            if replies.is_end(event):
                return
    raise _CutError


async def _closable(events: AsyncIterator[TResponseStreamEvent]) -> AsyncGenerator[TResponseStreamEvent]:
    try:
        async for event in events:
            yield event
    finally:
        if isinstance(events, AsyncGenerator):
            await events.aclose()


def _note(session: Session, response: ModelResponse) -> None:
    if response.response_id is not None:
        _replied.setdefault(session, {})[response.response_id] = replies.standing(response)
    for usage in _used.get():
        usage.add(response.usage)


class JournaledProvider(ModelProvider):
    """A provider whose models are journalled.

    Args:
        provider: The user's provider.
        on_no_run: As for ``JournaledModel``.
    """

    def __init__(self, provider: ModelProvider, on_no_run: OnNoRun = "raise") -> None:
        self._gnl_provider = provider
        self._gnl_on_no_run: OnNoRun = on_no_run
        self._gnl_models: dict[int, JournaledModel] = {}

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_gnl"):
            raise AttributeError(name)
        return getattr(self._gnl_provider, name)

    def get_model(self, model_name: str | None) -> Model:
        """The provider's model, journalled; the same one for the same model, by which the SDK tells them apart."""
        model = self._gnl_provider.get_model(model_name)
        if isinstance(model, JournaledModel):
            return model
        return self._gnl_models.setdefault(id(model), JournaledModel(model, self._gnl_on_no_run))

    async def aclose(self) -> None:
        """Close the provider."""
        await self._gnl_provider.aclose()


def journaled_model(model: Model, on_no_run: OnNoRun = "raise") -> JournaledModel:
    """A model whose calls go through the journal; itself if they do already."""
    return model if isinstance(model, JournaledModel) else JournaledModel(model, on_no_run)


def journaled_provider(provider: ModelProvider, on_no_run: OnNoRun = "raise") -> JournaledProvider:
    """A provider whose models are journalled; itself if they are already."""
    return provider if isinstance(provider, JournaledProvider) else JournaledProvider(provider, on_no_run)
