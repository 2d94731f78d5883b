"""Made-up programs whose workers die at random points: the last worker ends as if nobody had died."""

import random
from collections import Counter

import pytest

from gnl_middleware import Journal
from gnl_middleware.identity import idempotency_key
from tests.functions.crashing import may_die
from tests.functions.random_program import RUN, World, attempt, die_at_the

SLICE = 13
WHOLE = 400
DEATHS = 3


def check(folder, seed, watch_points):
    """Let workers die, finish, and compare with a program that nobody disturbed."""
    quiet, disturbed = folder / "quiet", folder / "disturbed"
    quiet.mkdir()
    disturbed.mkdir()
    points = []
    watch_points(lambda *point: points.append(point))
    expected = attempt(quiet, seed)
    watch_points(None)
    source = random.Random(seed)

    for _ in range(DEATHS):
        may_die(die_at_the, source.randint(1, len(points)), disturbed, seed)
    results = attempt(disturbed, seed)
    again = attempt(disturbed, seed)

    assert results == again == expected
    assert once_where_promised(disturbed)
    assert set(World(disturbed).effects()) == set(World(quiet).effects())


def once_where_promised(folder):
    """Whether every `never` step happened once, and no `keyed` step more often than it was tried."""
    happened = Counter(World(folder).effects())
    with Journal(folder / "runs.db") as journal:
        steps = [step for step in journal.steps(RUN) if step.name in ("call", "flaky")]
    # The intent of a `safe` step may die with its worker before it is written, so its tries are not all known.
    allowed = {"never": lambda step: 1, "keyed": lambda step: step.attempts, "safe": lambda step: 1 + DEATHS}
    limits = {idempotency_key(step.run_id, step.key): allowed[step.policy](step) for step in steps}
    return all(count <= limits[key] for key, count in happened.items())


@pytest.mark.parametrize("seed", range(SLICE))
def test_deaths_change_nothing(tmp_path, watch_points, seed):
    """However often workers die in a program, its results are those of an undisturbed one, and `never` happens once."""
    check(tmp_path, seed, watch_points)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(SLICE, WHOLE))
def test_deaths_change_nothing_in_many_programs(tmp_path, watch_points, seed):
    """The same for many more programs."""
    check(tmp_path, seed, watch_points)
