"""One call of a local tool, as the journal sees it."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

from agents import MaxTurnsExceeded, ModelBehaviorError, ToolTimeoutError, UserError

from gnl_middleware.adapter import (
    Ending,
    Policy,
    Session,
    ToolCall,
    current_scope,
    current_steps,
    perform_async,
)

from .errors import is_ours, passing
from .values import encode_output

_ERRORS = (ToolTimeoutError, ModelBehaviorError, UserError, MaxTurnsExceeded)
"""The SDK's own errors come back from a record as themselves."""


class NotRecordedError(Exception):
    """A result that is none yet, or that only this process can hold: the call happens again on the next attempt.

    Attributes:
        value: What the body returned.
    """

    def __init__(self, value: Any) -> None:
        super().__init__()
        self.value = value


def ending(error: Exception) -> Ending:
    """What an exception from a body means."""
    return "pause" if isinstance(error, NotRecordedError) else "failure"


def tool_call(
    *,
    name: str,
    policy: Policy,
    arguments: Any,
    call_id: str,
    encode: Callable[[Any], bytes] = encode_output,
    decode: Callable[[Any], Any] = lambda value: value,
) -> ToolCall:
    """The call that a model's reply asks for."""
    return ToolCall(
        name=name,
        policy=replace(policy, errors=(*policy.errors, *_ERRORS)),
        arguments=arguments,
        call_id=call_id,
        encode=encode,
        decode=decode,
        ending=ending,
        as_control=passing,
    )


async def perform_call(
    session: Session, call: ToolCall, body: Callable[[], Awaitable[Any]], *, in_thread: bool = False
) -> Any:
    """Answer a call from the record, or run its body once.

    The SDK cancels the siblings of a call that raises. An error of ours waits for those whose bodies run, so that it
    leaves none of them with an unknown outcome.
    """
    try:
        return await perform_async(session, call, body, in_thread=in_thread)
    except NotRecordedError as unrecorded:
        return unrecorded.value
    except Exception as error:
        if is_ours(error):
            await _siblings_ended(session)
        raise


async def _siblings_ended(session: Session) -> None:
    around = {step.key for step in current_steps()}
    with session.record.lock:
        running = [
            ended
            for key, ended in session.record.running.items()
            if key not in around and _is_sibling(session, key)
        ]
    if running:
        await asyncio.wait([asyncio.wrap_future(ended) for ended in running])


def _is_sibling(session: Session, key: str) -> bool:
    step = session.record.steps.get(key)
    return step is not None and step.kind == "tool" and step.scope == current_scope()
