"""The library's errors as the Agents SDK lets them pass: each is also an ``AgentsException``.

Any other exception from a tool, hook or guardrail is wrapped in a ``UserError``, or its text is handed to the model. An
``except`` clause for the core's class catches these too.
"""

from typing import Any, cast

from agents.exceptions import AgentsException

from gnl_middleware import errors as core
from gnl_middleware.adapter import passing_as


class _Passing(AgentsException):
    """What the SDK notes on its exceptions: details of the run, which no pickle could hold."""

    run_data = None

    def __reduce__(self) -> tuple[Any, ...]:
        rebuild, (kind, args, facts) = cast(
            "tuple[Any, tuple[Any, Any, dict[str, Any]]]", super().__reduce__()
        )
        return rebuild, (kind, args, {name: fact for name, fact in facts.items() if name != "run_data"})


class RunBusyError(_Passing, core.RunBusyError):
    """See ``gnl_middleware.RunBusyError``."""


class LeaseLostError(_Passing, core.LeaseLostError):
    """See ``gnl_middleware.LeaseLostError``."""


class SideEffectRetryBlockedError(_Passing, core.SideEffectRetryBlockedError):
    """See ``gnl_middleware.SideEffectRetryBlockedError``."""


class ForkedEffectError(_Passing, core.ForkedEffectError):
    """See ``gnl_middleware.ForkedEffectError``."""


class DivergenceError(_Passing, core.DivergenceError):
    """See ``gnl_middleware.DivergenceError``."""


class ReplayMissError(_Passing, core.ReplayMissError):
    """See ``gnl_middleware.ReplayMissError``."""


class RunInputMismatchError(_Passing, core.RunInputMismatchError):
    """See ``gnl_middleware.RunInputMismatchError``."""


class EffectCycleError(_Passing, core.EffectCycleError):
    """See ``gnl_middleware.EffectCycleError``."""


class RetryLimitError(_Passing, core.RetryLimitError):
    """See ``gnl_middleware.RetryLimitError``."""


class UnlabelledToolError(_Passing, core.UnlabelledToolError):
    """See ``gnl_middleware.UnlabelledToolError``."""


class UnjournaledCallError(_Passing, core.UnjournaledCallError):
    """See ``gnl_middleware.UnjournaledCallError``."""


class UnserializableValueError(_Passing, core.UnserializableValueError):
    """See ``gnl_middleware.UnserializableValueError``."""


class NoActiveRunError(_Passing, core.NoActiveRunError):
    """See ``gnl_middleware.NoActiveRunError``."""


class RunErasedError(_Passing, core.RunErasedError):
    """See ``gnl_middleware.RunErasedError``."""


class RunNotFoundError(_Passing, core.RunNotFoundError):
    """See ``gnl_middleware.RunNotFoundError``."""


class ForkRefusedError(_Passing, core.ForkRefusedError):
    """See ``gnl_middleware.ForkRefusedError``."""


class ResolutionRefusedError(_Passing, core.ResolutionRefusedError):
    """See ``gnl_middleware.ResolutionRefusedError``."""


class JournalUnavailableError(_Passing, core.JournalUnavailableError):
    """See ``gnl_middleware.JournalUnavailableError``."""


class JournalCorruptError(_Passing, core.JournalCorruptError):
    """See ``gnl_middleware.JournalCorruptError``."""


class UnreadableTypeError(_Passing, core.UnreadableTypeError):
    """See ``gnl_middleware.UnreadableTypeError``."""


class JournalKeyError(_Passing, core.JournalKeyError):
    """See ``gnl_middleware.JournalKeyError``."""


class JournalVersionError(_Passing, core.JournalVersionError):
    """See ``gnl_middleware.JournalVersionError``."""


passing = passing_as(_Passing)
"""The error as a type that the SDK lets pass; itself if it is one already, or must reach the agent."""


def is_ours(error: BaseException | None) -> bool:
    """Whether an error stops the run; a ``RecordedError`` is the tool's own."""
    return isinstance(error, core.GnlError) and not isinstance(error, core.RecordedError)
