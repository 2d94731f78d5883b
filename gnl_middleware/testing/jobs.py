"""What a check tells its processes, and what they leave behind.

A process reports by a file when it ends; one that died leaves none. What steps came to is written down as they come to it,
so that it is known of the dead, too.
"""

import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypedDict, cast

from gnl_middleware.journal import Journal
from gnl_middleware.model import Decision, InterruptedCall, Unknown
from gnl_middleware.session.points import Point

Build = Callable[[], Any]
Run = Callable[[Any, str, Journal], Any]
Effects = Callable[..., Mapping[str, int] | int]
Resolve = Callable[[InterruptedCall], Decision | Unknown]

_PRINTED = 2000


@dataclass(frozen=True, slots=True)
class Subject:
    """The agent under test: see ``crash_matrix``."""

    build: Build
    run: Run
    effects: Effects | None = None
    resolve: Resolve | None = None
    protection: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def counts_all_runs(self) -> bool:
        """Whether ``effects`` takes no run id, and so counts what all runs did together."""
        if self.effects is None:
            return False
        try:
            inspect.signature(self.effects).bind("run")
        except TypeError:
            return True
        except ValueError:
            return False  # a built-in that does not say
        return False


@dataclass(frozen=True, slots=True)
class Death:
    """What a worker dies of: a step of this name comes to this point for the n-th time.

    Not its number: which of two parallel calls is number 3 differs between runs.
    """

    point: Point
    name: str
    occurrence: int = 1


@dataclass(frozen=True, slots=True)
class Event:
    """A step came to a point."""

    point: Point
    number: int
    name: str


class StepReport(TypedDict):
    """What is told of a step."""

    number: int
    key: str
    scope: str
    kind: str
    name: str
    label: str
    status: str
    blocked: str | None
    resolution: str | None


Ended = Literal["finished", "blocked", "failed", "busy"]


class Report(TypedDict):
    """What a worker leaves behind; ``before`` and ``steps`` are the run's steps before and after its work."""

    status: Ended
    reply: str
    reply_digest: str
    error: str
    lease_ends_at: float
    before: list[StepReport]
    steps: list[StepReport]


def new_report(
    status: Ended, *, reply: str = "", reply_digest: str = "", error: str = "", lease_ends_at: float = 0.0
) -> Report:
    """A report, as yet without steps."""
    return Report(
        status=status,
        reply=reply,
        reply_digest=reply_digest,
        error=error,
        lease_ends_at=lease_ends_at,
        before=[],
        steps=[],
    )


@dataclass(frozen=True, slots=True)
class Job:
    """The work of one process.

    Attributes:
        run_id: The run; the same for the worker that dies and for those that take over.
        journal: Path or URL of its journal.
        folder: Where the process reports.
        number: 1 for the first process of the run, 2 for the next.
        deaths: It dies of the last of them that comes; of none, it does not.
        late: Seconds that the journal's clock is ahead, so that a dead worker's lease has run out.
    """

    run_id: str
    journal: str
    folder: Path
    number: int = 1
    deaths: tuple[Death, ...] = ()
    late: float = 0.0

    def file(self, name: str) -> Path:
        """A file of this process."""
        return self.folder / f"{name}-{self.number}"

    def events(self) -> list[Event]:
        """What the steps came to in this process, in order."""
        path = self.file("events")
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        return [Event(*json.loads(line)) for line in lines]

    def report(self, code: int) -> Report:
        """What the process reported; that it left no report, where it died first."""
        found = self.read("report")
        if found is not None:
            return cast("Report", found)
        output = self.file("output")
        printed = output.read_text(encoding="utf-8", errors="replace")[-_PRINTED:] if output.exists() else ""
        return new_report(
            "failed", error=f"{printed}\nits process ended with code {code} and no report".lstrip()
        )

    def read(self, name: str) -> dict[str, Any] | None:
        """What the process left under a name, or None."""
        path = self.file(name)
        return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None

    def write(self, name: str, content: Mapping[str, Any]) -> None:
        """Leave a file of this process, whole: it appears under its name once it is written."""
        draft = self.file(f"{name}.draft")
        draft.write_text(json.dumps(content), encoding="utf-8")
        draft.rename(self.file(name))
