"""The power is lost: whatever was not synced is gone, and the promises of DESIGN section 5 hold."""

import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.crash.power.disk import Disk, operations, without_syncs
from tests.crash.power.promises import broken_promises, happened, look, lose_power_at_every_moment, resume
from tests.crash.power.worker import SCENARIOS, WORLD

_COMPILER = shutil.which("cc")
# Where everything must be checked, a missing compiler is a failure.
pytestmark = pytest.mark.skipif(
    (sys.platform != "linux" or _COMPILER is None) and not os.environ.get("CI"),
    reason="needs Linux and a C compiler (apt-get install gcc)",
)

_ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def recorder(tmp_path_factory):
    """The library that records what a process does to its files."""
    library = tmp_path_factory.mktemp("recorder") / "recorder.so"
    source = Path(__file__).with_name("recorder.c")
    options = ["-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror"]
    subprocess.run([_COMPILER, *options, "-o", library, source], check=True)
    return library


@pytest.fixture(scope="module")
def record(recorder, tmp_path_factory):
    """What a process does in a scenario, each scenario recorded once."""
    recorded = {}

    def give(scenario):
        if scenario not in recorded:
            log, folder = tmp_path_factory.mktemp("log") / "log", tmp_path_factory.mktemp("disk")
            subprocess.run(
                [sys.executable, "-W", "error", "-m", "tests.crash.power.worker", scenario, folder],
                cwd=_ROOT,
                env=os.environ | {"LD_PRELOAD": recorder, "DISK_LOG": log, "DISK_FOLDER": folder},
                check=True,
            )
            recorded[scenario] = list(operations(log.read_bytes()))
        return recorded[scenario]

    return give


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_power_lost_at_every_moment(record, figures, scenario):
    """No effect without its durable intent, no intent without its durable reply, and what was left cleanly is complete."""
    losses = lose_power_at_every_moment(record(scenario))

    figures(
        f"power lost at every moment, {scenario}",
        moments=losses.moments,
        journals_found=losses.journals,
        promises_broken=len(losses.broken),
        outcomes_lost_at_the_worst_moment=losses.most_lost,
        ms_since_the_oldest_of_them=round(1000 * losses.oldest_lost),
    )
    assert losses.broken == []
    assert losses.journals > 2


def test_checkpoint_is_among_the_moments(record):
    """The scenario that must make SQLite write its log back in the middle of a run does."""
    names, written_back = {}, []
    for operation in record("checkpointed"):
        if operation.what == "o":
            names[operation.file] = operation.name
        elif operation.what == "w" and names[operation.file] == WORLD and b'"left"' in operation.content:
            break
        elif operation.what == "w" and names[operation.file] == "runs.db":
            written_back.append(operation.offset)

    assert max(written_back) > 1_000_000


def test_what_is_lost_is_the_last_moment(record):
    """In a run that never rests and never waits for the disk, the oldest outcomes are synced all the same, soon."""
    losses = lose_power_at_every_moment(record("steady"))

    # 20 ms of work a turn: 50 ms hold three turns of two outcomes. A slow machine slows both down alike.
    assert 0 < losses.most_lost < len(record_of_outcomes(record("steady"))) / 4


def record_of_outcomes(done):
    """The outcomes that a process was given."""
    disk = Disk(WORLD)
    for operation in done:
        disk.apply(operation)
    return [entry for entry in happened(disk.world) if "given" in entry]


def lose_power_by_chance(done, scenario, generator):
    """Lose power at a random moment, with random remains of what was not synced; gives what is wrong afterwards."""
    disk = Disk(WORLD)
    last = generator.randrange(len(done))
    for operation in done[: last + 1]:
        disk.apply(operation)
    files = disk.after_loss(generator if generator.random() < 0.8 else None)
    wrong = list(broken_promises(look(files), happened(disk.world)))
    return [f"operation {last}: {text}" for text in wrong + resume(scenario, files, disk.world)]


def _check_by_chance(record, figures, *, seed, losses):
    generator, wrong = random.Random(seed), []
    for number in range(losses):
        scenario = list(SCENARIOS)[number % len(SCENARIOS)]
        wrong += lose_power_by_chance(record(scenario), scenario, generator)
    figures(f"power lost by chance, and gone on (seed {seed})", losses=losses, wrong=len(wrong))
    assert wrong == []


def test_power_lost_by_chance(record, figures):
    """Whatever part of the unsynced remains, the journal opens, nothing happens twice, and the runs can be finished."""
    _check_by_chance(record, figures, seed=1, losses=15)


@pytest.mark.long
def test_power_lost_by_chance_many_times(record, figures):
    """The same at many moments."""
    _check_by_chance(record, figures, seed=2, losses=600)


def test_disk_that_lies_is_noticed(record):
    """Where the disk only says that it has synced, promises are broken: the checks above can fail."""
    losses = lose_power_at_every_moment(without_syncs(record("alone")))

    assert any("intent is not there" in text for text in losses.broken)
