"""What ``recover`` says of one try says nothing of the next one, whichever worker makes it (DESIGN 3.1)."""

import contextlib
import contextvars
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from gnl_middleware import Done, NotDone, journaled, never
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
