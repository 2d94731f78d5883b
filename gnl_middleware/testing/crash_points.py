"""Let a process die at a chosen point of a chosen step.

A crash point is written ``STEP:POINT``, where STEP is a step's number or name and POINT one of ``before_intent``,
``after_intent``, ``before_body``, ``after_body``, ``before_outcome`` and ``after_outcome``; for a streamed model call also
``mid_stream``. Nothing of this is active unless ``install_crash_points`` was called.
"""

import os
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from gnl_middleware.session.points import Point, StepPoint, observe

CRASH_VARIABLE = "GNL_CRASH_AT"
"""Environment variable that names the crash point."""

CRASH_EXIT_CODE = 86
"""Exit code of a process that died at its crash point."""

POINTS: tuple[Point, ...] = typing.get_args(StepPoint)
"""The points of a step, in the order in which it passes them."""

MID_STREAM: Point = "mid_stream"
"""The point between ``before_body`` and ``after_body`` that only a streamed model call comes to: its first chunk was given
on, and another one has come."""


@dataclass(frozen=True, slots=True)
class CrashPoint:
    """Where to die.

    Attributes:
        step: The step's number or name.
        point: Which of its points.

    Example:
        >>> CrashPoint.parse("create_ticket:after_body")
        CrashPoint(step='create_ticket', point='after_body')
    """

    step: str
    point: Point

    @classmethod
    def parse(cls, text: str) -> "CrashPoint":
        """Read ``STEP:POINT``.

        Raises:
            ValueError: The text is not of that form.

        Example:
            >>> CrashPoint.parse("send_email:after_body").point
            'after_body'
        """
        step, _, point = text.rpartition(":")
        known: dict[str, Point] = {name: name for name in (*POINTS, MID_STREAM)}
        if not step or point not in known:
            raise ValueError(
                f"{text!r} is no crash point: write STEP:POINT with POINT one of {', '.join(known)}"
            )
        return cls(step, known[point])

    def matches(self, point: Point, number: int, name: str) -> bool:
        """Whether a step has come to this point.

        Example:
            >>> CrashPoint.parse("send_email:after_body").matches("after_body", 4, "send_email")
            True
        """
        return point == self.point and self.step in (str(number), name)


def install_crash_points(
    environ: Mapping[str, str] = os.environ, *, die: Callable[[int], typing.Any] = os._exit
) -> CrashPoint | None:
    """Let this process die where ``GNL_CRASH_AT`` says; nothing happens if it is not set.

    Args:
        environ: Where the variable is read.
        die: How to die; by default at once, without cleaning up, as a killed process would.

    Returns:
        The crash point, or None.

    Raises:
        ValueError: The variable holds no crash point.

    Example:
        >>> install_crash_points()     # doctest: +SKIP
    """
    if not (text := environ.get(CRASH_VARIABLE)):
        observe(None)
        return None
    crash_point = CrashPoint.parse(text)

    def die_there(point: Point, number: int, name: str) -> None:
        if crash_point.matches(point, number, name):
            die(CRASH_EXIT_CODE)

    observe(die_there)
    return crash_point


def observe_points(observer: Callable[[Point, int, str], None] | None) -> None:
    """Watch every point that steps come to (point, step number, name); None stops watching.

    Example:
        >>> observe_points(lambda point, number, name: print(point, name))     # doctest: +SKIP
    """
    observe(observer)
