"""A lost lease is noticed by the fence, by the deadline and by the renewal: each alone is enough.

Each test takes the other two away: a clock that stands still has no deadline; a long lease is not renewed for seconds; and
what is noticed before the journal is asked has not been noticed by the fence.
"""

import contextlib

import pytest

from gnl_middleware import LeaseLostError, journaled, keyed, never, safe
from tests.leases.clocks import TurnedClock
from tests.leases.workers import RUN

LONG, SHORT = 3600.0, 0.5


class Effects:
    """Functions of each label that note when they run."""

    def __init__(self):
        self.ran = []
        self.calls = {
            label: journaled(self._body(label), replay=policy, name=label)
            for label, policy in {"never": never, "keyed": keyed, "safe": safe}.items()
        }

    def _body(self, label):
        def body(number=1):
            self.ran.append((label, number))
            return number

        return body


@pytest.fixture
def functions():
    """Functions of each label."""
    return Effects()


@contextlib.contextmanager
def losing(journal, **options):
    """Open a run that will lose its lease, and leave it as one must: by LeaseLostError."""
    with pytest.raises(LeaseLostError), journal.run(RUN, **options) as run:
        yield run


def take_over(journal):
    """Another worker takes the run and leaves it again."""
    with journal.run(RUN) as run:
        return run


@pytest.mark.parametrize("label", ["never", "keyed"])
def test_stale_fence_alone_stops_an_effect(frozen, ahead, functions, label):
    """With neither deadline nor renewal, the intent of a side effect carries a stale fence: refused, nothing runs."""
    with losing(frozen, lease=LONG) as run:
        take_over(ahead)
        assert run.session.lease.lost is None

        with pytest.raises(LeaseLostError) as caught:
            functions.calls[label]()

        assert caught.value.reason == "fence"
    assert functions.ran == []
    assert frozen.steps(RUN) == []


def test_stale_fence_stops_the_effect_after_a_safe_step(frozen, ahead, functions):
    """The intent of a safe step is not awaited, so its body may run; its outcome notices, and nothing more starts."""
    with losing(frozen, lease=LONG):
        take_over(ahead)

        functions.calls["safe"]()
        with pytest.raises(LeaseLostError) as caught:
            functions.calls["safe"](2)
        with pytest.raises(LeaseLostError):
            functions.calls["never"]()

        assert caught.value.reason == "fence"
    assert functions.ran == [("safe", 1)]
    assert frozen.steps(RUN) == []


def test_stale_fence_is_found_by_leaving(frozen, ahead):
    """A run that ends without another call still hears that its lease was lost."""
    with pytest.raises(LeaseLostError) as caught, frozen.run(RUN, lease=LONG):
        take_over(ahead)

    assert caught.value.reason == "fence"


@pytest.mark.parametrize("label", ["never", "keyed", "safe"])
def test_deadline_alone_stops_every_step(open_journal, functions, label):
    """With an untouched fence and no renewal, a deadline that has passed stops the step before anything is written."""
    clock = TurnedClock(frozen=True)
    journal = open_journal(clock=clock)

    with losing(journal, lease=LONG) as run:
        writes = run.session.database.counters.writes
        clock.ahead = LONG

        with pytest.raises(LeaseLostError) as caught:
            functions.calls[label]()

        assert caught.value.reason == "deadline"
        assert run.session.database.counters.writes == writes
    assert functions.ran == []


def test_deadline_counts_from_before_the_lease_was_asked_for(open_journal, functions):
    """The deadline is the lease's length after the moment at which it was asked for: one tick less still works."""
    clock = TurnedClock(frozen=True)
    journal = open_journal(clock=clock)

    with journal.run(RUN, lease=LONG):
        clock.ahead = LONG - 0.001
        assert functions.calls["never"]() == 1


def test_deadline_between_intent_and_body_stops_the_body(open_journal, functions, watch_points, eventually):
    """A worker that froze between its intent and its body does not begin the body: the deadline is looked at again."""
    clock = TurnedClock(frozen=True)
    journal = open_journal(clock=clock)

    def freeze(point, _number, _name):
        clock.ahead = LONG if point == "after_intent" else 0.0

    watch_points(freeze)
    with losing(journal, lease=LONG), pytest.raises(LeaseLostError) as caught:
        functions.calls["never"]()

    assert caught.value.reason == "deadline"
    assert functions.ran == []
    # The intent is taken back: the body has certainly not begun, so nobody has to settle it.
    eventually(lambda: journal.steps(RUN) == [])


def test_renewal_alone_stops_an_effect(frozen, ahead, functions, eventually):
    """With no deadline and before the fence is asked, a renewal that is refused stops the next effect."""
    with losing(frozen, lease=SHORT) as run:
        take_over(ahead)
        eventually(lambda: run.session.lease.lost == "renewal")
        writes = run.session.database.counters.writes

        with pytest.raises(LeaseLostError) as caught:
            functions.calls["never"]()

        assert caught.value.reason == "renewal"
        assert run.session.database.counters.writes == writes
    assert functions.ran == []


def test_lost_lease_cannot_be_swallowed(frozen, ahead, functions):
    """Whoever swallows LeaseLostError gets it again from the next call, and at the latest from leaving the run."""
    with losing(frozen, lease=LONG):
        take_over(ahead)

        for call in functions.calls.values():
            with contextlib.suppress(Exception):
                functions.calls["never"]()
            with pytest.raises(LeaseLostError):
                call()

    assert functions.ran == []


def test_lost_lease_says_what_to_do(frozen, ahead):
    """The error names the run, how the loss was noticed, and how to go on."""
    with pytest.raises(LeaseLostError) as caught, frozen.run(RUN, lease=LONG):
        take_over(ahead)

    assert caught.value.run_id == RUN
    for part in (RUN, "fence", "open the run again"):
        assert part in str(caught.value)


def test_fence_grows_with_every_change_of_hands(open_journal):
    """Each time the run changes hands its fence grows, also from one worker to itself."""
    journal = open_journal()

    fences = [take_over(journal).session.lease.fence for _ in range(3)]

    assert fences == [1, 2, 3]
