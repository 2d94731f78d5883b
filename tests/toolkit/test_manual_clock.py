"""Time turned by hand decides when a lease ends, and never goes back by itself."""

import pytest

from gnl_middleware import Journal, journaled, safe
from gnl_middleware.testing import ManualClock


def test_time_passes_only_when_it_is_turned():
    """Both readings stand still, and advance together."""
    clock = ManualClock(start=1000.0)

    before = (clock.time(), clock.monotonic())
    clock.advance(2.5)

    assert before == (1000.0, 0.0)
    assert (clock.time(), clock.monotonic()) == (1002.5, 2.5)


def test_a_wall_clock_that_is_set_moves_alone():
    """Setting the clock back changes the time of day, not the time that has passed."""
    clock = ManualClock(start=1000.0)
    clock.advance(10)

    clock.set_time(500.0)

    assert (clock.time(), clock.monotonic()) == (500.0, 10.0)
    with pytest.raises(ValueError, match="time does not go back"):
        clock.advance(-1)


def test_a_journal_reads_the_clock(tmp_path, manual_clock):
    """What the journal writes down is the time of the clock that it was given, here by the plugin's fixture."""
    call = journaled(lambda: 1, replay=safe, name="call")
    with Journal(tmp_path / "runs.db", clock=manual_clock) as journal:
        with journal.run("run"):
            manual_clock.advance(5)
            call()
        (step,) = journal.steps("run")

    assert step.started_at == manual_clock.time() == 1_700_000_005.0
