"""Journal every model and tool call of an agent; after a crash, resume where it stopped.

Example:
    >>> from gnl_middleware import Journal, journaled, never
    >>> @journaled(replay=never)
    ... def charge(order_id: str) -> str:
    ...     return f"charged {order_id}"
    >>> with Journal("runs.db").run("order-4471"):     # doctest: +SKIP
    ...     charge("4471")
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .codec import register
    from .errors import (
        DivergenceError,
        EffectCycleError,
        ForkedEffectError,
        ForkRefusedError,
        GnlError,
        JournalCorruptError,
        JournalError,
        JournalKeyError,
        JournalUnavailableError,
        JournalVersionError,
        LeaseLostError,
        NoActiveRunError,
        RecordedError,
        ReplayMissError,
        ResolutionRefusedError,
        RetryLimitError,
        RunBusyError,
        RunErasedError,
        RunInputMismatchError,
        RunNotFoundError,
        SideEffectRetryBlockedError,
        UnjournaledCallError,
        UnlabelledToolError,
        UnreadableTypeError,
        UnserializableValueError,
    )
    from .journal import Journal
    from .model import (
        Done,
        Failed,
        Integrity,
        InterruptedCall,
        NotDone,
        RunDifference,
        RunRecord,
        Step,
        Unknown,
    )
    from .policy import Policy, keyed, never, safe
    from .session.functions import current_step, journaled
    from .session.run import Run, current_run
    from .storage.encryption import Encryption

__all__ = [
    "DivergenceError",
    "Done",
    "EffectCycleError",
    "Encryption",
    "Failed",
    "ForkRefusedError",
    "ForkedEffectError",
    "GnlError",
    "Integrity",
    "InterruptedCall",
    "Journal",
    "JournalCorruptError",
    "JournalError",
    "JournalKeyError",
    "JournalUnavailableError",
    "JournalVersionError",
    "LeaseLostError",
    "NoActiveRunError",
    "NotDone",
    "Policy",
    "RecordedError",
    "ReplayMissError",
    "ResolutionRefusedError",
    "RetryLimitError",
    "Run",
    "RunBusyError",
    "RunDifference",
    "RunErasedError",
    "RunInputMismatchError",
    "RunNotFoundError",
    "RunRecord",
    "SideEffectRetryBlockedError",
    "Step",
    "UnjournaledCallError",
    "Unknown",
    "UnlabelledToolError",
    "UnreadableTypeError",
    "UnserializableValueError",
    "current_run",
    "current_step",
    "journaled",
    "keyed",
    "never",
    "register",
    "safe",
]

# A command line, a plugin of pytest and whoever only needs an error class must not pay for the machinery.
_PLACES = {
    ".codec": ("register",),
    ".errors": (
        "DivergenceError",
        "EffectCycleError",
        "ForkedEffectError",
        "ForkRefusedError",
        "GnlError",
        "JournalCorruptError",
        "JournalError",
        "JournalKeyError",
        "JournalUnavailableError",
        "JournalVersionError",
        "LeaseLostError",
        "NoActiveRunError",
        "RecordedError",
        "ReplayMissError",
        "ResolutionRefusedError",
        "RetryLimitError",
        "RunBusyError",
        "RunErasedError",
        "RunInputMismatchError",
        "RunNotFoundError",
        "SideEffectRetryBlockedError",
        "UnjournaledCallError",
        "UnlabelledToolError",
        "UnreadableTypeError",
        "UnserializableValueError",
    ),
    ".journal": ("Journal",),
    ".model": (
        "Done",
        "Failed",
        "Integrity",
        "InterruptedCall",
        "NotDone",
        "RunDifference",
        "RunRecord",
        "Step",
        "Unknown",
    ),
    ".policy": ("Policy", "keyed", "never", "safe"),
    ".session.functions": ("current_step", "journaled"),
    ".session.run": ("Run", "current_run"),
    ".storage.encryption": ("Encryption",),
}
_LAZY = {name: module for module, names in _PLACES.items() for name in names}


def __getattr__(name: str) -> Any:
    if (module := _LAZY.get(name)) is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(module, __name__), name)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
