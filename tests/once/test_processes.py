"""The same business in several processes at once: one effect, whoever is fast, slow, killed or asleep (DESIGN 3.4)."""

import contextlib

import pytest

from gnl_middleware import LeaseLostError, SideEffectRetryBlockedError
from gnl_middleware.testing import observe_points
from tests.once.bank import Bank
from tests.once.refunds import run_status
from tests.once.workers import Worker

RACES = [pytest.param(12, id="12"), pytest.param(500, id="500", marks=pytest.mark.long)]
both_answers = pytest.mark.parametrize("answers", ["looks", "no hook"])
in_doubt = pytest.mark.parametrize("point", ["after_intent", "before_body", "after_body", "before_outcome"])


def racer(line, folder, name, races, asynchronous):
    """Ask for the refund of one order after the other, each in a run of its own, whenever the test says so."""
    bank = Bank(folder, asynchronous=asynchronous)
    bank.refund_in(f"{name}-warm", name, order=f"warm-{name}")
    for race in range(races):
        line.send("ready")
        line.recv()
        line.send(bank.refund_in(f"{name}-{race}", name, order=f"o-{race}")[0])


def owner_that_stays(line, folder, answers, point, lease):
    """Ask for the refund, and stay at a point of its step until the test says so."""

    def stay(reached, _number, _name):
        if reached == point:
            line.send("there")
            line.recv()

    bank = Bank(folder, answers)
    observe_points(stay)
    with bank.journal() as journal:
        try:
            with journal.run("owner", lease=lease):
                line.send(bank.refund("o-7", "owner"))
        except LeaseLostError:
            line.send("lost its lease")


def one_that_waits(line, folder, answers):
    """Ask for the refund that another run owns; say so when it was not to be had at once."""
    arrivals = []

    def tell(point, number, _name):
        if point == "before_intent":
            arrivals.append(number)
            if len(arrivals) == 2:
                line.send("waits")

    observe_points(tell)
    try:
        line.send(Bank(folder, answers).refund_in("waiter", "waiter")[0])
    except SideEffectRetryBlockedError:
        line.send("blocked")


def race_for(folder, races, asynchronous, *names):
    """Let processes race for the refund of each order; gives what they said of each."""
    with contextlib.ExitStack() as stack:
        workers = [stack.enter_context(Worker(racer, folder, name, races, asynchronous)) for name in names]
        said = []
        for _ in range(races):
            assert {worker.hear() for worker in workers} == {"ready"}
            for worker in workers:
                worker.tell()
            said.append({worker.hear() for worker in workers})
    return said


class TestStartedTogether:
    @pytest.mark.parametrize("races", RACES)
    @pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
    def test_two(self, tmp_path, races, asynchronous):
        """Two processes that ask for one refund at the same moment, again and again, make it once each time."""
        said = race_for(tmp_path, races, asynchronous, "one", "two")

        assert [len(Bank(tmp_path).effects(f"o-{race}")) for race in range(races)] == [1] * races
        assert [len(answers) for answers in said] == [1] * races

    def test_a_crowd(self, tmp_path):
        """Six workers get the same messages redelivered at once: one refund each, six times the same answer."""
        said = race_for(tmp_path, 3, False, *"abcdef")

        assert [len(Bank(tmp_path).effects(f"o-{race}")) for race in range(3)] == [1] * 3
        assert [len(answers) for answers in said] == [1] * 3


@both_answers
@in_doubt
class TestOwnerAliveElsewhere:
    def test_waits_as_long_as_it_takes(self, tmp_path, point, answers):
        """A live owner is waited for, even where `recover` could be asked: nobody runs beside it."""
        with Worker(owner_that_stays, tmp_path, answers, point, 30) as owner:
            assert owner.hear() == "there"
            with Worker(one_that_waits, tmp_path, answers) as waiter:
                assert waiter.hear() == "waits"
                with Bank(tmp_path).journal() as journal:
                    listed = journal.steps("waiter")
                owner.tell()
                said = [owner.hear(), waiter.hear()]

        assert (listed, said) == ([], ["refunded o-7 for owner"] * 2)
        assert len(Bank(tmp_path).effects()) == 1

    def test_kill_9_is_noticed_at_once(self, tmp_path, point, answers):
        """When the owner is killed while it is waited for, the waiter settles it without waiting for its lease."""
        happened = point in ("after_body", "before_outcome")
        with Worker(owner_that_stays, tmp_path, answers, point, 3600) as owner:
            assert owner.hear() == "there"

            with Worker(one_that_waits, tmp_path, answers) as waiter:
                assert waiter.hear() == "waits"
                owner.kill()
                said = waiter.hear()

        found = "refunded o-7: found" if happened else "refunded o-7 for waiter"
        assert said == (found if answers == "looks" else "blocked")
        assert len(Bank(tmp_path).effects()) == (happened or answers == "looks")


def test_an_owner_that_fell_silent_before_its_effect(tmp_path):
    """An owner that stood still until its lease ran out has lost its place: woken, it does not run as well."""
    with Worker(owner_that_stays, tmp_path, "looks", "after_intent", 0.5) as owner:
        assert owner.hear() == "there"
        owner.stop()

        said = Bank(tmp_path).refund_in("waiter", "waiter")
        owner.go_on()
        owner.tell()
        woken = owner.hear()

    assert (said, woken) == (["refunded o-7 for waiter"], "lost its lease")
    assert len(Bank(tmp_path).effects()) == 1


def test_a_second_attempt_of_the_owner_settles_for_both(tmp_path):
    """The owner was killed and is retried: what its own attempt finds is what those who ask later get."""
    with Worker(owner_that_stays, tmp_path, "looks", "after_body", 3600) as owner:
        assert owner.hear() == "there"
        owner.kill()

    with Worker(owner_that_stays, tmp_path, "looks", "before_intent", 30) as again:
        # Its record says that the refund happened, so it never comes to the point.
        found = again.hear()

    assert found == "refunded o-7: found"
    assert Bank(tmp_path).refund_in("waiter", "waiter") == [found]
    assert len(Bank(tmp_path).effects()) == 1
    with Bank(tmp_path).journal() as journal:
        assert run_status(journal, "waiter") == "completed"
