"""After `fork()` a journal that was open before reopens itself in the child, and the parent's stays whole."""

import contextlib
import sqlite3

from gnl_middleware import Journal
from tests.processes import forking
from tests.processes.children import Child


def completed(path):
    """The completed runs in the file, as a later process finds them; the file must be sound."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    with Journal(path) as journal:
        return sorted(record.run_id for record in journal.runs(status="completed"))


def test_children_write_runs_of_their_own_and_the_parent_goes_on(path):
    """A journal opened before the fork works in each child and in the parent, also inside the parent's open run."""
    with Child(forking.children_and_parent, path) as child:
        assert child.hear() == [0, 0, 0]
        assert child.hear() == ["child-0", "child-1", "child-2", "parent"]
        assert child.end() == (0, "")


def test_childs_writes_survive_the_parents_closing(path):
    """What a child's journal acknowledged is there afterwards, though the parent closed its own in the meantime."""
    with Child(forking.parent_closes_first, path) as child:
        assert child.hear() == 0
        assert child.end() == (0, "")

    assert completed(path) == ["child-1", "child-2", "child-3", "parent"]


def test_fork_in_the_middle_of_writes(path):
    """A child works whatever other threads of the parent were doing at the moment of the fork."""
    forks = 10
    with Child(forking.in_the_middle, path, forks, patience=30) as child:
        assert [child.hear() for _ in range(forks)] == [0] * forks
        assert child.hear() == sorted(f"child-{number}" for number in range(forks))
        assert child.end() == (0, "")


def test_child_that_leaves_the_parents_run_changes_nothing(path):
    """The parent's lease is the parent's: a child that leaves the inherited run does not give it back."""
    with Child(forking.child_leaves_the_run, path) as child:
        assert child.hear() == 0
        assert child.hear() == [True, "running"]
        assert child.hear() == "charged 7"
        assert child.hear() == "completed"
        assert child.end() == (0, "")


def test_effect_in_an_inherited_run_happens_once(path, tmp_path):
    """Parent and children that all go on in one open run perform its effect once: the others find it or are stopped."""
    effects = tmp_path / "effects"
    with Child(forking.child_goes_on_in_the_run, path, effects) as child:
        child.hear()

    assert effects.read_text(encoding="utf-8").split() == ["1"]


def test_child_that_exits_leaves_nothing_behind(path):
    """A child that exits as programs do closes what is its own, says nothing, and the parent works on."""
    with Child(forking.exits_normally, path) as child:
        assert child.hear() == ["child", "parent-1", "parent-2"]
        assert child.end() == (0, "")

    assert completed(path) == ["child", "parent-1", "parent-2"]
