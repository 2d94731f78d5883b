"""Programs that run into a disk that is full, a file that may not be written, a file that is locked."""

import ctypes
import os
import resource
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gnl_middleware import Done, GnlError, Journal, journaled, never, safe
from tests.processes.children import Line

RUN = "order-7"
_CAPABILITIES_VERSION = 0x20080522


def drop_privileges() -> None:
    """Obey the modes of files and folders from here on, also as root."""
    header = (ctypes.c_uint32 * 2)(_CAPABILITIES_VERSION, 0)
    nothing = (ctypes.c_uint32 * 6)()
    assert ctypes.CDLL(None, use_errno=True).capset(header, nothing) == 0, os.strerror(ctypes.get_errno())


def limit_files(size: int) -> None:
    """Let no file grow beyond this size: each write past it fails, as on a full disk."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


def fill_disk(folder: Path) -> Path:
    """Take the last free byte of the disk that the folder is on."""
    filling = folder / "filling"
    with filling.open("wb", buffering=0) as file:
        for size in (4096, 1):
            try:
                while file.write(b"x" * size):
                    pass
            except OSError:
                continue
    return filling


def use_up(kind: str, path: str) -> Callable[[], None]:
    """Let the journal run out of space; gives what frees it again."""
    if kind == "limit":
        limit_files(8192)
        return lambda: limit_files(resource.RLIM_INFINITY)
    return fill_disk(Path(path).parent).unlink


class Shop:
    """Functions whose bodies note that they ran."""

    def __init__(self, before_return: Callable[[], object] = lambda: None) -> None:
        self.ran: list[str] = []

        @journaled(replay=never(recover=lambda _call: Done("recovered")))
        def charge(order: str) -> bytes:
            self.ran.append(order)
            before_return()
            return os.urandom(3000)

        @journaled(replay=safe)
        def look_up(order: str) -> bytes:
            self.ran.append(order)
            before_return()
            return os.urandom(3000)

        self.charge, self.look_up = charge, look_up


def told(function: Callable[..., Any], *arguments: Any) -> list[str]:
    """The type and text of the library's error, or what was returned."""
    try:
        return ["returned", str(function(*arguments))]
    except GnlError as error:
        return [type(error).__name__, str(error)]


def no_space_for_an_intent(line: Line, path: str, kind: str) -> None:
    """The disk is full before a side effect begins."""
    shop = Shop()
    journal = Journal(path)

    def attempt() -> None:
        with journal.run(RUN):
            shop.charge("first")
            free.append(use_up(kind, path))
            line.say(told(shop.charge, "second"))
            line.say(told(shop.charge, "third"))
            line.say(told(shop.look_up, "fourth"))

    free: list[Callable[[], None]] = []
    line.say(told(attempt))
    line.say(shop.ran)
    free[0]()
    line.say(told(_again, journal, shop, "first", "second"))
    line.say([shop.ran, journal.runs()[0].status])
    journal.close()


def no_space_for_an_outcome(line: Line, path: str, kind: str) -> None:
    """The disk becomes full while a side effect happens."""
    free: list[Callable[[], None]] = []
    full = [True]
    shop = Shop(lambda: free.append(use_up(kind, path)) if full else None)
    journal = Journal(path)

    def attempt() -> None:
        with journal.run(RUN):
            line.say(told(shop.charge, "second"))
            line.say(told(shop.charge, "second"))
            line.say(told(shop.look_up, "third"))

    line.say(told(attempt))
    line.say(shop.ran)
    free[0]()
    full.clear()
    line.say(told(_again, journal, shop, "second"))
    line.say([shop.ran, journal.runs()[0].status])
    journal.close()


def _again(journal: Journal, shop: Shop, *orders: str) -> str:
    with journal.run(RUN):
        answers = [shop.charge(order) for order in orders]
        return answers[-1] if isinstance(answers[-1], str) else "ran"


def open_it(line: Line, path: str) -> None:
    """Open a run with the rights of an ordinary user, and charge."""
    shop = Shop()
    with Journal(path) as journal:
        journal.url  # noqa: B018
        warm_up()
        drop_privileges()

        def attempt() -> None:
            with journal.run(RUN):
                shop.charge("first")

        line.say(told(attempt))
        line.say(told(journal.runs))
    line.say(shop.ran)


def warm_up() -> None:
    """Import what a journal needs when it is used first."""
    import sqlalchemy.dialects.sqlite  # noqa: F401

    import gnl_middleware.storage.database  # noqa: F401


def lock(line: Line, path: str) -> None:
    """Hold the file's write lock until the test says so."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    line.say("locked")
    line.hear()
    connection.execute("COMMIT")
    connection.close()
    line.say("free")
    line.hear()
