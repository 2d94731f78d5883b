"""Where threads forbid to fork, the workers are started from a new interpreter, which needs functions of a module."""

import contextlib
import multiprocessing
import os
import threading
from pathlib import Path

import pytest

from gnl_middleware import Journal, never
from gnl_middleware.testing import CrashToolkitError, EffectLog, crash_matrix, interrupted_note
from gnl_middleware.testing.exploring import explore
from gnl_middleware.testing.jobs import Subject
from gnl_middleware.testing.sweep import Settings
from tests.toolkit.orders import order

LOG = "TOOLKIT_TEST_LOG"


def _log():
    return EffectLog(Path(os.environ[LOG]))


def build():
    return order(_log(), never)[0]()


def run(agent, run_id, journal):
    return order(_log(), never)[1](agent, run_id, journal)


def effects(run_id):
    return _log()(run_id)


@pytest.fixture
def a_thread():
    """A thread beside the test, as an instrumentation or a notebook's kernel has them."""
    over = threading.Event()
    thread = threading.Thread(target=over.wait, name="heartbeat")
    thread.start()
    yield thread
    over.set()
    thread.join()


def test_functions_of_a_module_are_named_to_a_new_interpreter(a_thread, log, monkeypatch):
    """With a thread running, the same call gives the same matrix."""
    monkeypatch.setenv(LOG, str(log.path))

    matrix = crash_matrix(build, run, effects, steps=["mail"], points=["before_intent", "after_body"])

    matrix.assert_safe()
    assert [cell.ending for cell in matrix.cells] == ["finished", "blocked"]
    assert matrix.clean.effects == {"mail": 1}


def test_closures_beside_a_thread_are_refused(a_thread, log):
    """A closure cannot be named to another interpreter: the error names the thread, and what to do."""
    own_build, own_run = order(log, never)

    with pytest.raises(CrashToolkitError, match=r"threads run here \(heartbeat\).*fork=True"):
        crash_matrix(own_build, own_run, log)


def test_closures_beside_a_thread_that_only_waits(a_thread, log):
    """With `fork=True`, as in a notebook, closures work although a thread runs."""
    own_build, own_run = order(log, never)

    matrix = crash_matrix(own_build, own_run, log, steps=["mail"], points=["after_body"], fork=True)

    assert [cell.ending for cell in matrix.cells] == ["blocked"]


def test_a_journal_left_open_does_not_forbid_to_fork(log, tmp_path):
    """The library's own threads begin anew after a fork, so an open journal beside the check is no obstacle."""
    own_build, own_run = order(log, never)
    with Journal(tmp_path / "open.db") as journal:
        own_run(own_build(), "before", journal)

        matrix = crash_matrix(own_build, own_run, log, steps=["mail"], points=["after_body"])

    assert [cell.ending for cell in matrix.cells] == ["blocked"]


def _broken_run(agent, run_id, journal):
    raise OSError("no such host")


def test_an_error_elsewhere_is_told_here(a_thread, log, monkeypatch):
    """What goes wrong in the new interpreter is raised in this one, with its details."""
    monkeypatch.setenv(LOG, str(log.path))

    with pytest.raises(CrashToolkitError, match=r"does not end.*\n(.*\n)*.*OSError: no such host"):
        crash_matrix(build, _broken_run, effects)


def test_a_check_that_is_left_early_leaves_no_process(log):
    """A check that is given up in the middle ends its workers: none is left behind."""
    own_build, own_run = order(log, never)
    found = explore(Subject(own_build, own_run, log), Settings())
    next(found)
    next(found)

    with contextlib.closing(found):
        pass

    assert multiprocessing.active_children() == []


def test_the_note_is_checked_elsewhere_too(a_thread, log, monkeypatch):
    """`interrupted_note` also works beside a thread; that the tool was not told is found there."""
    monkeypatch.setenv(LOG, str(log.path))

    with pytest.raises(CrashToolkitError, match=r"not told that mail \(never\)"):
        interrupted_note(build, run, tool="mail", looks="find", runs=1)
