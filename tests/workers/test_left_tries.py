"""A try that goes on in this process is waited for, whatever became of the attempt that began it (DESIGN 3.1)."""

import contextlib
import contextvars
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from gnl_middleware import GnlError, Journal, LeaseLostError, journaled, never
from gnl_middleware.testing import ManualClock
from tests.functions.scripted import PATIENCE
from tests.workers.programs import RUN


class Body:
    """A body that stays where it is until it may go on."""

    def __init__(self):
        self.ran, self.inside, self.go = 0, threading.Event(), threading.Event()

    def __call__(self):
        self.ran += 1
        self.inside.set()
        self.go.wait(PATIENCE)
        return "charged"


@pytest.fixture
def body():
    """The body, which ends at the latest when the test is over."""
    made = Body()
    yield made
    made.go.set()


@pytest.fixture
def begin(body):
    """Begins work on a thread of its own, in the context around; gives its future."""
    with ThreadPoolExecutor(2) as pool:
        yield lambda *work: pool.submit(contextvars.copy_context().run, *work)
        body.go.set()


def charging(body, **options):
    """A function whose body it is."""
    return journaled(body, replay=never(**options) if options else never, name="charge")


def left(journal, begin, body, charge, **options):
    """A call in an attempt that was left while its body ran."""
    with journal.run(RUN, grace=0.0, **options):
        call = begin(charge)
        assert body.inside.wait(PATIENCE)
    return call


def test_try_that_ends_while_the_next_attempt_reads(journal, begin, body, monkeypatch):
    """A body that ends while the next attempt reads the journal is no dead one: what it gave is read back."""
    charge = charging(body)
    call = left(journal, begin, body, charge)
    database = journal._database()
    load = database.load

    def read_slowly(*arguments):
        found = load(*arguments)
        body.go.set()
        call.exception(PATIENCE)
        return found

    monkeypatch.setattr(database, "load", read_slowly)
    with journal.run(RUN):
        assert charge() == "charged"
    assert body.ran == 1


@pytest.mark.parametrize("locked", [True, False], ids=["lock", "no lock"])
def test_try_whose_body_has_not_begun(journal, begin, body, watch_points, locked):
    """An attempt is left between a call's intent and its body: the next one waits until it is sure that none begins."""
    charge, written, begun = charging(body), threading.Event(), threading.Event()

    def hold_up(point, *_):
        if point == "after_intent" and not written.is_set():
            written.set()
            begun.wait(PATIENCE)

    watch_points(hold_up)
    with journal.run(RUN, grace=0.0, lock=locked):
        call = begin(charge)
        assert written.wait(PATIENCE)
    with journal.run(RUN, lock=locked):
        begun.set()
        body.go.set()
        assert charge() == "charged"
    assert isinstance(call.exception(PATIENCE), LeaseLostError)
    assert body.ran == 1


@pytest.mark.parametrize("early", [True, False], ids=["opened before", "opened after"])
def test_try_whose_claim_ran_out(tmp_path, begin, body, early):
    """The body of a worker that was left outlives its claim: another worker of this process waits for it all the same."""
    clock, charge = ManualClock(), charging(body)
    with Journal(tmp_path / "runs.db", clock=clock) as journal, contextlib.ExitStack() as stack:

        def open_another():
            stack.enter_context(journal.run(RUN, lock=False, lease=600.0))

        if early:
            open_another()
        call = contextvars.Context().run(left, journal, begin, body, charge, lock=False, lease=5.0)
        clock.advance(60.0)
        if not early:
            open_another()
        again = begin(charge)
        with contextlib.suppress(TimeoutError):
            again.result(0.2)
        body.go.set()
        assert again.result(PATIENCE) == "charged"
        with contextlib.suppress(GnlError):
            call.result(PATIENCE)
    assert body.ran == 1
