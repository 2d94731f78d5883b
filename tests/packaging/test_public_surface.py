"""The names that users may import from `gnl_middleware`: a promise, so that one cannot come or go unnoticed."""

import subprocess
import sys

import gnl_middleware

JOURNAL = {"Encryption", "Integrity", "Journal", "Run", "RunDifference", "RunRecord", "Step"}
LABELS = {"Policy", "keyed", "never", "safe"}
DECISIONS = {"Done", "Failed", "InterruptedCall", "NotDone", "Unknown"}
PLAIN_FUNCTIONS = {"current_run", "current_step", "journaled", "register"}
ERRORS = {
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
}


def test_public_names_are_the_promised_ones():
    """The public names are those of the design, no more and no fewer, in sorted order."""
    promised = JOURNAL | LABELS | DECISIONS | PLAIN_FUNCTIONS | ERRORS

    assert list(gnl_middleware.__all__) == sorted(promised)


def test_every_public_name_can_be_used():
    """Each public name exists, a name loaded on demand included."""
    missing = [name for name in gnl_middleware.__all__ if getattr(gnl_middleware, name, None) is None]

    assert missing == []


def test_star_import_gives_the_public_names():
    """`from gnl_middleware import *` works in a fresh interpreter, where nothing was loaded before."""
    script = (
        "from gnl_middleware import *\nprint(Journal.__name__, never, SideEffectRetryBlockedError.__name__)"
    )

    finished = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)

    assert finished.returncode == 0, finished.stderr
    assert finished.stdout.startswith("Journal ")


def test_errors_are_named_and_caught_as_one_family():
    """Every public error ends in `Error` and is a `GnlError`, so one except clause catches them all."""
    errors = {name for name in gnl_middleware.__all__ if name.endswith("Error")}

    assert errors == ERRORS
    assert all(issubclass(getattr(gnl_middleware, name), gnl_middleware.GnlError) for name in errors)
