"""The matrix over plain functions, written as closures: each label does what it promises, and a wrong one is found."""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context

import pytest

from gnl_middleware import (
    Done,
    Failed,
    Journal,
    NotDone,
    Unknown,
    current_step,
    journaled,
    keyed,
    never,
    safe,
)
from gnl_middleware.testing import POINTS, Blocked, Settled, crash_matrix
from tests.toolkit.orders import order

# A `never` call may have happened from its durable intent on, until its outcome is recorded.
IN_DOUBT = ("after_intent", "before_body", "after_body", "before_outcome")
BODY_RAN = ("after_body", "before_outcome", "after_outcome")


def ending_at(matrix, step):
    """How the job ended for each point of a step."""
    return {cell.point: cell.ending for cell in matrix.cells if cell.step.name == step}


def test_every_point_of_every_step_is_tried(log):
    """The steps come from a clean run, and a worker dies at each of six points of each of them."""
    build, run = order(log, never)

    matrix = crash_matrix(build, run, log)

    steps = [(step.number, step.kind, step.name, step.label) for step in matrix.clean.steps]
    assert steps == [
        (1, "tool", "look_up", "safe"),
        (2, "tool", "mail", "never"),
        (3, "tool", "look_up", "safe"),
    ]
    assert [(cell.step.number, cell.point) for cell in matrix.cells] == [
        (number, point) for number in (1, 2, 3) for point in POINTS
    ]
    assert matrix.clean.crash_points == len(matrix.cells)
    assert (matrix.clean.reply, matrix.clean.effects) == ("10, mailed ann, 20", {"mail": 1})
    assert matrix.safe
    assert all(cell.restarts == 1 and cell.attempt == 1 for cell in matrix.cells)


def test_a_blocked_cell_is_safe_and_says_why(log):
    """Where a `never` call may have happened the job stops for a person: reported, with the reason, and not a failure."""
    build, run = order(log, never)

    matrix = crash_matrix(build, run, log, steps=["mail"])

    matrix.assert_safe()
    assert ending_at(matrix, "mail") == {
        point: "blocked" if point in IN_DOUBT else "finished" for point in POINTS
    }
    for cell in matrix.cells:
        waiting = (Blocked("mail", "the tool has no recover="),) if cell.point in IN_DOUBT else ()
        assert cell.blocked == waiting
        assert cell.reply_equal is (None if waiting else True)
        assert cell.effects == ({} if cell.point in ("after_intent", "before_body") else {"mail": 1})


def test_a_wrong_label_is_found_and_named(log):
    """A mail tool labelled `safe` mails twice: the assertion names the tool, the cells, the counts and the cure."""
    build, run = order(log, safe)

    matrix = crash_matrix(build, run, log, steps=["mail"])

    assert {cell.settled for cell in matrix.cells} == {()}
    doubled = [(problem.kind, str(problem.cell), problem.found) for problem in matrix.problems]
    assert doubled == [("doubled", "2:after_body", 2), ("doubled", "2:before_outcome", 2)]
    with pytest.raises(AssertionError) as raised:
        matrix.assert_safe()
    message = str(raised.value)
    assert "not safe at 2 of 6 crash points" in message
    assert "mail happened 2 times instead of 1" in message
    assert "2:after_body (mail), 2:before_outcome (mail)" in message
    assert "Relabel it never; add recover=" in message
    assert "idempotency_key" in message


def test_a_keyed_call_counts_once_where_the_service_knows_its_key(log):
    """A `keyed` call runs again with the key of the first try: the service recognises it, and nothing is doubled."""
    build, run = order(log, keyed, says_key=True)

    matrix = crash_matrix(build, run, log, steps=["mail"])

    matrix.assert_safe()
    assert {(cell.ending, cell.settled) for cell in matrix.cells} == {("finished", ())}


def test_a_keyed_call_is_doubled_where_the_key_is_not_given_on(log):
    """A tool that is labelled `keyed` and keeps its key to itself is found, and told to pass it on."""
    build, run = order(log, keyed)

    matrix = crash_matrix(build, run, log, steps=["mail"], points=["after_body"])

    with pytest.raises(AssertionError, match=r"labelled keyed.*Pass current_step\(\)\.idempotency_key on"):
        matrix.assert_safe()


