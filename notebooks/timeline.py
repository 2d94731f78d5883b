"""Timelines of attempts, for the notebooks: a row for each attempt, a box for each step that it came to."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import matplotlib.pyplot as plt

from gnl_middleware import Journal

COLOURS = {
    "ran": "#4c78a8",
    "read back": "#72b56c",
    "cut off": "#d1495b",
    "blocked": "#f2a541",
    "settled": "#8e6bbf",
}
"""``cut off``: it was running when the worker died; ``settled``: nobody ran it again, somebody knew how it had ended."""


class Timeline:
    """Watches a run through its journal, attempt by attempt.

    Args:
        journal: The journal.
        run_id: The run.
    """

    def __init__(self, journal: Journal, run_id: str) -> None:
        self._journal, self._run_id = journal, run_id
        self.attempts: list[tuple[str, list[tuple[str, str]]]] = []

    @contextmanager
    def attempt(self, title: str) -> Generator[None]:
        """Watch one attempt, however it ends."""
        before = self._steps()
        try:
            yield
        finally:
            after = self._steps()
            boxes = [(step.name, _what(before.get(key), step)) for key, step in after.items()]
            self.attempts.append((title, boxes))

    def draw(self) -> None:
        """Draw the attempts so far, the first one on top."""
        rows, columns = len(self.attempts), max(len(boxes) for _, boxes in self.attempts)
        figure, axes = plt.subplots(figsize=(1.5 * columns + 1.5, 0.5 * rows + 0.7), dpi=80)
        for row, (_, boxes) in enumerate(self.attempts):
            for column, (name, what) in enumerate(boxes):
                axes.barh(row, 0.92, left=column, color=COLOURS[what])
                axes.text(column + 0.46, row, name, ha="center", va="center", color="white", fontsize=8)
        axes.set(yticks=range(rows), yticklabels=[title for title, _ in self.attempts], xticks=[])
        axes.invert_yaxis()
        for spine in axes.spines.values():
            spine.set_visible(False)
        seen = {what for _, boxes in self.attempts for _, what in boxes}
        handles = [plt.Rectangle((0, 0), 1, 1, color=COLOURS[what]) for what in COLOURS if what in seen]
        labels = [what for what in COLOURS if what in seen]
        figure.legend(handles, labels, ncols=len(labels), loc="lower center", frameon=False, fontsize=8)
        figure.tight_layout(rect=(0, 0.14, 1, 1))
        plt.show()

    def _steps(self) -> dict[str, Any]:
        return {step.key: step for step in self._journal.steps(self._run_id)}


def _what(before: Any, after: Any) -> str:
    """What an attempt did with a step, from how the journal had it before and has it after."""
    if after.blocked:
        return "blocked"
    if before is not None and before.attempts == after.attempts:
        return "read back" if before.status == after.status else "settled"
    return "cut off" if after.status == "started" else "ran"


def draw_matrix(matrix: Any) -> None:
    """Draw a crash matrix: a row for each crash point of a step, a column for each step."""
    points = list(dict.fromkeys(cell.point for cell in matrix.cells))
    steps = list(dict.fromkeys(str(cell.step) for cell in matrix.cells))
    colours = {"finished": COLOURS["read back"], "blocked": COLOURS["blocked"]}
    figure, axes = plt.subplots(figsize=(1.3 * len(steps) + 1.5, 0.45 * len(points) + 0.7), dpi=80)
    for cell in matrix.cells:
        row, column = points.index(cell.point), steps.index(str(cell.step))
        axes.barh(row, 0.92, left=column, color=colours.get(cell.ending, COLOURS["cut off"]))
        axes.text(column + 0.46, row, cell.ending, ha="center", va="center", color="white", fontsize=8)
    axes.set(yticks=range(len(points)), yticklabels=points, title="the worker died here, and the job …")
    axes.set_xticks([column + 0.46 for column in range(len(steps))], steps, fontsize=8)
    axes.invert_yaxis()
    figure.tight_layout()
    plt.show()
