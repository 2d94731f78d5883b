"""Tools for tests of agents: crash points, the crash matrix, replays without a model, checks of changed code, and time turned by hand."""

from .cells import Blocked, Cell, Clean, MatrixStep, Settled
from .clock import ManualClock
from .crash_points import (
    CRASH_EXIT_CODE,
    CRASH_VARIABLE,
    MID_STREAM,
    POINTS,
    CrashPoint,
    install_crash_points,
    observe_points,
)
from .dying import crash_at
from .effects import EffectLog
from .errors import CrashToolkitError
from .exploring import crash_matrix
from .matrix import CrashMatrix
from .note import InterruptedNote, NotedRun, interrupted_note
from .problems import Problem
from .switched_off import model_off
from .verifying import Unasked, Verification, verify

__all__ = [
    "CRASH_EXIT_CODE",
    "CRASH_VARIABLE",
    "MID_STREAM",
    "POINTS",
    "Blocked",
    "Cell",
    "Clean",
    "CrashMatrix",
    "CrashPoint",
    "CrashToolkitError",
    "EffectLog",
    "InterruptedNote",
    "ManualClock",
    "MatrixStep",
    "NotedRun",
    "Problem",
    "Settled",
    "Unasked",
    "Verification",
    "crash_at",
    "crash_matrix",
    "install_crash_points",
    "interrupted_note",
    "model_off",
    "observe_points",
    "verify",
]
