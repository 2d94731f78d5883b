"""Work that must fork, done in a new interpreter because threads run in this one."""

import json
import multiprocessing
import os
import signal
import traceback
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from typing import Any

from .errors import CrashToolkitError
from .processes import Errand, start

Work = Callable[..., Iterator[dict[str, Any]]]
"""A function of a module that yields plain objects."""


def elsewhere(work: Work, *arguments: Any) -> Iterator[dict[str, Any]]:
    """What the work yields, done in a process of its own.

    Raises:
        CrashToolkitError: The work raised it; or it raised something else, or died.
    """
    ours, theirs = multiprocessing.Pipe(duplex=False)
    process = start(Errand(_work_for, (theirs, work, arguments)), fork=False)
    theirs.close()
    try:
        while (told := json.loads(ours.recv_bytes())) is not None:
            if "problem" in told:
                raise CrashToolkitError(**told)
            yield told
    except EOFError as error:
        problem, remedy = "The process that starts the workers died", "Look at what it printed."
        raise CrashToolkitError(problem=problem, remedy=remedy) from error
    finally:
        if process.is_alive() and process.pid is not None:
            os.kill(process.pid, signal.SIGINT)  # it then ends its workers
        process.join()
        ours.close()


def _work_for(parent: "Connection[bytes, bytes]", work: Work, arguments: tuple[Any, ...]) -> None:
    try:
        for found in work(*arguments):
            parent.send_bytes(json.dumps(found).encode())
        told = None
    except KeyboardInterrupt:
        return  # the parent wants no more
    except CrashToolkitError as error:
        told = {"problem": error.problem, "remedy": error.remedy, "details": error.details}
    except Exception:  # noqa: BLE001 - told to the parent, whatever it is
        remedy = "Repair that first; this is what was raised:"
        told = {"problem": "The check failed", "remedy": remedy, "details": traceback.format_exc()}
    parent.send_bytes(json.dumps(told).encode())
