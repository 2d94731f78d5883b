"""A journal leaves nothing behind: no thread, no warning, no process that does not end.

Each program runs with every warning as an error, and must have nothing to say on standard error.
"""

import pytest

from gnl_middleware import Journal
from tests.processes import programs
from tests.processes.children import Child


def test_closed_journal_leaves_nothing(path):
    """A closed journal has no thread any more, and nothing unclosed that the interpreter could complain of."""
    with Child(programs.close, path) as child:
        assert "gnl-writer" in child.hear()
        assert child.hear() == []
        assert child.end() == (0, "")


def test_forgotten_journal_leaves_nothing(path):
    """A journal that is only forgotten closes itself when it is collected."""
    with Child(programs.forget, path) as child:
        assert "gnl-writer" in child.hear()
        assert child.hear() == []
        assert child.end() == (0, "")


def test_forgotten_run_leaves_nothing(path):
    """The same together with a run that was entered and never left; while it is the current run, it lives."""
    with Child(programs.forget_open_run, path) as child:
        assert child.hear() is True
        assert child.hear() == []
        assert child.end() == (0, "")


def test_unused_journal_starts_nothing(path):
    """A journal that is never used has no thread and creates no file."""
    with Child(programs.never_used, path) as child:
        assert child.hear() == []
        assert child.hear() == []
        assert child.end() == (0, "")
    assert not path.exists()


@pytest.mark.parametrize(("way", "code"), [("return", 0), ("exit", 3), ("error", 1), ("thread", 0)])
def test_interpreter_ends_with_an_open_run(path, way, code):
    """A program that ends in the middle of a run ends at once; what was acknowledged is in the journal."""
    with Child(programs.exit_with_open_run, path, way, patience=10) as child:
        child.hear()
        ended = child.end()

    assert ended.code == code
    assert (
        ended.errors == "" if way != "error" else ended.errors.endswith("RuntimeError: the program broke\n")
    )
    with Journal(path) as journal:
        assert [step.value for step in journal.steps("order-7")] == ["charged 7", "found 7"]
        with journal.run("order-7") as run:
            assert run.attempt == 2
        assert len(journal.runs()) == (2 if way == "thread" else 1)


def test_journal_serves_loops_in_turn_and_threads(path):
    """One journal object works from two event loops in turn, from loops in threads, and without any loop (B21)."""
    with Child(programs.two_loops, path, patience=10) as child:
        assert [child.hear(), child.hear(), child.hear()] == [
            "charged loop-1",
            "charged loop-2",
            "charged plain",
        ]
        assert child.hear() == ["loop-1", "loop-2", "plain", "thread-1", "thread-2"]
        assert child.end() == (0, "")


def test_synchronous_calls_work_inside_a_running_loop(path):
    """The synchronous form works on the thread of a running event loop, as in a notebook's cell; it never hangs (B21)."""
    with Child(programs.sync_inside_a_loop, path, patience=10) as child:
        assert [child.hear(), child.hear(), child.hear()] == ["charged 7", "now", ["completed"]]
        assert child.end() == (0, "")


def test_synchronous_and_asynchronous_calls_mix(path):
    """Tasks of one loop may call synchronous and asynchronous steps of one run side by side."""
    with Child(programs.sync_beside_async, path, patience=10) as child:
        answers = child.hear()
        assert child.end() == (0, "")

    assert answers == [f"charged {'sync' if number % 2 else 'async'}-{number}" for number in range(10)]


def test_synchronous_call_beside_an_asynchronous_recover(path):
    """A synchronous call never waits for an asynchronous `recover` of its own event loop: that could never answer (B21)."""
    with Child(programs.interrupt_async, path) as first:
        first.end()

    with Child(programs.sync_beside_recover, path, patience=10) as second:
        said = second.hear()
        ended = second.end()

    # It either works, or raises at once and says what to use instead.
    assert said == ["recovered", "charged beside"] or "async" in said[1]
    assert (ended.code, ended.errors) == (0, "")


def test_run_cannot_wait_for_itself(path):
    """A worker that waits for a run that it holds itself would wait for ever: it is refused at once."""
    with Child(programs.wait_for_oneself, path, patience=10) as child:
        assert [child.hear() for _ in range(3)] == ["RunBusyError"] * 3
        assert child.end() == (0, "")
