"""Pictures of what was measured, as SVG that can be read on light and on dark pages."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("svg")
import matplotlib.pyplot as plt

from .results import Figure, Results

_INK = "#7f848c"
"""Of text and lines: of about the same contrast to white as to the dark pages' ground."""
_OURS, _FLOOR = "#2f9e77", "#8a8f98"
_OTHERS = ("#4c78a8", "#d1495b", "#e08e2b", "#8e6bbf", "#5aa9c8", "#b0567c", "#a09030", "#c06a50")
_INKED = ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color", "grid.color")
_STYLE: dict[str, Any] = dict.fromkeys(_INKED, _INK) | {
    "svg.fonttype": "none",
    "svg.hashsalt": "gnl",
    "font.family": "sans-serif",
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "lines.linewidth": 1.8,
    "grid.alpha": 0.25,
    "grid.linewidth": 0.6,
}


def draw(results: Results, folder: Path) -> list[Path]:
    """Draw all that was measured enough of; gives the files."""
    folder.mkdir(parents=True, exist_ok=True)
    pictures: dict[str, Callable[[Results], Any]] = {
        "step": _step,
        "at-once": _at_once,
        "agents": _agents,
        "weight": _weight,
        "resume": _resume,
    }
    written = []
    with mpl.rc_context(_STYLE):
        for name, picture in pictures.items():
            path = folder / f"{name}.svg"
            figure = picture(results)
            figure.savefig(
                path, transparent=True, bbox_inches="tight", metadata={"Date": None, "Creator": None}
            )
            plt.close(figure)
            written.append(path)
    return written


def _step(results: Results) -> Any:
    """Bars of the time per step with one run, opening and leaving included."""
    first = min((figure.payload for figure in results.all("whole")), default=0)
    figures = [
        each for each in results.all("whole", runs=1, payload=first) if not _is_of_framework(each.subject)
    ]
    figures.sort(key=lambda each: (not each.subject.startswith("by hand"), "Postgre" in each.subject))
    figure, axes = plt.subplots(figsize=(7, 0.42 * len(figures) + 1))
    for row, each in enumerate(figures):
        spread = [[each.value.median - each.value.low], [each.value.high - each.value.median]]
        axes.barh(row, each.value.median, color=_colour(each.subject, 0), height=0.62)
        axes.errorbar(each.value.median, row, xerr=spread, color=_INK, capsize=3, linewidth=1)
    axes.set(yticks=range(len(figures)), yticklabels=[each.subject for each in figures])
    axes.set_xlabel("microseconds per step, one run, opening and leaving included")
    axes.invert_yaxis()
    axes.grid(axis="x")
    return figure


def _at_once(results: Results) -> Any:
    names = [each.subject for each in results.all("step", runs=max(_runs(results), default=1))]
    names = [name for name in names if not _is_of_framework(name)]
    first = min((figure.payload for figure in results.all("step")), default=0)
    lines = {
        name: [each for each in results.all("step", payload=first) if each.subject == name] for name in names
    }
    return _lines(lines, lambda each: each.runs, "runs at once", "microseconds per step")


def _agents(results: Results) -> Any:
    names = list(
        dict.fromkeys(each.subject for each in results.all("whole") if "create_agent" in each.subject)
    )
    lines = {name: [each for each in results.all("whole", runs=1) if each.subject == name] for name in names}
    return _lines(lines, lambda each: each.steps, "steps of the run", "microseconds per step")


def _weight(results: Results) -> Any:
    first = min((figure.payload for figure in results.all("bytes")), default=0)
    names = list(dict.fromkeys(each.subject for each in results.all("bytes")))
    lines = {
        name: [each for each in results.all("bytes", payload=first) if each.subject == name] for name in names
    }
    return _lines(lines, lambda each: each.steps, "steps of the run", "bytes per step")


def _resume(results: Results) -> Any:
    names = list(dict.fromkeys(each.subject for each in results.all("resume")))
    lines = {name: [each for each in results.all("resume") if each.subject == name] for name in names}
    return _lines(lines, lambda each: each.steps, "steps of the run", "milliseconds until it is back")


def _lines(lines: dict[str, list[Figure]], place: Callable[[Figure], int], along: str, up: str) -> Any:
    """A line per subject over both scales in powers."""
    figure, axes = plt.subplots(figsize=(7, 4))
    others = 0
    for name, found in lines.items():
        is_other = _colour(name, others) in _OTHERS
        at, values = [place(each) for each in found], [each.value.median for each in found]
        colour, dashes = _colour(name, others), _dashes(name)
        axes.plot(at, values, label=name, color=colour, linestyle=dashes, marker=_marker(name), markersize=5)
        others += is_other
    axes.set(xscale="log", yscale="log", xlabel=along, ylabel=up)
    _label_where_measured(axes, [place(each) for found in lines.values() for each in found])
    axes.grid(axis="y")
    axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1), fontsize=9)
    return figure


def _label_where_measured(axes: Any, places: Sequence[int]) -> None:
    at = sorted(set(places))
    axes.set_xticks(at, labels=[f"{place:,}" for place in at])
    axes.minorticks_off()


def _runs(results: Results) -> list[int]:
    return [figure.runs for figure in results.all("step") if not _is_of_framework(figure.subject)]


def _is_of_framework(name: str) -> bool:
    return any(framework in name for framework in ("create_agent", "LangGraph", "Agents SDK"))


def _dashes(name: str) -> str:
    return ":" if "handed" in name else "--" if "Postgre" in name else "-"


def _marker(name: str) -> str:
    marks = {"create_agent": "s", "LangGraph": "^", "Agents SDK": "D"}
    return next((mark for framework, mark in marks.items() if framework in name), "o")


def _colour(name: str, others: int) -> str:
    if name.startswith("gnl"):
        return _OURS
    return (
        _FLOOR
        if name.startswith("by hand") or name.endswith("nothing kept")
        else _OTHERS[others % len(_OTHERS)]
    )
