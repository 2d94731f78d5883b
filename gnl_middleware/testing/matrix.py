"""The result of a crash matrix: judged, asserted, and shown."""

import json
from dataclasses import asdict, dataclass
from typing import Any

from .cells import Cell, Clean
from .page import page
from .problems import Problem, message, problems_of

VERSION = 1
"""Of the JSON shape; a change that could break a reader raises it."""


@dataclass(frozen=True, slots=True)
class CrashMatrix:
    """What became of an agent whose worker died at every point of every step.

    Attributes:
        clean: The run that nobody disturbed.
        cells: One for each crash point, in order.
        seconds: How long all of it took.

    Example:
        >>> matrix = crash_matrix(build, run, effects)     # doctest: +SKIP
        >>> matrix.assert_safe()     # doctest: +SKIP
        >>> Path("matrix.html").write_text(matrix.to_html())     # doctest: +SKIP
    """

    clean: Clean
    cells: tuple[Cell, ...]
    seconds: float

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Every promise that was broken, in the order of the cells."""
        return tuple(problem for cell in self.cells for problem in problems_of(self.clean, cell))

    @property
    def safe(self) -> bool:
        """Whether no effect was doubled or lost, nothing was asked twice, and every job ended or waits for a person."""
        return not self.problems

    def assert_safe(self) -> None:
        """Do nothing if the agent is safe.

        Raises:
            AssertionError: It is not: the message names the tool, the cell, the counts and the cure.

        Example:
            >>> crash_matrix(build, run, effects).assert_safe()     # doctest: +SKIP
        """
        if found := self.problems:
            raise AssertionError(message(found, crash_points=len(self.cells)))

    def to_json(self) -> str:
        """The matrix as one JSON object: ``{"version", "safe", "seconds", "clean", "cells"}``.

        ``clean`` is ``{"run_id", "reply", "reply_digest", "model_calls", "effects", "steps", "crash_points"}``, a
        step of it ``{"number", "kind", "name", "label", "scope"}``. A cell is ``{"step", "point", "attempt", "run_id", "ending", "safe",
        "model_calls_repeated", "effects", "reply_equal", "recover_used", "blocked", "settled", "restarts", "error",
        "problems"}`` with ``step`` as above, ``blocked`` a list of ``{"tool", "reason"}``, ``settled`` a list of ``{"tool",
        "by", "answer"}``, ``problems`` a list of ``{"kind", "tool", "found", "expected", "text", "cure"}``, and the other
        values as in the attributes of ``Clean`` and ``Cell``. Keys may be added; ``version`` grows if one changes its meaning.

        Example:
            >>> Path("matrix.json").write_text(matrix.to_json())     # doctest: +SKIP
        """
        return json.dumps(
            {
                "version": VERSION,
                "safe": self.safe,
                "seconds": round(self.seconds, 3),
                "clean": asdict(self.clean),
                "cells": [self._cell_object(cell) for cell in self.cells],
            }
        )

    def to_html(self) -> str:
        """The matrix as one page that needs nothing else: no script, no font, no picture.

        Example:
            >>> Path("matrix.html").write_text(matrix.to_html())     # doctest: +SKIP
        """
        return page(self.clean, self.cells, self.seconds)

    def _cell_object(self, cell: Cell) -> dict[str, Any]:
        found = problems_of(self.clean, cell)
        told = [
            {name: getattr(problem, name) for name in ("kind", "tool", "found", "expected", "text", "cure")}
            for problem in found
        ]
        return asdict(cell) | {"safe": not found, "recover_used": cell.recover_used, "problems": told}