def test_recover_settles_and_is_reported(log):
    """Where `recover` can tell, nobody is asked: each cell says that it was used, and what it answered."""

    def look(call):
        return Done("mailed ann") if log.has("mail", key=call.idempotency_key) else NotDone()

    build, run = order(log, never(recover=look), says_key=True)

    matrix = crash_matrix(build, run, log, steps=["mail"])

    matrix.assert_safe()
    assert {cell.ending for cell in matrix.cells} == {"finished"}
    for cell in matrix.cells:
        answer = "done" if cell.point in BODY_RAN else "not_done"
        expected = (Settled("mail", "recover", answer),) if cell.point in IN_DOUBT else ()
        assert cell.settled == expected
        assert cell.recover_used is bool(expected)


def test_a_recover_that_guesses_is_found(log):
    """`recover` that says NotDone without looking doubles the effect; that says Done without looking loses it."""
    careless, run = order(log, never(recover=lambda call: NotDone()))
    hopeful, _ = order(log, never(recover=lambda call: Done("mailed ann")))

    doubling = crash_matrix(careless, run, log, steps=["mail"], points=["after_body"])
    losing = crash_matrix(hopeful, run, log, steps=["mail"], points=["before_body"])

    assert [problem.kind for problem in doubling.problems] == ["doubled"]
    assert [problem.kind for problem in losing.problems] == ["lost"]
    with pytest.raises(AssertionError, match=r"said NotDone\(\) although it had happened"):
        doubling.assert_safe()
    with pytest.raises(
        AssertionError, match=r"mail happened 0 times instead of 1.*\n.*said Done\(\) although"
    ):
        losing.assert_safe()


AROUND_THE_BODY = ("before_body", "after_body")


def test_resolve_plays_the_person(log):
    """With `resolve=` a blocked job goes on as a person would let it: the cells end, with one effect and the same reply."""
    build, run = order(log, never, says_key=True)

    def resolve(call):
        return Done("mailed ann") if log.has(call.tool, key=call.idempotency_key) else NotDone()

    matrix = crash_matrix(build, run, log, steps=["mail"], points=AROUND_THE_BODY, resolve=resolve)

    matrix.assert_safe()
    assert [(cell.ending, cell.restarts, cell.effects) for cell in matrix.cells] == [
        ("finished", 2, {"mail": 1})
    ] * 2
    assert [cell.settled for cell in matrix.cells] == [
        (Settled("mail", "person", "not_done"),),
        (Settled("mail", "person", "done"),),
    ]


def test_what_nobody_can_tell_stays_blocked(log):
    """A person who cannot tell leaves the job blocked, which is safe."""
    build, run = order(log, never)

    matrix = crash_matrix(
        build, run, log, steps=["mail"], points=["after_body"], resolve=lambda call: Unknown()
    )

    matrix.assert_safe()
    assert [cell.ending for cell in matrix.cells] == ["blocked"]


def test_a_job_that_cannot_be_finished_is_not_safe(log):
    """A job that fails each time it is restarted is reported with its error, after three tries."""
    build, run = order(log, never)
    gone = Failed("the mailbox is gone")

    matrix = crash_matrix(build, run, log, steps=["mail"], points=["after_body"], resolve=lambda call: gone)

    assert [(cell.ending, cell.restarts) for cell in matrix.cells] == [("failed", 4)]
    with pytest.raises(AssertionError, match=r"the job cannot be finished: .*the mailbox is gone"):
        matrix.assert_safe()


def test_effects_of_all_runs_together_are_told_apart(log):
    """`effects()` without a run id may count what all runs ever did: each cell is charged with its own."""
    build, run = order(log, safe)
    log.note("mail")  # long ago

    def count():
        return len(log.path.read_text(encoding="utf-8").splitlines())

    matrix = crash_matrix(build, run, count, steps=["mail"], points=["after_intent", "after_body"])

    assert matrix.clean.effects == {"effects": 1}
    assert [cell.effects for cell in matrix.cells] == [{"effects": 1}, {"effects": 2}]


async def _run_async(agent, run_id, journal):
    look_up, mail = agent
    async with journal.run(run_id):
        return f"{look_up(1)}, {mail('ann')}"


