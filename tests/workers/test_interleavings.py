"""One worker is held up at each of its points, another one works meanwhile, and then the first goes on, fails or dies.

Whatever comes of it: no side effect happens twice, no model is asked twice unless its answer was cut off, nobody waits for
ever, whoever comes to the end has the same conversation, and a replay has it, too.
"""

import contextlib
import contextvars
import threading
from concurrent.futures import ThreadPoolExecutor, wait

import pytest

from gnl_middleware import Journal, SideEffectRetryBlockedError, journaled, never, safe
from gnl_middleware.adapter import perform, session_for
from gnl_middleware.testing import POINTS
from tests.functions.asking import model_call, tool_call, use
from tests.functions.scripted import PATIENCE, RUN, Killed

STEPS = {1: "at", 2: "plan", 3: "look_up", 4: "pay", 5: "report"}
SOON = 0.05
HELD = [(number, point) for number in STEPS for point in POINTS]


class Job:
    """An agent that plans, looks up, pays and reports; what it does happens here."""

    def __init__(self):
        self.happened = []

    def work(self, run):
        """The conversation: what each step gave."""
        look_up = journaled(lambda: self._does("look_up"), replay=safe, name="look_up")
        at = run.value("at", lambda: self._does("at"))
        planned = self._asks("plan", [("c-1", "pay", {"order": "o-7"})])
        found = look_up()
        paid = use(tool_call(never), lambda: self._does("pay"))
        return [at, planned, found, paid, self._asks(f"report {paid}", [])]

    def _asks(self, question, calls):
        call = model_call(question, calls)
        return perform(session_for(name="model"), call, lambda: self._does(question.split()[0]))

    def _does(self, what):
        self.happened.append(what)
        return f"{what} {self.happened.count(what)}"


class Held:
    """Holds one worker's thread up at one point of one step, and then lets it go on or kills it."""

    def __init__(self, number, point, *, kills, locked):
        self.at, self.kills, self.locked, self._worker = (number, point), kills, locked, None
        self.there, self.go = threading.Event(), threading.Event()

    def __str__(self):
        return f"{self.at[0]}-{self.at[1]}"

    def watch(self, point, number, _name):
        """Called at each point, on the thread that comes to it."""
        if (number, point) == self.at and threading.get_ident() == self._worker and not self.there.is_set():
            self.there.set()
            self.go.wait(PATIENCE)
            if self.kills:
                raise Killed

    def worker(self, work):
        """What the worker does, on its own thread."""
        self._worker = threading.get_ident()
        return work()


def ending(future):
    """How a worker ended: its conversation, or its error; one that hangs fails the test."""
    try:
        return future.result(PATIENCE)
    except (Exception, Killed) as error:
        if isinstance(error, TimeoutError):
            raise
        return error


def worker(journal, job, **options):
    """One worker's attempt."""
    with journal.run(RUN, **options) as run:
        return job.work(run)


def interleaved(journal, held, job, other):
    """Both workers' endings; with a lock the second is the next attempt, after the first was left."""

    def work_beside():
        return worker(journal, job, lock=held.locked)

    with ThreadPoolExecutor(2) as pool:

        def begin(work):
            return pool.submit(contextvars.copy_context().run, work)

        if held.locked:
            with contextlib.suppress(Killed), journal.run(RUN, grace=0.0) as run:
                first = begin(lambda: held.worker(lambda: job.work(run)))
                assert held.there.wait(PATIENCE)
        else:
            first = begin(lambda: held.worker(lambda: worker(journal, job, lock=False)))
            assert held.there.wait(PATIENCE)
        second = begin(lambda: other.worker(work_beside) if other else work_beside())
        # It has come as far as it can, or nearly: what is checked holds in any case.
        other.there.wait(SOON) if other else wait([second], SOON)
        held.go.set()
        if other is not None:
            wait([first], SOON)
            other.go.set()
        return ending(first), ending(second)


def check(journal, job, held, endings):
    """What holds whichever way they came."""
    first, second = endings
    number, _ = held.at
    happened = {what: job.happened.count(what) for what in STEPS.values()}
    cut_off = {STEPS[number]} if held.kills else set()
    assert {what for what, times in happened.items() if times > 1} <= cut_off - {"pay"}
    if "pay" in cut_off and isinstance(second, SideEffectRetryBlockedError):
        return
    assert isinstance(second, list), second
    assert first == second or not isinstance(first, list)
    with Journal(journal.url) as again:
        assert worker(again, Job(), offline=True, lock=held.locked) == second


def explored(folder, held, watch_points, other=None):
    """One interleaving, in a journal of its own."""

    def watch(*reached):
        for each in (held, other):
            if each is not None:
                each.watch(*reached)

    watch_points(watch)
    with Journal(folder / f"{held}-{other}.db") as journal:
        job = Job()
        check(journal, job, held, interleaved(journal, held, job, other))


KILLS = pytest.mark.parametrize("kills", [False, True], ids=["goes on", "dies"])
LOCKED = pytest.mark.parametrize("locked", [False, True], ids=["no lock", "lock"])


@KILLS
@LOCKED
def test_one_is_held_up(tmp_path, watch_points, locked, kills):
    """The first worker at each point of each step, while the second one goes as far as it can."""
    for number, point in HELD:
        explored(tmp_path, Held(number, point, kills=kills, locked=locked), watch_points)


@pytest.mark.long
@KILLS
@LOCKED
@pytest.mark.parametrize(("number", "point"), HELD)
def test_both_are_held_up(tmp_path, watch_points, locked, kills, number, point):  # noqa: PLR0917
    """The second worker, too, is held up at each of its points while the first one goes on."""
    for other in HELD:
        held = Held(number, point, kills=kills, locked=locked)
        explored(tmp_path, held, watch_points, Held(*other, kills=False, locked=locked))
