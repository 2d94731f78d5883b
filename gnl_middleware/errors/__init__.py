"""Every exception of the library, each with what happened, why it matters and what to do next.

GnlError
├── RunBusyError                  another worker holds the run
├── LeaseLostError                this worker no longer holds the run
├── SideEffectRetryBlockedError   a side effect may have happened; a person decides
├── ForkedEffectError             a side effect was about to run in a fork that performs none
├── DivergenceError               a replayed call no longer matches its record
├── ReplayMissError               offline, and there is no record of this call
├── RecordedError                 the replay of an error that a tool raised
├── RunInputMismatchError         the run id was started with another input
├── EffectCycleError              a once_per call would wait for itself
├── RetryLimitError               a step used up its attempts
├── UnlabelledToolError           a tool has no replay label
├── UnjournaledCallError          a call would run past the journal
├── UnserializableValueError      a value cannot be journalled without loss
├── NoActiveRunError              a journalled call outside any run
├── RunErasedError                the run id was erased
├── RunNotFoundError              the journal holds no such run
├── ForkRefusedError              a run cannot be forked like this
├── ResolutionRefusedError        a person's decision cannot be taken
└── JournalError
    ├── JournalUnavailableError   the journal cannot be read or written now
    ├── JournalCorruptError       a row is not what was written
    │   └── UnreadableTypeError   a value is of a class that is gone, or that changed
    ├── JournalKeyError           a key is missing, or is another one
    └── JournalVersionError       the journal was written by a newer version
"""

from .base import GnlError
from .calls import (
    DivergenceError,
    EffectCycleError,
    ForkedEffectError,
    RecordedError,
    ReplayMissError,
    RetryLimitError,
    SideEffectRetryBlockedError,
    UnjournaledCallError,
    UnlabelledToolError,
    UnserializableValueError,
)
from .journals import (
    JournalCorruptError,
    JournalError,
    JournalKeyError,
    JournalUnavailableError,
    JournalVersionError,
    UnreadableTypeError,
)
from .runs import (
    ForkRefusedError,
    LeaseLostError,
    NoActiveRunError,
    ResolutionRefusedError,
    RunBusyError,
    RunErasedError,
    RunInputMismatchError,
    RunNotFoundError,
)

__all__ = [
    "DivergenceError",
    "EffectCycleError",
    "ForkRefusedError",
    "ForkedEffectError",
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
]
