"""A check that would prove nothing is refused, in words that say what to do."""

from threading import Event

import pytest

from gnl_middleware import Journal, journaled, never, safe
from gnl_middleware.testing import CrashToolkitError, crash_matrix
from tests.toolkit.orders import order


def test_effects_counted_in_memory_are_refused(log):
    """A list in memory forgets what a dead worker did: counting it would find every agent safe, so it is refused."""
    mails = []

    def build():
        return journaled(lambda: mails.append("ann"), replay=safe, name="mail")

    def run(mail, run_id, journal):
        with journal.run(run_id):
            mail()

    with pytest.raises(CrashToolkitError, match=r"effects counted nothing.*outside the worker.*effects=None"):
        crash_matrix(build, run, lambda run_id: {"mail": len(mails)})


def test_an_agent_without_effects_needs_no_counting(log):
    """With `effects=None` the rest is checked: that the job ends, with the same reply."""
    build, run = order(log, safe)

    matrix = crash_matrix(build, run, None, steps=[1], points=["after_body"])

    assert [(cell.effects, cell.reply_equal) for cell in matrix.cells] == [({}, True)]
    matrix.assert_safe()


def _run_elsewhere(agent, run_id, journal):
    with journal.run("some other run"):
        return "done"


def _run_and_hold(agent, run_id, journal):
    journal.run(run_id).__enter__()
    return "done"


@pytest.mark.parametrize(
    ("run", "told"),
    [
        (lambda agent, run_id, journal: 1 / 0, "ZeroDivisionError"),
        (_run_elsewhere, "no run of its run_id is in its journal"),
        (_run_and_hold, "its run is running: it must pass both on, and leave the run"),
    ],
    ids=["raises", "runs under another id", "does not leave the run"],
)
def test_a_clean_run_that_does_not_end_is_refused(log, run, told):
    """Without a clean run there is no standard: the check stops with what the clean run raised or did wrong."""
    build, _ = order(log, never)

    with pytest.raises(CrashToolkitError, match=told) as raised:
        crash_matrix(build, run, log)

    assert raised.value.problem == "The run that nobody disturbs does not end"


def test_a_reply_that_cannot_be_compared_is_refused(log):
    """A reply must be plain data: an object of some class says nothing about equality, so its path and type are named."""
    build, run = order(log, never)

    def run_for_an_object(agent, run_id, journal):
        run(agent, run_id, journal)
        return {"state": object()}

    with pytest.raises(CrashToolkitError, match=r"\$\.state of what it returned is of type object"):
        crash_matrix(build, run_for_an_object, log)


def test_misspelt_steps_and_points_are_refused(log):
    """A filter that fits nothing would make an empty matrix, which is safe without having tried anything."""
    build, run = order(log, never)

    with pytest.raises(CrashToolkitError, match=r"no crash point of 'male' to try; .*2 mail"):
        crash_matrix(build, run, log, steps=["look_up", "male"])
    with pytest.raises(CrashToolkitError, match="no crash point to try"):
        crash_matrix(build, run, log, points=["mid_stream"])
    with pytest.raises(ValueError, match="unknown points"):
        crash_matrix(build, run, log, points=["after_lunch"])


@pytest.mark.parametrize("options", [{"processes": 0}, {"timeout": 0}, {"journal": "mysql://host/runs"}])
def test_options_that_mean_nothing_are_refused(log, options):
    """No worker, no time, or no journal is refused before anything runs."""
    build, run = order(log, never)

    with pytest.raises(ValueError, match=r"must be at least 1|are not supported"):
        crash_matrix(build, run, log, **options)


def test_counts_that_are_none_are_refused(log):
    """`effects` that gives neither a number nor numbers by tool name is told so."""
    build, run = order(log, never)

    with pytest.raises(CrashToolkitError, match=r"effects failed.*\n(.*\n)*.*must give counts by tool name"):
        crash_matrix(build, run, lambda run_id: {"mail": "one"}, steps=[1], points=["after_body"])


def test_a_worker_that_hangs_is_ended(log, tmp_path):
    """A job that never ends after the crash is reported, not waited for."""
    build, run = order(log, never)
    begun = tmp_path / "begun"

    def hang_the_second_time(agent, run_id, journal):
        if run_id.endswith("-1-after_body"):
            if begun.exists():
                Event().wait()
            begun.touch()
        return run(agent, run_id, journal)

    matrix = crash_matrix(build, hang_the_second_time, log, steps=[1], points=["after_body"], timeout=3)

    assert [(cell.ending, cell.error, cell.restarts) for cell in matrix.cells] == [
        ("failed", "it still ran after 3 s", 1)
    ]
    with pytest.raises(AssertionError, match="cannot be finished: it still ran after 3 s"):
        matrix.assert_safe()


def test_a_run_that_takes_another_course_is_not_called_safe(log, tmp_path):
    """A crash point that no worker comes to was not tried: the cell says so, and the matrix is not safe."""
    build, run = order(log, never)

    def run_short(agent, run_id, journal):
        if run_id.endswith("-clean"):
            return run(agent, run_id, journal)
        with journal.run(run_id):
            return agent[0](1)

    matrix = crash_matrix(build, run_short, log, steps=["mail"], points=["after_body"])

    assert [(cell.ending, cell.error) for cell in matrix.cells] == [
        ("missed", "it did not die, but finished")
    ]
    with pytest.raises(AssertionError, match="no worker came to this crash point"):
        matrix.assert_safe()


def test_a_reply_that_differs_is_found(log, tmp_path):
    """A reply that depends on the attempt is not the clean run's."""
    build, run = order(log, never)

    def run_and_count(agent, run_id, journal):
        reply = run(agent, run_id, journal)
        with Journal(journal.url) as own:
            (record,) = own.runs()
        return f"{reply}, at attempt {record.attempts}"

    matrix = crash_matrix(build, run_and_count, log, steps=[1], points=["after_body"])

    assert [cell.reply_equal for cell in matrix.cells] == [False]
    with pytest.raises(AssertionError, match="the reply is not the clean run's"):
        matrix.assert_safe()
