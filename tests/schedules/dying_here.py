"""Death in one process, for checkpointers that live in memory: an exception that nothing handles, at a crash point."""

from dataclasses import replace

from langgraph.checkpoint.memory import InMemorySaver

from gnl_middleware.testing import CRASH_EXIT_CODE, CrashPoint, observe_points
from tests.schedules.nursery import Course
from tests.schedules.stage import play
from tests.schedules.sweeping import Ended, look


class Died(BaseException):
    """The attempt is over; whatever still runs of it gets no further than its next point."""


class Death:
    """Raises at a crash point, and from then on at every point that a thread of the same attempt comes to.

    Args:
        crash_at: Where.
    """

    def __init__(self, crash_at: str) -> None:
        self._point = CrashPoint.parse(crash_at)
        self._happened = False

    def __call__(self, point: str, number: int, name: str) -> None:
        self._happened = self._happened or self._point.matches(point, number, name)
        if self._happened:
            raise Died


def die_and_resume(course: Course) -> Ended:
    """Run a course in this process, on one checkpointer in memory."""
    saver, codes = InMemorySaver(), []
    for number, crash_at in enumerate(course.crash_points, start=1):
        observe_points(Death(crash_at) if crash_at else None)
        try:
            # Nobody waits for bodies of the dead: their points raise, so they never say that they have ended.
            play(replace(course.job(number), options={**course.options, "grace": "0"}), saver=saver)
            codes.append(0)
        except Died:
            codes.append(CRASH_EXIT_CODE)
        finally:
            observe_points(None)
    return look(course, codes)
