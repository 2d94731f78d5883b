"""The matrix as one page that needs nothing else: no script, no font, no picture; every text in it is escaped."""

from collections.abc import Iterable, Iterator, Sequence
from html import escape

from gnl_middleware.identity import graph_scope

from .cells import Cell, Clean, MatrixStep
from .problems import counted, grouped, judgement, listed, problems_of, undisturbed, verdict
from .spots import ALL_POINTS

_STYLE = """
:root { color-scheme: light dark; --text: #1d2329; --soft: #59636e; --page: #ffffff; --line: #d5dae0;
  --resumed: #e2f3e5; --settled: #dceefb; --blocked: #fdf0cd; --broken: #f9c9c5; --broken-edge: #b3261e; }
@media (prefers-color-scheme: dark) {
  :root { --text: #e4e8ec; --soft: #9aa5b1; --page: #14181c; --line: #39424c;
    --resumed: #17351f; --settled: #12344d; --blocked: #47370a; --broken: #641d19; --broken-edge: #ff8a80; } }
body { margin: 2rem auto; max-width: 76rem; padding: 0 1rem; background: var(--page); color: var(--text);
  font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.5rem; margin-bottom: 0.2rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
.soft { color: var(--soft); } .scroll { overflow-x: auto; }
table { border-collapse: separate; border-spacing: 3px; } th { text-align: left; font-weight: 600; padding: 0.3rem 0.5rem; }
thead th { color: var(--soft); font-size: 0.85rem; white-space: nowrap; } tbody th { white-space: nowrap; }
td { padding: 0.35rem 0.6rem; border-radius: 4px; vertical-align: top; min-width: 5.5rem; }
td small { display: block; color: var(--soft); }
.resumed { background: var(--resumed); } .recovered, .decided, .told { background: var(--settled); }
.blocked { background: var(--blocked); }
.broken { background: var(--broken); outline: 2px solid var(--broken-edge); outline-offset: -2px; font-weight: 600; }
.broken small { color: inherit; font-weight: 400; }
.problem { border-left: 4px solid var(--broken-edge); padding: 0.1rem 0.9rem; margin: 0.9rem 0; }
.problem p { margin: 0.3rem 0; } pre { white-space: pre-wrap; overflow-wrap: anywhere; font-size: 0.85rem; }
.legend { list-style: none; padding: 0; margin: 1.2rem 0; display: flex; flex-wrap: wrap; gap: 0.5rem 1.2rem; }
.legend b { font-weight: 400; padding: 0.1rem 0.5rem; border-radius: 4px; }
details { margin-top: 1.5rem; } details td, details th { border-bottom: 1px solid var(--line); border-radius: 0; min-width: 0; }
"""

_LEGEND = (
    ("resumed", "went on where it stopped"),
    ("recovered", "recover= was asked what had happened"),
    ("decided", "resolve= decided, as a person would"),
    ("told", "the model was told that it may have happened"),
    ("blocked", "stopped rather than guess; a person decides"),
    ("broken", "a promise was broken"),
)


def page(clean: Clean, cells: Sequence[Cell], seconds: float) -> str:
    """The whole page."""
    parts = [
        '<!doctype html><html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">",
        f"<title>Crash matrix</title><style>{_STYLE}</style></head><body>",
        *_head(clean, cells, seconds),
        *_problems(clean, cells),
        *_matrix(clean, cells),
        *_details(clean, cells),
        "</body></html>",
    ]
    return "\n".join(parts) + "\n"


def _head(clean: Clean, cells: Sequence[Cell], seconds: float) -> Iterator[str]:
    blocked = sum(cell.ending == "blocked" for cell in cells)
    yield f"<h1>Crash matrix: {judgement(clean, cells)}</h1>"
    yield (
        '<p class="soft">A worker died at each point of each step, and others took over with the same call. '
        f"{counted(blocked, 'run')} of {len(cells)} stopped for a person to decide. {seconds:.1f} s.</p>"
    )
    yield f"<p>{escape(undisturbed(clean))}</p>"


