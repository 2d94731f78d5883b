"""One process that dies where a test wants it, and the run that it leaves behind."""

from threading import Event

import pytest

from gnl_middleware import Journal, SideEffectRetryBlockedError, never
from tests.toolkit.orders import order


def test_a_process_dies_and_leaves_what_a_crash_leaves(crash_at, log, tmp_path):
    """The plugin's `crash_at` runs a closure in a process that dies at the point; the effect stays, the run is open."""
    build, run = order(log, never)

    def attempt():
        with Journal(tmp_path / "runs.db") as journal:
            return run(build(), "run", journal)

    crash_at("mail:after_body", attempt)

    assert log("run") == {"mail": 1}
    with pytest.raises(SideEffectRetryBlockedError):
        attempt()


@pytest.mark.parametrize(
    ("point", "function", "told"),
    [
        ("mail:after_body", lambda: "nothing", r"No process died at mail:after_body: it returned 'nothing'"),
        ("mail:after_body", lambda: 1 / 0, r"ZeroDivisionError"),
    ],
)
def test_a_process_that_does_not_die_fails_the_test(crash_at, point, function, told):
    """A point that is not reached is an assertion that fails, with what happened instead."""
    with pytest.raises(AssertionError, match=told):
        crash_at(point, function)


def test_what_is_no_crash_point_is_refused(crash_at):
    """A misspelt point is refused before anything runs."""
    with pytest.raises(ValueError, match="no crash point"):
        crash_at("mail:after_lunch", lambda: None)


def test_a_process_that_hangs_is_ended(crash_at):
    """A process that never comes to its point is ended after the timeout."""
    with pytest.raises(AssertionError, match=r"still ran after 0\.2 s"):
        crash_at("mail:after_body", Event().wait, timeout=0.2)
