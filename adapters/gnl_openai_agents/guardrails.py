"""Guardrails in scopes of their own: they run beside the agent, and may ask models themselves.

What a guardrail answered is read back, where it is plain data; another answer is made again on the next attempt.
"""

import dataclasses
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

from agents import GuardrailFunctionOutput, InputGuardrail, OutputGuardrail

from gnl_middleware.adapter import FunctionCall, OnNoRun, encode, perform_async
from gnl_middleware.errors import UnserializableValueError

from .errors import passing
from .private import awaited
from .runs import session_here
from .steps import NotRecordedError, ending

_G = TypeVar("_G", InputGuardrail[Any], OutputGuardrail[Any])


def journaled_guardrail(guardrail: _G, on_no_run: OnNoRun) -> _G:
    """A copy of a guardrail whose answer goes through the journal."""
    if isinstance(guardrail.guardrail_function, _Journaled):
        return guardrail
    name = guardrail.get_name()
    # The name is taken from the function where it is not given: it must stay what it is.
    function = _Journaled(name, guardrail.guardrail_function, on_no_run)
    return dataclasses.replace(guardrail, name=name, guardrail_function=function)


class _Journaled:
    def __init__(self, name: str, function: Callable[..., Any], on_no_run: OnNoRun) -> None:
        self._name, self._function = name, function
        self._on_no_run: OnNoRun = on_no_run
        self.__name__ = name

    def __call__(self, *given: Any) -> Awaitable[GuardrailFunctionOutput]:
        return self._answered(given)

    async def _answered(self, given: tuple[Any, ...]) -> GuardrailFunctionOutput:
        session = session_here(name=self._name, on_no_run=self._on_no_run)
        if session is None:
            return await awaited(self._function(*given))

        async def body() -> GuardrailFunctionOutput:
            output = await awaited(self._function(*given))
            try:
                _encode(output)
            except (UnserializableValueError, AttributeError):
                raise NotRecordedError(output) from None
            return output

        call = FunctionCall(
            name=f"guardrail:{self._name}",
            arguments={},
            kind="value",
            encode=_encode,
            decode=_decode,
            ending=ending,
            as_control=passing,
        )
        with session.handle.scope(f"guardrail:{self._name}"):
            try:
                return await perform_async(session, call, body)
            except NotRecordedError as unrecorded:
                return unrecorded.value


def _encode(output: GuardrailFunctionOutput) -> bytes:
    return encode({"info": output.output_info, "tripped": output.tripwire_triggered})


def _decode(recorded: Mapping[str, Any]) -> GuardrailFunctionOutput:
    return GuardrailFunctionOutput(output_info=recorded["info"], tripwire_triggered=bool(recorded["tripped"]))