def test_run_may_be_a_coroutine_function(log):
    """An agent that runs in an event loop needs no wrapper: `run` may be async."""
    build, _ = order(log, never)

    matrix = crash_matrix(build, _run_async, log, steps=["mail"], points=["before_intent", "after_body"])

    assert [cell.ending for cell in matrix.cells] == ["finished", "blocked"]
    matrix.assert_safe()


async def test_a_matrix_can_be_made_while_an_event_loop_runs(log):
    """An asynchronous test, or a notebook, calls it from inside its event loop; the workers have loops of their own."""
    build, _ = order(log, never)

    matrix = crash_matrix(build, _run_async, log, steps=["mail"], points=["after_body"])

    assert [cell.ending for cell in matrix.cells] == ["blocked"]


def test_a_restart_waits_for_no_lease_where_the_dead_cannot_be_told(log, monkeypatch):
    """Where the system cannot tell a dead holder from a live one, the clock of the next worker is ahead, and nobody waits."""
    monkeypatch.setattr("gnl_middleware.lease._machine", lambda: "")
    build, run = order(log, safe)

    matrix = crash_matrix(build, run, log, steps=[1], points=["after_outcome"])

    (cell,) = matrix.cells
    assert (cell.ending, cell.restarts, cell.reply_equal) == ("finished", 2, True)
    assert matrix.seconds < 25  # seconds; the lease that the dead worker left lasts 30


def test_a_kept_journal_shows_every_run(log, tmp_path):
    """With `journal=` the runs stay, to be looked into."""
    build, run = order(log, never)

    matrix = crash_matrix(
        build, run, log, steps=["mail"], points=["after_body"], journal=tmp_path / "kept.db"
    )

    with Journal(tmp_path / "kept.db") as journal:
        kept = {record.run_id: record.status for record in journal.runs()}
    assert kept == {matrix.clean.run_id: "completed", matrix.cells[0].run_id: "blocked"}


def test_a_step_that_is_tried_twice_dies_in_each_try(log):
    """A call that fails and is made again comes to its points twice: each of the two tries is a cell of its own."""

    def build():
        failed = []

        @journaled(replay=safe)
        def fetch():
            if not failed:
                failed.append(1)
                raise OSError("busy")
            log.note("fetch")
            return "page"

        return fetch

    def run(fetch, run_id, journal):
        with journal.run(run_id):
            try:
                return fetch()
            except OSError:
                return fetch()

    matrix = crash_matrix(build, run, log, points=["before_body", "after_outcome"])

    assert [(cell.step.number, cell.attempt, cell.point) for cell in matrix.cells] == [
        (1, 1, "before_body"),
        (1, 1, "after_outcome"),
        (1, 2, "before_body"),
        (1, 2, "after_outcome"),
    ]
    matrix.assert_safe()


def test_a_blocked_call_does_not_hide_that_another_one_is_doubled(log, tmp_path):
    """Beside a `never` call that blocks the run, a wrongly labelled one is found all the same, in threads of one's own."""
    hung = tmp_path / "hung"

    def build():
        begun = threading.Event()

        def book():
            log.note("book")
            hangs = current_step().run_id.endswith("after_body") and not hung.exists()
            if hangs:
                hung.touch()
            begun.set()
            if hangs:
                threading.Event().wait()  # until the worker dies of the other call

        def mail():
            log.note("mail")

        return begun, journaled(book, replay=never, name="book"), journaled(mail, replay=safe, name="mail")

    def run(agent, run_id, journal):
        begun, book, mail = agent
        with journal.run(run_id), ThreadPoolExecutor(2) as pool:
            booking = pool.submit(copy_context().run, book)
            booking.add_done_callback(lambda _: begun.set())
            begun.wait(30)
            if booking.done():
                booking.result()
            pool.submit(copy_context().run, mail).result(30)
            booking.result(30)

    matrix = crash_matrix(build, run, log, steps=["mail"], points=["after_body"])

    (cell,) = matrix.cells
    assert (cell.ending, cell.blocked) == ("blocked", (Blocked("book", "the tool has no recover="),))
    assert [(problem.tool, problem.found) for problem in matrix.problems] == [("mail", 2)]
