"""Die at each point of each step, start again, and look at what became of the world."""

import random
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from gnl_middleware.testing import CRASH_EXIT_CODE, POINTS
from tests.schedules.nursery import Course, Nursery
from tests.schedules.stage import Report
from tests.schedules.world import World

Choice = Callable[[Sequence[str], str], list[str]]
"""From all crash points and the name of the sweep to those that are tried."""


@dataclass(frozen=True)
class Ended:
    """How a run ended, and what it did to the world.

    Attributes:
        died: Each process died where it was to die, and no other did.
        reply: What the last one returned.
        error: What it raised instead.
        part: For a divergence, what differs.
        effects: How often each effect happened.
        drifted: How many records were served to a request that differs from theirs.
        repeated: How often a model was asked again although its reply was recorded.
    """

    died: bool
    reply: str | None
    effects: Mapping[str, int]
    error: str | None = None
    part: str | None = None
    drifted: int = 0
    repeated: int = 0


def everything(points: Sequence[str], name: str) -> list[str]:
    """All crash points."""
    return list(points)


def a_slice(size: int) -> Choice:
    """A few crash points, always the same ones for the same sweep."""

    def choose(points: Sequence[str], name: str) -> list[str]:
        chosen = set(random.Random(name).sample(points, min(size, len(points))))
        return [point for point in points if point in chosen]

    return choose


@dataclass(frozen=True)
class Sweep:
    """Sweeps a program over its crash points.

    Attributes:
        nursery: Where its processes come from.
        folder: Where each run has a folder of its own.
        choose: Which crash points it tries.
    """

    nursery: Nursery
    folder: Path
    choose: Choice

    def clean(self, program: str, **options: str) -> Ended:
        """How a run ends that nothing interrupts."""
        return self.each(program, [(None,)], **options)[None,]

    def points(self, program: str, **options: str) -> list[str]:
        """The crash points of the steps that a run takes which nothing interrupts."""
        course = self._course(program, (None,), options)
        self.nursery.run([course])
        report = Report.read(Path(course.folder, "report-1.json"))
        assert report is not None
        assert report.error is None, report.text
        return [f"{step[0]}:{point}" for step in report.steps for point in POINTS]

    def __call__(self, program: str, **options: str) -> dict[str, Ended]:
        """Die once, at each chosen point, and start again."""
        name = f"{program} {sorted(options.items())}"
        chosen = self.choose(self.points(program, **options), name)
        ended = self.each(program, [(point, None) for point in chosen], **options)
        return {str(points[0]): how for points, how in ended.items()}

    def each(
        self, program: str, courses: Sequence[tuple[str | None, ...]], **options: str
    ) -> dict[tuple[str | None, ...], Ended]:
        """How the run of each course ended."""
        planned = [self._course(program, points, options) for points in courses]
        codes = self.nursery.run(planned)
        return {
            course.crash_points: look(course, exits) for course, exits in zip(planned, codes, strict=True)
        }

    def _course(
        self, program: str, crash_points: tuple[str | None, ...], options: Mapping[str, str]
    ) -> Course:
        named = "-".join(str(point).replace(":", "_") for point in crash_points)
        folder = self.folder / f"{program}-{len(list(self.folder.glob('*')))}-{named}"
        folder.mkdir(parents=True)
        return Course(program, str(folder), crash_points, options)


def look(course: Course, codes: Sequence[int]) -> Ended:
    """How a course ended, from what it left behind and from the exit codes of its processes."""
    folder = Path(course.folder)
    world, report = World(folder), Report.read(folder / f"report-{len(codes)}.json")
    assert report is not None, f"{folder}: the last process ended with {codes[-1]} and left no report"
    ended = Ended(
        died=codes == [0 if point is None else CRASH_EXIT_CODE for point in course.crash_points],
        reply=report.reply,
        effects=world.effects,
        error=report.error,
        part=report.part,
        drifted=sum(drifted for *_, drifted in report.steps),
        repeated=max(0, world.model_calls - _paid_for(course, report)),
    )
    if report.error is None:
        shutil.rmtree(folder)
    return ended


def _paid_for(course: Course, report: Report) -> int:
    """Model calls that the record cannot spare: those that it holds, and those whose reply died with its process."""
    models = [str(number) for number, kind, *_ in report.steps if kind == "model"]
    lost = [
        point
        for point in course.crash_points
        if point is not None
        and point.endswith(("after_body", "before_outcome"))
        and point.split(":")[0] in models
    ]
    return len(models) + len(lost)
