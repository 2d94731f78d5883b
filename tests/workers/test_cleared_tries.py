"""What ``recover`` says of one try says nothing of the next one, whichever worker makes it (DESIGN 3.1)."""

import contextlib
import contextvars
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from gnl_middleware import Done, NotDone, journaled, never
from gnl_middleware.adapter import perform_stream
from gnl_middleware.session.claims import renew
from tests.functions.asking import model_call
from tests.functions.scripted import PATIENCE, Killed
from tests.workers.programs import RUN


@pytest.fixture
def begin():
    """Begins work on a thread in a context of its own; gives its future."""
    with ThreadPoolExecutor(2) as pool:
        yield lambda *work: pool.submit(contextvars.Context().run, *work)


def charging(journal, body, recover=None):
    """A worker that charges without a lock; how its call ended."""
    charge = journaled(body, replay=never(recover=recover) if recover else never, name="charge")
    with contextlib.suppress(Killed), journal.run(RUN, lock=False):
        return charge()


def die():
    """A body that is cut off."""
    raise Killed


def test_claim_that_is_given_back_while_it_is_renewed(journal, monkeypatch):
    """A worker whose call is cut off while its claims are renewed has given the claim back, and lost nothing."""
    with journal.run(RUN, lock=False) as run:
        database, opened = run.session.database, run.session
        renew_claims = database.renew_claims

        def renew_late(at, tokens, **options):
            with contextlib.suppress(Killed):
                inside.throw(Killed)
            return renew_claims(at, tokens, **options)

        def held():
            call = model_call("pay order 7", [])
            yield from perform_stream(opened, call, lambda: iter("abc"), lambda chunk: chunk)

        inside = held()
        next(inside)
        monkeypatch.setattr(database, "renew_claims", renew_late)
        assert renew(opened)
        monkeypatch.undo()
        database.write(lambda _connection: None)
        assert [step.claimed for step in database.load(RUN, opened.clock.time())] == [False]
        assert (opened.lease.lost, opened.claims) == (None, set())


@pytest.mark.parametrize("answer", [Done("found"), NotDone()], ids=["done", "not done"])
def test_answer_about_one_try_is_none_about_the_next(journal, begin, answer):
    """While one worker asks whether a dead try happened, another one takes the call over and is cut off: it asks again."""
    charging(journal, die)
    asked, asking, answering = [], threading.Event(), threading.Event()
    inside, cut = threading.Event(), threading.Event()

    def recover(call):
        asked.append(call.attempts)
        if call.attempts > 1:
            return answer
        asking.set()
        answering.wait(PATIENCE)
        return NotDone()

    def be_cut_off():
        inside.set()
        cut.wait(PATIENCE)
        raise Killed

    first = begin(charging, journal, lambda: "charged", recover)
    assert asking.wait(PATIENCE)
    second = begin(charging, journal, be_cut_off, lambda _call: NotDone())
    assert inside.wait(PATIENCE)
    answering.set()
    cut.set()

    assert first.result(PATIENCE) == ("found" if isinstance(answer, Done) else "charged")
    assert second.result(PATIENCE) is None
    assert asked == [1, 2]
