"""Compare what two ways of resuming one run leave behind in its journal."""

import dataclasses
import shutil
from pathlib import Path
from typing import Any

_NEW_EACH_TIME = ("token", "fence", "started_at", "finished_at", "holder", "claimed_until")
_AS_PARALLEL_CALLS_COME = ("number", "begun", "ended")


def row_of(row: Any) -> dict[str, Any]:
    """A row of the record, without what is another in each attempt."""
    left_out = (*_NEW_EACH_TIME, *_AS_PARALLEL_CALLS_COME)
    names = [each.name for each in dataclasses.fields(row)]
    return {name: getattr(row, name) for name in names if name not in left_out}


def counted(attempt: Any) -> tuple[int, int, int]:
    """The steps that an attempt ran and read back, and the tokens that it did not spend."""
    return attempt.steps_ran, attempt.steps_read_back, attempt.tokens_not_spent


def copied(path: Path, name: str) -> Path:
    """A copy of a closed journal."""
    copy = path.with_name(name)
    shutil.copy(path, copy)
    return copy
