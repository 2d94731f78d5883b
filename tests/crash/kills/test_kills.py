"""Workers that are killed at random moments, and started again until the run has ended."""

import itertools
import random
from collections import Counter
from pathlib import Path

import pytest

from tests.crash.kills.nursery import Course, Nursery
from tests.crash.kills.worker import KINDS, Job
from tests.crash.kills.world import World, judge
from tests.postgres.server import create_database

_RUNS_PER_JOURNAL = 8
_MOST_KILLS = 4
"""A step may be tried five times by default: more kills than that and a run stops for a good reason."""


@pytest.fixture(scope="module")
def nursery():
    """Where the processes come from."""
    with Nursery() as opened:
        yield opened


def courses(folder: Path, seed: int, url: str | None = None, *, lock: bool = True):
    """Runs of all kinds in turn, several in one journal, each to be killed one to four times."""
    chance = random.Random(seed)
    for number, (shape, way) in enumerate(itertools.cycle(KINDS)):
        place = folder / f"{number}-{shape}-{way}"
        place.mkdir()
        journal = folder / f"runs-{number // _RUNS_PER_JOURNAL}.db"
        job = Job(shape, way, f"order-{number}", str(place), url or str(journal), lock)
        yield Course(job, chance.randint(1, _MOST_KILLS), chance.getrandbits(32))


def campaign(nursery, folder, seed, kills, **options):
    """Kill so many workers; gives the runs that could not be finished, and what was counted."""
    counts, unfinished, bad = Counter(), [], []
    endless = courses(folder, seed, **options)
    while counts["kills"] < kills:
        batch = list(itertools.islice(endless, len(KINDS)))
        for course, killed in zip(batch, nursery.run(batch), strict=True):
            counts["runs"] += 1
            counts["kills"] += max(0, killed)
            report, verdict = course.job.report(), judge(course.job.world.entries())
            expected = f"turn {_last_turn(course.job.shape)} of outer"
            ended = [report.get(name, "").strip() for name in ("reply", "again", "status")]
            if killed < 0 or ended != [expected, expected, "completed"]:
                unfinished.append(f"{course}, killed {killed} times: {report.get('error', report)}")
            if verdict.doubled or verdict.repeated or verdict.lost:
                bad.append(f"{course}: {verdict}")
            counts["doubled effects"] += len(verdict.doubled)
            counts["repeated model calls"] += len(verdict.repeated)
            counts["lost outcomes"] += len(verdict.lost)
            counts["recover asked"] += verdict.recovered
            counts["effects it found"] += verdict.found
    counts["unfinished"] = len(unfinished)
    return unfinished, bad, counts


def _last_turn(shape: str) -> int:
    return {"sequential": 4, "parallel": 2, "nested": 2}[shape]


def _check(nursery, folder, figures, *, seed, kills, **options):
    unfinished, bad, counts = campaign(nursery, folder, seed, kills, **options)

    figures(
        f"SIGKILL at random moments (seed {seed})",
        **{name.replace(" ", "_"): counts[name] for name in sorted(counts)},
    )
    assert not unfinished, "\n".join(unfinished)
    assert not bad, "\n".join(bad)
    assert counts["kills"] >= kills


def test_workers_killed_at_random(nursery, tmp_path, figures):
    """Sixty kills at random moments: no effect twice, no finished model call again, no outcome lost, every run ends."""
    _check(nursery, tmp_path, figures, seed=1, kills=60)


@pytest.mark.long
def test_many_workers_killed_at_random(nursery, tmp_path, figures):
    """Five hundred kills at random moments: no effect twice, no finished model call again, no outcome lost, every run ends."""
    _check(nursery, tmp_path, figures, seed=2, kills=500)


@pytest.mark.long
@pytest.mark.parametrize("lock", [True, False], ids=["lock", "no lock"])
def test_workers_on_postgresql_killed_at_random(nursery, tmp_path, figures, server_url, lock):
    """The same with a journal in PostgreSQL, with a lock and without: a hundred and fifty kills."""
    _check(nursery, tmp_path, figures, seed=3, kills=150, url=create_database(server_url), lock=lock)


@pytest.mark.long
def test_workers_without_a_lock_killed_at_random(nursery, tmp_path, figures):
    """The same without a lock in a file: whoever is killed leaves a claim behind, and it is void."""
    _check(nursery, tmp_path, figures, seed=4, kills=150, lock=False)


def test_judge_sees_what_must_never_be(tmp_path):
    """An effect that happens twice, a finished model call that is made again and a lost outcome are each counted."""
    world = World(tmp_path / "world")
    world.note("asked", "outer/0")
    world.note("recorded", "outer/0")
    world.note("asked", "outer/0")
    for key, policy in (("k1", "never"), ("k1", "never"), ("k2", "keyed"), ("k2", "keyed"), ("k3", "keyed")):
        world.note("effect", f"effect under {policy}", key=key, policy=policy, result="")
    world.note("read", "lookup:1")
    world.note("read", "lookup:1")
    world.note("given", "lookup:1", value="a")
    world.note("given", "lookup:1", value="b")
    world.note("read", "lookup:1")

    verdict = judge(world.entries())

    assert verdict.doubled == ("effect under never", "effect under keyed")
    assert verdict.repeated == ("outer/0",)
    assert verdict.lost == ("lookup:1", "lookup:1")
