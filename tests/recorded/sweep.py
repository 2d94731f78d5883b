"""Kill a recorded agent at each point of each step, restart it with the same call until it ends, and count.

Run as a program, it reads one JSON object a line, ``{"recording": …, "synchronous": …, "folder": …, "share": …,
"label": …}``, sweeps, and answers with one line. It lives as long as its input: what it has imported, its children need not.
"""

import contextlib
import json
import os
import random
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from gnl_langchain.demo.processes import Errand, Plan, can_fork, carry_out
from gnl_middleware.testing import CRASH_EXIT_CODE, POINTS
from tests.recorded.worker import Job, play, play_clean

SEED = os.environ.get("GNL_TEST_SEED", "20261129")
_AT_ONCE = 2
_MOST_WORKERS = 4
_NO_OUTCOME = POINTS[:3]
_ANSWERED = POINTS[3:5]


@dataclass(frozen=True, slots=True)
class Cell:
    """One place to die.

    Attributes:
        number: The step's number.
        lost: Recorded answers that reach the worker but, because of this death, nobody else. The provider
            has to give them a second time: an answer that was cut off before its outcome was recorded is asked for
            again (DESIGN 3.1: "a failed model call leaves no outcome").
        raced: The step's number is not settled yet at this point, since a parallel sibling may take it in another
            thread; then nobody dies there, and the run must simply end well.
    """

    number: int
    point: str
    name: str
    lost: tuple[int, ...]
    raced: bool

    def __str__(self) -> str:
        return f"{self.number}:{self.point}"


def sweep(
    recording: str,
    folder: Path,
    *,
    synchronous: bool,
    share: int | None,
    label: str = "never",
    framework: str = "langchain",
) -> dict[str, Any]:
    """The clean run, then one killed run for each place to die, or for a seeded share of the places."""
    first = Job(recording, synchronous, folder / "clean", label=label, framework=framework)
    first.folder.mkdir(parents=True)
    if can_fork():
        _rehearse(recording, framework)
    (clean,) = carry_out([_clean_run(first)], at_once=1)
    cells = _cells(first, clean) if "kinds" in clean else []
    if share is not None and share < len(cells):
        chosen = random.Random(f"{SEED} {recording} {synchronous}").sample(cells, share)
        cells = sorted(chosen, key=cells.index)
    killed = list(carry_out((_killed_run(first, cell) for cell in cells), at_once=_AT_ONCE))
    order = [str(cell) for cell in cells]
    return {"clean": clean, "killed": sorted(killed, key=lambda run: order.index(run["cell"]))}


@cache
def _rehearse(recording: str, framework: str) -> None:
    """Play the recording in this process, once, so that what it imports is there for every child."""
    with tempfile.TemporaryDirectory() as folder:
        play(Job(recording, synchronous=True, folder=Path(folder), framework=framework))


def _clean_run(job: Job) -> Plan[dict[str, Any]]:
    code = yield Errand(play_clean, job)
    report = job.report() or {"error": f"the clean run ended with code {code} and no report"}
    return report | {"answers": [entry["index"] for entry in job.answers.entries()]}


def _cells(job: Job, clean: dict[str, Any]) -> list[Cell]:
    """Where the clean run's steps can die, and which of its answers each death loses."""
    given, kinds = [entry["index"] for entry in job.answers.entries()], dict(clean["kinds"])
    cells: list[Cell] = []
    for number, passed in _steps_passed(job).items():
        # A model call that failed is no step of the journal's: it left no outcome.
        kind, points = kinds.get(number, "model"), POINTS if number in kinds else _NO_OUTCOME
        in_the_middle = [entry["point"] for entry in passed if entry["point"] not in POINTS]
        answered = given[passed[0]["answers"] : passed[-1]["answers"]]
        for point in (*points, *in_the_middle):
            lost = tuple(answered) if kind == "model" and point in (*_ANSWERED, *in_the_middle) else ()
            raced = job.synchronous and kind == kinds.get(number - 1) == "tool" and point == POINTS[0]
            cells.append(Cell(number, point, passed[-1]["name"], lost, raced))
    return cells


def _steps_passed(job: Job) -> dict[int, list[dict[str, Any]]]:
    steps: dict[int, list[dict[str, Any]]] = {}
    for entry in job.points.entries():
        steps.setdefault(entry["number"], []).append(entry)
    return dict(sorted(steps.items()))


def _killed_run(clean: Job, cell: Cell) -> Plan[dict[str, Any]]:
    """One worker dies there, then workers take over with the same call until one of them ends."""
    job = replace(clean, folder=clean.folder.with_name(str(cell).replace(":", "-")), crash_at=str(cell))
    job.folder.mkdir()
    codes = [(yield Errand(play, job))]
    before = [entry["index"] for entry in job.answers.entries()]
    _give_again(job, cell.lost)
    while job.report() is None and len(codes) < _MOST_WORKERS:
        job = replace(job, number=job.number + 1, crash_at=None)
        codes.append((yield Errand(play, job)))
    return _measured(clean, job, cell, codes, before)


def _give_again(job: Job, lost: tuple[int, ...]) -> None:
    """Let the provider give those answers once more that died with the worker."""
    kept = [entry for entry in job.answers.entries() if entry["index"] not in lost]
    job.answers.path.unlink(missing_ok=True)
    for entry in kept:
        job.answers.append(**entry)


def _measured(clean: Job, job: Job, cell: Cell, codes: list[int], before: list[int]) -> dict[str, Any]:
    report = job.report() or {"error": f"no worker ended; exit codes {codes}"}
    answers, bodies = job.answers.entries(), {e["index"]: e["body"] for e in clean.answers.entries()}
    given = Counter(entry["index"] for entry in answers)
    given.update(index for index in before if index in cell.lost)
    return {
        "cell": str(cell),
        "step": cell.name,
        "died": "raced" if cell.raced and codes == [0] else codes[0] == CRASH_EXIT_CODE,
        "workers": len(codes),
        "error": report.get("error"),
        "differs": report.get("differs"),
        "answers_given_otherwise": sorted(
            index for index in bodies if given[index] != 1 + (index in cell.lost)
        ),
        "events": report.get("events"),
        "requests_differ": sorted(e["index"] for e in answers if e["body"] != bodies.get(e["index"])),
        "executed": Counter(entry["call_id"] for entry in job.executed.entries()),
    }


def main() -> None:
    """Answer requests until the input ends."""
    output, sys.stdout = sys.stdout, sys.stderr
    with contextlib.suppress(KeyboardInterrupt):
        for line in sys.stdin:
            asked = json.loads(line)
            asked["folder"] = Path(asked["folder"])
            output.write(json.dumps(sweep(**asked)) + "\n")
            output.flush()


if __name__ == "__main__":
    main()
