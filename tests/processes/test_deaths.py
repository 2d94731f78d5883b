"""Processes that die at random moments: no effect twice, no acknowledged answer lost, and every run gets to its end."""

from collections import Counter

import pytest

from gnl_middleware import Journal
from tests.processes import dying
from tests.processes.children import Child
from tests.processes.dying import RUN, STEPS, World


def check(world):
    """A run that has got to its end, after any number of deaths."""
    effects, acknowledged = world.effects(), world.acknowledged()
    # Nothing happened twice, and nothing was left out.
    assert Counter(number for _, number, _ in effects) == dict.fromkeys(range(STEPS), 1)
    with Journal(world.path) as journal:
        (record,) = journal.runs()
        steps = journal.steps(RUN)
    assert record.status == "completed"
    recorded = {(step.name, step.arguments["number"]): step.value for step in steps}
    assert len(recorded) == len(steps) == 2 * STEPS
    # What any attempt's agent has seen is what the journal holds: no acknowledged outcome was lost or replaced.
    assert {(name, number, answer) for name, number, answer in acknowledged} == {
        (name, number, answer) for (name, number), answer in recorded.items()
    }
    # And it is what has happened.
    assert {receipt for _, _, receipt in effects} <= set(recorded.values())
    return record.attempts


def run_to_the_end(tmp_path, program, seeds, deaths, patience):
    """Let the processes of some runs die; gives how many died, of how many attempts."""
    with Child(dying.die, tmp_path, program, seeds, deaths, patience=patience) as child:
        assert child.hear() == 1  # thread: a fork would lose any other
        endings = [child.hear() for _ in seeds]
        assert child.end() == (0, "")
    assert [code for _, code in endings] == [0] * len(seeds)
    for seed in seeds:
        check(World(tmp_path / str(seed)))
    return sum(killed for killed, _ in endings)


@pytest.mark.parametrize("program", sorted(dying.PROGRAMS))
def test_deaths_at_random_moments(tmp_path, program):
    """A run whose processes are killed at random moments has each effect once and loses no answer that it was given."""
    killed = run_to_the_end(tmp_path, program, seeds=[1, 2], deaths=4, patience=60)

    assert (
        killed >= 2
    )  # some got to their end before the blow; a slice in which nobody dies would prove nothing


@pytest.mark.long
@pytest.mark.parametrize("program", sorted(dying.PROGRAMS))
def test_many_deaths_at_random_moments(tmp_path, program):
    """The same for a hundred deaths of each program."""
    killed = run_to_the_end(tmp_path, program, seeds=list(range(3, 28)), deaths=4, patience=900)

    assert killed >= 40
