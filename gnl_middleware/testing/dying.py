"""One process that dies at one point, for tests of what comes after."""

import os
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gnl_middleware.session.points import Point, observe

from .crash_points import CRASH_EXIT_CODE, CrashPoint
from .processes import TIMED_OUT, Errand, Plan, carry_out, forks_here


def crash_at(
    point: str, function: Callable[..., Any], *arguments: Any, timeout: float = 60.0, fork: bool | None = None
) -> None:
    """Run a function in a process of its own, which dies at a crash point: what it left behind is what a crash leaves.

    Args:
        point: ``STEP:POINT``, where STEP is a step's number or name, as in ``GNL_CRASH_AT``.
        function: What runs until it dies.
        *arguments: Its arguments.
        timeout: Seconds after which the process counts as hung.
        fork: As for ``crash_matrix``.

    Raises:
        AssertionError: The process did not die there.
        ValueError: That is no crash point.

    Example:
        >>> crash_at("send_email:after_body", run, agent, "support:42", "runs.db")     # doctest: +SKIP
        >>> with pytest.raises(SideEffectRetryBlockedError):     # doctest: +SKIP
        ...     run(agent, "support:42", "runs.db")
    """
    with tempfile.TemporaryDirectory(prefix="gnl-crash-") as folder:
        report = Path(folder) / "report"
        errand = Errand(_die, (CrashPoint.parse(point), report, function, arguments))
        (code,) = carry_out([_course(errand)], at_once=1, timeout=timeout, fork=forks_here(fork))
        told = report.read_text(encoding="utf-8") if report.exists() else f"it ended with code {code}"
    if code == TIMED_OUT:
        told = f"it still ran after {timeout:g} s"
    if code != CRASH_EXIT_CODE:
        raise AssertionError(f"No process died at {point}: {told}")


def _course(errand: Errand) -> Plan[int]:
    return (yield errand)


def _die(
    crash_point: CrashPoint, report: Path, function: Callable[..., Any], arguments: tuple[Any, ...]
) -> None:
    def die_there(point: Point, number: int, name: str) -> None:
        if crash_point.matches(point, number, name):
            os._exit(CRASH_EXIT_CODE)

    observe(die_there, role="toolkit")
    try:
        told = f"it returned {function(*arguments)!r}"
    except BaseException as error:  # noqa: BLE001 - told to the parent, whatever it is
        told = "".join(traceback.format_exception(error))
    report.write_text(told, encoding="utf-8")
    os._exit(0)
