"""Two workers that begin one run at the same moment: its work is done once (DESIGN 3.5)."""

import pytest

from tests.workers import programs

MODES = {"refused": {}, "waiting": {"on_busy": "wait"}, "without a lock": {"lock": False}}
EFFECTS = ("look_up", "charge", "print", "mail")


def check_races(crowd, place, effects, runs, options):
    """Every body ran once; whoever worked got the same; one that was refused may do the run later."""
    racers = crowd(programs.race, *[(place, effects, runs, options)] * 2)
    for number in range(runs):
        assert [racer.hear() for racer in racers] == ["ready"] * 2
        for racer in racers:
            racer.tell()
        said = [racer.hear() for racer in racers]
        results = [each for each in said if each != "busy"]
        assert results, number
        assert len(results[0]) == 5, results
        assert all(each == results[0] for each in results), said
        if options:
            assert len(results) == 2

    expected = {f"{what}-{number}": 1 for what in EFFECTS for number in range(runs)}
    assert programs.happened(effects) == expected


@pytest.mark.parametrize("mode", MODES)
def test_two_workers_begin_one_run_together(crowd, place, effects, mode):
    """However two workers meet at a run, each of its bodies runs once, and all who work get the same results."""
    check_races(crowd, place, effects, 8, MODES[mode])


@pytest.mark.long
@pytest.mark.parametrize("mode", MODES)
def test_two_workers_begin_two_hundred_runs_together(crowd, place, effects, mode):
    """The same, two hundred times."""
    check_races(crowd, place, effects, 200, MODES[mode])


def test_four_workers_at_one_run_without_a_lock(crowd, place, effects):
    """The same for four workers at once."""
    racers = crowd(programs.race, *[(place, effects, 2, {"lock": False})] * 4)
    for _ in range(2):
        assert [racer.hear() for racer in racers] == ["ready"] * 4
        for racer in racers:
            racer.tell()
        said = [racer.hear() for racer in racers]
        assert all(each == said[0] for each in said), said

    assert set(programs.happened(effects).values()) == {1}
    assert len(programs.happened(effects)) == 8
