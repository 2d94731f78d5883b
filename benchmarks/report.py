"""Tables of what was measured, in Markdown, and the marked part of a page that they are written into."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from .goals import GOALS
from .measure import Spread
from .results import Figure, Results

BEGIN = "<!-- Written by `python -m benchmarks`: what stands from here to the end mark is replaced. -->"
_FLEET_RUNS, _FLEET_STEPS = 10_000, 50
PICTURES = "images/performance"
"""Where the page finds its pictures."""
END = "<!-- End of what is written by `python -m benchmarks`. -->"


def written_into(page: str, tables: str) -> str:
    """The page, with the tables between its marks.

    Raises:
        ValueError: It has no marks.
    """
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError("the page has no marks to write the tables between")
    return f"{before}{BEGIN}\n\n{tables}\n{END}{after}"


def rewrite(page: Path, results: Results) -> None:
    """Write the tables into the page."""
    page.write_text(
        written_into(page.read_text(encoding="utf-8"), tables(results, PICTURES)), encoding="utf-8"
    )


def tables(results: Results, pictures: str = "") -> str:
    """All the tables, with the pictures that are in that folder beside the page."""
    parts = [_machine(results), _goals(results)]
    sections: Sequence[tuple[str, Callable[[Results], str], tuple[str, ...]]] = (
        ("A step", _steps, ("step", "at-once")),
        ("A step of an agent", _agents, ("agents",)),
        ("Weight", _weight, ("weight",)),
        ("Coming back", _resuming, ("resume",)),
        ("Starting", _starting, ()),
        ("Very many, very long", _scale, ()),
    )
    for title, table, drawn in sections:
        if text := table(results):
            shown = [f"![{title}: {name}]({pictures}/{name}.svg)\n" for name in drawn if pictures]
            parts.append("\n".join([f"## {title}\n", *shown, text]))
    return "\n".join(parts)


def _machine(results: Results) -> str:
    told = dict(results.machine)
    versions = told.pop("packages", {})
    lines = [f"| {name} | {value} |" for name, value in told.items() if value is not None]
    lines += [f"| {name} | {value} |" for name, value in versions.items()]
    lines += [f"| not measured: {name} | {why} |" for name, why in results.missing.items()]
    return "\n".join(
        [f"Measured by the campaign `{results.campaign}` on:\n", "| | |", "|---|---|", *lines, ""]
    )


def _goals(results: Results) -> str:
    rows = []
    for goal in GOALS:
        number = goal.measure(results)
        if number is not None:
            rows.append((goal.what, goal.wanted, _plain(number), "yes" if goal.is_reached(number) else "no"))
    return "## Goals\n\n" + _table(("what", "goal", "measured", "reached"), rows)


def _steps(results: Results) -> str:
    subjects = [figure for figure in results.all("step") if not _is_agent(figure)]
    rows = []
    for figure in subjects:
        place = {"runs": figure.runs, "payload": figure.payload, "steps": figure.steps}
        whole = results.find("whole", figure.subject, **place)
        processor = results.find("processor", figure.subject, **place)
        rows.append(
            (
                *(figure.subject, str(figure.runs), f"{figure.payload // 1024} kB"),
                *(_spread(figure.value), _spread(figure.ratio), _spread(whole and whole.value)),
                *(_spread(processor and processor.value), _spread(processor and processor.ratio)),
            )
        )
    columns = ("who", "runs at once", "results", "us per step", "to the floor", "with opening and leaving")
    return _table((*columns, "us of the processor", "to the floor's"), rows)


def _agents(results: Results) -> str:
    rows = []
    for figure in results.all("whole"):
        if _is_agent(figure):
            place = {"runs": figure.runs, "payload": figure.payload, "steps": figure.steps}
            processor = results.find("processor", figure.subject, **place)
            rows.append(
                (
                    *(figure.subject, str(figure.runs), str(figure.steps), _spread(figure.value)),
                    *(_spread(figure.ratio), _spread(processor and processor.value)),
                )
            )
    columns = ("who", "runs at once", "steps", "us per step", "to the agent as it is", "us of the processor")
    return _table(columns, rows)


def _weight(results: Results) -> str:
    rows = [
        (figure.subject, str(figure.steps), f"{figure.payload // 1024} kB", f"{figure.value.median:,.0f}")
        for figure in results.all("bytes")
    ]
    counted = [
        (figure.subject, _plain(figure.value.median), _plain(commits.value.median))
        for figure in results.all("syncs")
        if (commits := results.find("commits", figure.subject))
    ]
    weights = _table(("who", "steps of the run", "results", "bytes per step"), rows)
    return weights + _fleet(results) + "\n" + _table(("who", "syncs per step", "commits per step"), counted)


def _fleet(results: Results) -> str:
    """What the measured bytes come to where many agents work."""
    found = [figure for figure in results.all("bytes") if figure.subject == "gnl, SQLite"]
    if not found:
        return ""
    longest = max(found, key=lambda figure: (figure.steps, -figure.payload))
    day = longest.value.median * _FLEET_RUNS * _FLEET_STEPS / 1e9
    return f"\n{_FLEET_RUNS:,} runs a day of {_FLEET_STEPS} such steps each add {_plain(day)} GB a day.\n"


def _resuming(results: Results) -> str:
    told = {"resume": "back", "load": "open", "serve": "read back"}
    rows = [
        (
            figure.subject,
            f"{figure.steps:,}",
            told[what],
            _spread(figure.value),
            _spread(figure.ratio),
            figure.to or "",
        )
        for what in told
        for figure in results.all(what)
    ]
    return _table(("who", "steps", "what", "ms", "ratio", "to"), rows)


def _starting(results: Results) -> str:
    rows = [
        (figure.subject, _spread(figure.value), _spread(figure.ratio), figure.to or "")
        for what in ("import", "command")
        for figure in results.all(what)
    ]
    return _table(("what", "ms", "ratio", "to"), rows)


def _scale(results: Results) -> str:
    rows = []
    for figure in results.figures:
        if figure.what == "listing":
            what = f"listing a journal of {figure.steps:,} runs: {figure.subject}"
        elif figure.what.startswith("at once"):
            what = f"{figure.runs:,} runs {figure.what.replace('memory', 'memory per run')}"
        elif figure.what.startswith("long"):
            what = f"a run of {figure.steps:,} steps: {figure.what.partition(': ')[2]}"
        elif figure.what == "memory":
            what = f"memory of an open run of {figure.steps:,} steps"
        else:
            continue
        rows.append((what, _spread(figure.value), figure.unit, _spread(figure.ratio)))
    return _table(("what", "measured", "unit", "ratio to reading the rows by hand"), rows)


def _is_agent(figure: Figure) -> bool:
    return any(framework in figure.subject for framework in ("create_agent", "LangGraph", "Agents SDK"))


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(row)} |" for row in rows]
    if not lines:
        return ""
    return "\n".join([f"| {' | '.join(columns)} |", "|" + "---|" * len(columns), *lines, ""])


def _spread(spread: Spread | None) -> str:
    """The median, and the quartiles where there were enough samples for some."""
    if spread is None:
        return ""
    if spread.samples == 1:
        return _plain(spread.median)
    return f"{_plain(spread.median)} ({_plain(spread.low)} to {_plain(spread.high)})"


def _plain(number: float) -> str:
    """Three digits that count."""
    return f"{number:,.0f}" if abs(number) >= 100 else f"{number:.3g}"
