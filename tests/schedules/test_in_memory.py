"""The same schedules with a checkpointer in memory: what ends the attempt is an exception, so the process goes on."""

import pytest

from tests.schedules.dying_here import die_and_resume
from tests.schedules.nursery import Course
from tests.schedules.programs.turns import REFUNDS, REPLY
from tests.schedules.sweeping import Ended

SUMMARISED = {f"refund o{order}": 1 for order in range(5)}
APPROVED = {"refund 7": 1, "refund 8": 1, "approved 1": 1}

PROGRAMS = [
    pytest.param("in_sequence", Ended(True, REPLY, REFUNDS), id="in sequence"),
    pytest.param("in_parallel", Ended(True, REPLY, REFUNDS), id="in parallel"),
    pytest.param("polling", Ended(True, "done: 4", {"poll 1": 4}), id="polling"),
    pytest.param("summarising", Ended(True, "done", SUMMARISED), id="summarising"),
    pytest.param(
        "asking_a_person",
        Ended(True, "done: refunded 7 | the person says yes | refunded 8", APPROVED),
        id="asking a person",
    ),
]


OPTIONS = [
    {"saver": "sqlite", "durability": durability, "replay": replay}
    for durability in ("sync", "async", "exit")
    for replay in ("lenient", "strict")
]


@pytest.mark.parametrize(
    "options", OPTIONS, ids=lambda options: f"{options['durability']} {options['replay']}"
)
@pytest.mark.parametrize(("program", "ended"), PROGRAMS)
def test_an_attempt_that_ends_by_an_exception(sweep, tmp_path, program, ended, options):
    """Whatever of the thread was checkpointed when the attempt broke off, the next one makes up the rest."""
    points = sweep.choose(sweep.points(program, **options), f"{program} {options} in memory")

    found = {}
    for point in points:
        folder = tmp_path / point.replace(":", "_")
        found[point] = die_and_resume(Course(program, str(folder), (point, None), options))

    assert found == dict.fromkeys(points, ended)