def _problems(clean: Clean, cells: Iterable[Cell]) -> Iterator[str]:
    found = [problem for cell in cells for problem in problems_of(clean, cell)]
    if found:
        yield "<h2>What to repair</h2>"
    for group in grouped(found):
        first = group[0]
        yield f'<div class="problem"><p><strong>{escape(first.text)}</strong>, when the worker died at {escape(listed(group))}.</p>'
        yield f"<p>{escape(first.cure)}</p>"
        if first.kind == "failed":
            yield f"<pre>{escape(first.cell.error or '')}</pre>"
        yield "</div>"


def _matrix(clean: Clean, cells: Sequence[Cell]) -> Iterator[str]:
    points = [point for point in ALL_POINTS if any(cell.point == point for cell in cells)]
    rows: dict[tuple[int, int], dict[str, Cell]] = {}
    for cell in cells:
        rows.setdefault((cell.step.number, cell.attempt), {})[cell.point] = cell
    yield '<h2>Where it died, and what became of it</h2><div class="scroll"><table><thead><tr><th scope="col">step</th>'
    yield (
        "".join(f'<th scope="col">{point.replace("_", " ")}</th>' for point in points)
        + "</tr></thead><tbody>"
    )
    for (_, attempt), row in rows.items():
        step = next(iter(row.values())).step
        yield f'<tr><th scope="row">{_step(step, attempt)}</th>'
        yield "".join(_box(clean, row.get(point)) for point in points) + "</tr>"
    yield "</tbody></table></div>"
    legend = "".join(f'<li class="soft"><b class="{kind}">{kind}</b> {means}</li>' for kind, means in _LEGEND)
    yield f'<ul class="legend">{legend}</ul>'


def _step(step: MatrixStep, attempt: int) -> str:
    told = [step.label, "nested" if graph_scope(step.scope) else "", f"try {attempt}" if attempt > 1 else ""]
    notes = ", ".join(word for word in told if word)
    return f'{escape(str(step))} <span class="soft" title="{escape(step.scope)}">{escape(notes)}</span>'


def _box(clean: Clean, cell: Cell | None) -> str:
    if cell is None:
        return "<td></td>"
    word = verdict(clean, cell)
    found = problems_of(clean, cell)
    told = "; ".join(problem.text for problem in found) or ", ".join(waits.tool for waits in cell.blocked)
    small = f"<small>{escape(told)}</small>" if told else ""
    return f'<td class="{"broken" if found else word}">{word}{small}</td>'


def _details(clean: Clean, cells: Iterable[Cell]) -> Iterator[str]:
    headings = (
        "died at",
        "verdict",
        "effects",
        "model calls repeated",
        "reply",
        "settled",
        "restarts",
        "run",
    )
    yield '<details><summary>Every crash point in full</summary><div class="scroll"><table><thead><tr>'
    yield "".join(f'<th scope="col">{heading}</th>' for heading in headings) + "</tr></thead><tbody>"
    for cell in cells:
        settled = ", ".join(f"{item.tool}: {item.by} said {item.answer}" for item in cell.settled)
        waiting = ", ".join(f"{item.tool} waits: {item.reason}" for item in cell.blocked)
        reply = {True: "same", False: "other", None: "none"}[cell.reply_equal]
        facts = (
            f"{cell} {cell.step.title}",
            verdict(clean, cell),
            ", ".join(f"{tool} {count}" for tool, count in sorted((cell.effects or {}).items())),
            str(cell.model_calls_repeated),
            reply,
            "; ".join(told for told in (settled, waiting) if told),
            str(cell.restarts),
            cell.run_id,
        )
        yield "<tr>" + "".join(f"<td>{escape(fact)}</td>" for fact in facts) + "</tr>"
    yield "</tbody></table></div></details>"
