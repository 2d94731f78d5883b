"""What a crash matrix measures: the clean run, and a cell for each crash point; plain, frozen values."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from gnl_middleware.session.points import Point

Ending = Literal["finished", "blocked", "failed", "missed"]
"""``finished``: the restarted job ended; ``blocked``: it waits for a person; ``failed``: it cannot be finished;
``missed``: no worker came to the crash point."""


@dataclass(frozen=True, slots=True)
class MatrixStep:
    """A step of the clean run.

    Attributes:
        number: Its place in the run, from 1.
        kind: ``model``, ``tool`` or ``value``.
        name: The model, tool or function.
        label: The replay label of a tool: ``safe``, ``keyed`` or ``never``.
        scope: Where it happened: empty for the run itself, else the enclosing step or named branch.
    """

    number: int
    kind: str
    name: str
    label: str = ""
    scope: str = ""

    @property
    def title(self) -> str:
        """Tools by their name; a model is a model, whatever it is called."""
        return "model" if self.kind == "model" else self.name

    def __str__(self) -> str:
        """As people read it: ``4 send_email``, ``1 model``."""
        return f"{self.number} {self.title}"


@dataclass(frozen=True, slots=True)
class Settled:
    """How a side effect that a death had interrupted was settled.

    Attributes:
        tool: The tool.
        by: ``recover``, ``person`` (the ``resolve=`` of the matrix) or ``model`` (it was told).
        answer: ``done``, ``not_done``, ``failed`` or ``told``.
    """

    tool: str
    by: Literal["recover", "person", "model"]
    answer: Literal["done", "not_done", "failed", "told"]


@dataclass(frozen=True, slots=True)
class Blocked:
    """A side effect that waits for a person.

    Attributes:
        tool: The tool.
        reason: Why nothing has settled it.
    """

    tool: str
    reason: str


@dataclass(frozen=True, slots=True)
class Clean:
    """The run that nobody disturbed: the standard for all others.

    Attributes:
        run_id: Its name in its journal.
        reply: The reply, as text, shortened.
        reply_digest: Digest of the whole reply.
        model_calls: How often a model was asked.
        effects: How often the effect of each tool happened.
        steps: Its steps, in the order in which they began.
        crash_points: How many crash points are tried.
    """

    run_id: str
    reply: str
    reply_digest: str
    model_calls: int
    effects: Mapping[str, int]
    steps: tuple[MatrixStep, ...]
    crash_points: int


@dataclass(frozen=True, slots=True)
class Cell:
    """One worker died at one point of one step, and others took over with the same call.

    Attributes:
        step: The step.
        point: The point at which the worker died.
        attempt: Which try of the step it was; 1 unless the clean run tried the step more than once.
        run_id: The run's name in its journal.
        ending: How the job ended.
        model_calls_repeated: Model calls that had been answered and were made again.
        effects: How often the effect of each tool happened, all workers together.
        reply_equal: Whether the reply is the clean run's; None where there is no reply.
        blocked: The side effects that wait for a person.
        settled: The side effects that were settled, and by whom.
        restarts: Workers that were started after the one that died.
        error: Why the job cannot be finished, or what kept a worker from dying here.
    """

    step: MatrixStep
    point: Point
    attempt: int
    run_id: str
    ending: Ending
    model_calls_repeated: int = 0
    effects: Mapping[str, int] | None = None
    reply_equal: bool | None = None
    blocked: tuple[Blocked, ...] = ()
    settled: tuple[Settled, ...] = ()
    restarts: int = 0
    error: str | None = None

    def __str__(self) -> str:
        """The crash point, as ``GNL_CRASH_AT`` takes it: ``4:after_body``."""
        return f"{self.step.number}:{self.point}"

    @property
    def recover_used(self) -> bool:
        """Whether a tool's ``recover`` settled what the death had interrupted."""
        return any(settled.by == "recover" for settled in self.settled)

    @property
    def took_another_course(self) -> bool:
        """Whether the agent learnt something that it does not learn in the clean run, so that it may answer otherwise."""
        return any(settled.answer in ("told", "failed") for settled in self.settled)


def clean_of(stored: Mapping[str, Any]) -> Clean:
    """A clean run from its ``asdict``."""
    built: dict[str, Any] = {"steps": tuple(MatrixStep(**step) for step in stored["steps"])}
    return Clean(**{**stored, **built})


def cell_of(stored: Mapping[str, Any]) -> Cell:
    """A cell from its ``asdict``."""
    built: dict[str, Any] = {
        "step": MatrixStep(**stored["step"]),
        "blocked": tuple(Blocked(**item) for item in stored["blocked"]),
        "settled": tuple(Settled(**item) for item in stored["settled"]),
    }
    return Cell(**{**stored, **built})
