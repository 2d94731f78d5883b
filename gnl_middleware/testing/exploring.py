"""``crash_matrix``: kill an agent's worker at every point of every step, and see what the restart makes of it."""

import os
import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict
from typing import Any, cast

from gnl_middleware.journal import Journal
from gnl_middleware.session.points import Point

from .cells import Cell, Clean, cell_of, clean_of
from .elsewhere import elsewhere
from .jobs import Build, Effects, Resolve, Run, Subject
from .matrix import CrashMatrix
from .processes import forks_here
from .spots import ALL_POINTS
from .sweep import Settings, Sweep


def crash_matrix(
    build: Build,
    run: Run,
    effects: Effects | None,
    *,
    journal: str | os.PathLike[str] | None = None,
    points: Collection[Point] | None = None,
    steps: Collection[str | int] | None = None,
    processes: int = 2,
    timeout: float = 60.0,
    resolve: Resolve | None = None,
    fork: bool | None = None,
    protection: Mapping[str, Any] | None = None,
) -> CrashMatrix:
    """Kill an agent's worker at every point of every step, restart it with the same call, and count what happened.

    The steps are those of a clean run. Then a worker process dies at each point of each of them, and others take over until
    the job ends or waits for a person. The functions are called in the workers, so the agent is built anew each time, and
    nothing that one run does may reach another one: each has a run id and, unless ``journal`` is given, a journal of its own.

    Args:
        build: Builds the agent: ``build()``.
        run: Runs the job: ``run(agent, run_id, journal)``. Returns the reply: plain data, or messages. May be a coroutine
            function.
        effects: Counts what the tools did to the world, by tool name: ``effects(run_id)`` gives ``{"send_email": 1}``, or one
            number. What cannot tell runs apart is ``effects()``, and the workers then run one at a time. It is called in a
            process of its own: what it reads must outlive a worker. None for an agent without effects.
        journal: A path or URL to keep all runs in; None for a journal for each, thrown away.
        points: Only these points.
        steps: Only the steps of these names or numbers; ``model`` is every model step.
        processes: How many workers run at once.
        timeout: Seconds after which a worker counts as hung.
        resolve: Decides blocked calls as a person would: gets an ``InterruptedCall``, answers ``Done``, ``NotDone``, ``Failed``
            or ``Unknown()``. Without it a blocked job stays blocked, which is safe.
        fork: Fork the workers from this process. None: where that is safe, which threads forbid; else they are started as
            new interpreters, which need functions of a module. True: although threads run here, as in a notebook.
        protection: How the workers' journals are protected: ``integrity_key``, ``encryption`` and ``redact`` of ``Journal``.

    Raises:
        CrashToolkitError: The check says nothing: the clean run does not end, ``effects`` counts nothing, or it cannot run.
        ValueError: An option means nothing.

    Example:
        >>> log = EffectLog(tmp_path / "effects.jsonl")     # doctest: +SKIP
        >>> def build():     # doctest: +SKIP
        ...     return create_agent(FakeModel(), [send_email], middleware=[JournalMiddleware(never=[send_email])])
        >>> def run(agent, run_id, journal):     # doctest: +SKIP
        ...     return run_durable(agent, QUESTION, run_id=run_id, journal=journal)["messages"][-1].text
        >>> crash_matrix(build, run, log).assert_safe()     # doctest: +SKIP
    """
    settings = Settings(
        journal=None if journal is None else os.fspath(journal),
        points=points,
        steps=steps,
        processes=processes,
        timeout=timeout,
    )
    return assembled(explore(Subject(build, run, effects, resolve, protection or {}), settings, fork=fork))


def assembled(found: Iterator[Clean | Cell]) -> CrashMatrix:
    """The matrix of what ``explore`` gives, the cells in order."""
    began = time.monotonic()
    clean, cells = cast("Clean", next(found)), cast("list[Cell]", list(found))
    cells.sort(key=lambda cell: (cell.step.number, cell.attempt, ALL_POINTS.index(cell.point)))
    return CrashMatrix(clean, tuple(cells), time.monotonic() - began)


def explore(subject: Subject, settings: Settings, *, fork: bool | None = None) -> Iterator[Clean | Cell]:
    """The clean run, then each cell as it ends. Arguments and errors as for ``crash_matrix``."""
    _check(settings)
    if forks_here(fork):
        return Sweep(subject, settings, fork=True).results()
    told = elsewhere(_swept, subject, settings)
    return (clean_of(found) if "crash_points" in found else cell_of(found) for found in told)


def _check(settings: Settings) -> None:
    if settings.processes < 1 or settings.timeout <= 0:
        raise ValueError(
            f"processes must be at least 1 and timeout positive, not {settings.processes} and {settings.timeout}"
        )
    if settings.journal is not None:
        Journal(settings.journal).close()
    if unknown := set(settings.points or ()) - set(ALL_POINTS):
        raise ValueError(f"unknown points {sorted(unknown)}: choose among {', '.join(ALL_POINTS)}")


def _swept(subject: Subject, settings: Settings) -> Iterator[dict[str, Any]]:
    return (asdict(found) for found in Sweep(subject, settings, fork=forks_here(None)).results())
