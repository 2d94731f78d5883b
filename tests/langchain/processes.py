"""Processes that really die: forked from a server that has imported everything and never has a thread."""

import json
import multiprocessing
import os
import tempfile
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gnl_middleware.testing import CRASH_EXIT_CODE, CRASH_VARIABLE, install_crash_points

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["pytest", "tests.langchain.preloaded"])


@dataclass(frozen=True, slots=True)
class Ended:
    """How a process ended.

    Attributes:
        code: Its exit code; ``CRASH_EXIT_CODE`` where it died at its crash point.
        value: What its function returned.
        error: The qualified names of the classes of the error that ended it, the error's own first.
        text: The error's text.
    """

    code: int
    value: Any = None
    error: tuple[str, ...] = ()
    text: str = ""

    @property
    def died(self) -> bool:
        """Whether it died at its crash point."""
        return self.code == CRASH_EXIT_CODE


def in_process(function: Callable[..., Any], *arguments: Any, crash_at: str | None = None) -> Ended:
    """Run a module's function in a process of its own.

    Args:
        function: Returns plain data.
        *arguments: Plain data and paths.
        crash_at: Where the process dies, as in ``2:after_body``.
    """
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        process = _CONTEXT.Process(target=_work, args=(report, function, arguments, crash_at))
        process.start()
        process.join()
        code = process.exitcode
        process.close()
        found = json.loads(report.read_text(encoding="utf-8")) if report.exists() else {}
    return Ended(
        -1 if code is None else code, found.get("value"), tuple(found.get("error", ())), found.get("text", "")
    )


def _work(
    report: Path, function: Callable[..., Any], arguments: tuple[Any, ...], crash_at: str | None
) -> None:
    if crash_at is not None:
        os.environ[CRASH_VARIABLE] = crash_at
        install_crash_points()
    try:
        found = {"value": function(*arguments)}
    except BaseException as error:  # noqa: BLE001
        classes = [kind.__qualname__ for kind in type(error).__mro__]
        found = {"error": classes, "text": "".join(traceback.format_exception(error))}
    report.write_text(json.dumps(found), encoding="utf-8")
