"""The library's errors as LangGraph lets them pass: each is also a ``GraphBubbleUp``.

LangGraph and LangChain catch exceptions in many places (``handle_tool_errors``, retry and error middleware, node
error handlers) and hand their text to the model. A ``GraphBubbleUp`` passes all of them untouched. An ``except`` clause
for the core's class catches these too.
"""

from langgraph.errors import GraphBubbleUp

from gnl_middleware import errors as core
from gnl_middleware.adapter import passing_as


class RunBusyError(core.RunBusyError, GraphBubbleUp):
    """See ``gnl_middleware.RunBusyError``."""


class LeaseLostError(core.LeaseLostError, GraphBubbleUp):
    """See ``gnl_middleware.LeaseLostError``."""


class SideEffectRetryBlockedError(core.SideEffectRetryBlockedError, GraphBubbleUp):
    """See ``gnl_middleware.SideEffectRetryBlockedError``."""


class ForkedEffectError(core.ForkedEffectError, GraphBubbleUp):
    """See ``gnl_middleware.ForkedEffectError``."""


class DivergenceError(core.DivergenceError, GraphBubbleUp):
    """See ``gnl_middleware.DivergenceError``."""


class ReplayMissError(core.ReplayMissError, GraphBubbleUp):
    """See ``gnl_middleware.ReplayMissError``."""


class RunInputMismatchError(core.RunInputMismatchError, GraphBubbleUp):
    """See ``gnl_middleware.RunInputMismatchError``."""


class EffectCycleError(core.EffectCycleError, GraphBubbleUp):
    """See ``gnl_middleware.EffectCycleError``."""


class RetryLimitError(core.RetryLimitError, GraphBubbleUp):
    """See ``gnl_middleware.RetryLimitError``."""


class UnlabelledToolError(core.UnlabelledToolError, GraphBubbleUp):
    """See ``gnl_middleware.UnlabelledToolError``."""


class UnjournaledCallError(core.UnjournaledCallError, GraphBubbleUp):
    """See ``gnl_middleware.UnjournaledCallError``."""


class UnserializableValueError(core.UnserializableValueError, GraphBubbleUp):
    """See ``gnl_middleware.UnserializableValueError``."""


class NoActiveRunError(core.NoActiveRunError, GraphBubbleUp):
    """See ``gnl_middleware.NoActiveRunError``."""


class RunErasedError(core.RunErasedError, GraphBubbleUp):
    """See ``gnl_middleware.RunErasedError``."""


class RunNotFoundError(core.RunNotFoundError, GraphBubbleUp):
    """See ``gnl_middleware.RunNotFoundError``."""


class ForkRefusedError(core.ForkRefusedError, GraphBubbleUp):
    """See ``gnl_middleware.ForkRefusedError``."""


class ResolutionRefusedError(core.ResolutionRefusedError, GraphBubbleUp):
    """See ``gnl_middleware.ResolutionRefusedError``."""


class JournalUnavailableError(core.JournalUnavailableError, GraphBubbleUp):
    """See ``gnl_middleware.JournalUnavailableError``."""


class JournalCorruptError(core.JournalCorruptError, GraphBubbleUp):
    """See ``gnl_middleware.JournalCorruptError``."""


class UnreadableTypeError(core.UnreadableTypeError, GraphBubbleUp):
    """See ``gnl_middleware.UnreadableTypeError``."""


class JournalKeyError(core.JournalKeyError, GraphBubbleUp):
    """See ``gnl_middleware.JournalKeyError``."""


class JournalVersionError(core.JournalVersionError, GraphBubbleUp):
    """See ``gnl_middleware.JournalVersionError``."""


passing = passing_as(GraphBubbleUp)
"""The error as a type that LangGraph lets pass; itself if it is one already, or must reach the agent."""
