"""A crash matrix as rich shows it: steps down, points across, and below it what to repair."""

from collections.abc import Iterator

from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from gnl_middleware.testing import Cell, Clean, CrashMatrix
from gnl_middleware.testing.exploring import explore
from gnl_middleware.testing.jobs import Subject
from gnl_middleware.testing.problems import grouped, judgement, listed, problems_of, undisturbed, verdict
from gnl_middleware.testing.spots import ALL_POINTS
from gnl_middleware.testing.sweep import Settings
from gnl_middleware.viewer.plain import Place, visible

_STYLES = {"resumed": "green", "recovered": "cyan", "decided": "cyan", "told": "cyan", "blocked": "yellow"}
_MEANINGS = {
    "recovered": "recover= was asked",
    "decided": "resolve= decided",
    "told": "the model was told",
    "blocked": "a person decides",
}


def watched(subject: Subject, settings: Settings, *, quiet: bool) -> Iterator[Clean | Cell]:
    """The clean run and the cells as they end, with a bar on a terminal."""
    columns = (TextColumn("dying and resuming"), BarColumn(None), MofNCompleteColumn(), TimeElapsedColumn())
    console = Console(stderr=True)
    # Refreshed by hand: the thread that would do it must not exist while processes fork.
    progress = Progress(
        *columns,
        console=console,
        transient=True,
        auto_refresh=False,
        disable=quiet or not console.is_terminal,
    )
    with progress as bar:
        task = bar.add_task("", total=None)
        for found in explore(subject, settings):
            if isinstance(found, Clean):
                bar.update(task, total=found.crash_points)
            else:
                bar.advance(task)
            bar.refresh()
            yield found


def print_matrix(out: Console, matrix: CrashMatrix, *, journal: str | None) -> None:
    """Show the matrix; with the journal that the runs were kept in, also the command that shows a broken one."""
    out.print(Text(visible(undisturbed(matrix.clean))), soft_wrap=True)
    out.print(_table(matrix))
    out.print(_summary(matrix), soft_wrap=True)
    for group in grouped(matrix.problems):
        first = group[0]
        out.print()
        told = f", when the worker died at {listed(group)}."
        out.print(
            Text(visible(first.text), style="bold red").append(visible(told), style="not bold"),
            soft_wrap=True,
        )
        out.print(Text(f"  {first.cure}"), soft_wrap=True)
        for line in (first.cell.error or "").splitlines() if first.kind == "failed" else ():
            out.print(Text(f"  | {visible(line)}", style="dim"), soft_wrap=True)
        if journal is not None:
            show = Place(("--journal", journal)).command("show", first.cell.run_id)
            out.print(Text(f"  {show}", style="dim"), soft_wrap=True)


def _table(matrix: CrashMatrix) -> Table:
    points = [point for point in ALL_POINTS if any(cell.point == point for cell in matrix.cells)]
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("died at", overflow="fold")
    for point in points:
        table.add_column(point.replace("_", "\n"))
    rows: dict[tuple[int, int], dict[str, Cell]] = {}
    for cell in matrix.cells:
        rows.setdefault((cell.step.number, cell.attempt), {})[cell.point] = cell
    for row in rows.values():
        words = [_word(matrix.clean, row.get(point)) for point in points]
        table.add_row(_step(next(iter(row.values()))), *words)
    return table


def _step(cell: Cell) -> Text:
    told = [cell.step.label] if cell.step.label else []
    told += [f"try {cell.attempt}"] if cell.attempt > 1 else []
    return Text(visible(str(cell.step))).append(f" {', '.join(told)}" if told else "", style="dim")


def _word(clean: Clean, cell: Cell | None) -> Text:
    if cell is None:
        return Text("")
    word = verdict(clean, cell)
    return Text(word, style="bold red" if problems_of(clean, cell) else _STYLES.get(word, ""))


def _summary(matrix: CrashMatrix) -> Text:
    words = [verdict(matrix.clean, cell) for cell in matrix.cells]
    told = [f"{words.count(word)} {word} ({means})" for word, means in _MEANINGS.items() if word in words]
    rest = "".join(f"; {counted}" for counted in told)
    judged = judgement(matrix.clean, matrix.cells)
    style = "bold green" if matrix.safe else "bold red"
    return Text(f"{judged[0].upper()}{judged[1:]}", style=style).append(
        f", in {matrix.seconds:.1f} s{rest}", style="default not bold"
    )
