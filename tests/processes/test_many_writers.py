"""Many processes write one file at once: no error, and nothing is lost (B22)."""

import contextlib
import sqlite3

from gnl_middleware import Journal
from tests.processes import crowding
from tests.processes.children import Child

PROCESSES, RUNS = 8, 60


@contextlib.contextmanager
def crowd(program, *arguments):
    """So many processes of a program, told to begin at the same moment."""
    with contextlib.ExitStack() as stack:
        children = [
            stack.enter_context(Child(program, *argument)) for argument in zip(*arguments, strict=True)
        ]
        assert [child.hear() for child in children] == ["ready"] * len(children)
        for child in children:
            child.tell()
        yield children


def test_many_processes_write_one_file(path):
    """8 processes that create and write one file at once, 60 runs each, meet no error; every run is there, whole."""
    with crowd(crowding.write, [path] * PROCESSES, range(PROCESSES), [RUNS] * PROCESSES) as children:
        assert [child.hear() for child in children] == [[]] * PROCESSES
        assert [child.end() for child in children] == [(0, "")] * PROCESSES

    with contextlib.closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    with Journal(path) as journal:
        done = {record.run_id for record in journal.runs(status="completed")}
        assert done == {f"order-{process}-{number}" for process in range(PROCESSES) for number in range(RUNS)}
        for process in range(PROCESSES):
            values = [step.value for step in journal.steps(f"order-{process}-{RUNS - 1}")]
            assert values == [RUNS - 1, f"{RUNS - 1:08d} " * (crowding.RESULT // 9)]


def test_many_processes_share_runs(path):
    """4 processes that all want the same runs work on each in turn: every step ran in exactly one of them."""
    runs = 8
    with crowd(crowding.share, [path] * 4, [runs] * 4) as children:
        assert sum(child.hear() for child in children) == 2 * runs
        assert [child.end() for child in children] == [(0, "")] * 4

    with Journal(path) as journal:
        assert {record.attempts for record in journal.runs()} == {4}
