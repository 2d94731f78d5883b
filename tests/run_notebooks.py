"""Run the notebooks from top to bottom and keep what they show; run it after a change of a notebook or of what it shows.

python tests/run_notebooks.py             # all of them
python tests/run_notebooks.py 1 3         # some, by number
"""

import sys
from pathlib import Path
from typing import Any

import nbformat
from nbmake.nb_run import NotebookRun

FOLDER = Path(__file__).parents[1] / "notebooks"
_SECONDS = 300


def executed(path: Path) -> Any:
    """The notebook as it looks when it has just been run.

    Raises:
        RuntimeError: A cell failed.
    """
    result = NotebookRun(path, _SECONDS).execute()
    if result.error is not None:
        raise RuntimeError(f"{path.name}: {result.error.summary}\n{result.error.trace}")
    return result.nb


def texts(notebook: Any) -> list[list[str]]:
    """What each code cell shows, without what differs between machines: of pictures, only that there is one."""
    return [_shown(cell.outputs) for cell in notebook.cells if cell.cell_type == "code"]


def _shown(outputs: list[Any]) -> list[str]:
    # How much of what is printed arrives at once is a matter of time.
    printed = "".join(output.text for output in outputs if output.output_type == "stream")
    others = [output.data for output in outputs if output.output_type != "stream"]
    return [printed, *("a picture" if "image/png" in data else data["text/plain"] for data in others)]


def main(numbers: list[str]) -> None:
    """Run and keep."""
    for path in sorted(FOLDER.glob("*.ipynb")):
        if numbers and path.name[0] not in numbers:
            continue
        notebook = executed(path)
        for cell in notebook.cells:
            cell.metadata.pop("execution", None)  # when it was run is nobody's business
        notebook.metadata.pop("language_info", None)
        path.write_text(nbformat.writes(notebook) + "\n", encoding="utf-8")
        sys.stdout.write(f"ran {path.name}: {path.stat().st_size} bytes\n")


if __name__ == "__main__":
    main(sys.argv[1:])
