"""What the journals of one address share in a process: its database and the renewal of its leases."""

import os
import threading

from gnl_middleware.storage.address import Address
from gnl_middleware.storage.protection import NONE, Protection

from .renewal import Renewer
from .running import forget_after_fork


class Shared:
    """One database and renewer, with the number of journals that use them."""

    def __init__(self, address: Address, protection: Protection = NONE) -> None:
        # SQLAlchemy takes longer to load than all the rest: only who opens a journal pays for it.
        from gnl_middleware.storage.database import Database  # noqa: PLC0415

        self.address, self.protection = address, protection
        self.database: Database = Database(address, protection)
        self.renewer = Renewer()
        self.users = 0


_shared: dict[Address, Shared] = {}
_closing: list[Shared] = []
_paused: list[Shared] = []
# Re-entrant: the garbage collector may release one journal while another is being opened on the same thread.
_guard = threading.RLock()


def guard() -> threading.RLock:
    """Held while journals are opened and closed; the process forks only while nobody holds it."""
    return _guard


def acquire(address: Address, protection: Protection = NONE) -> Shared:
    """The database and renewer, opened if nobody uses them yet.

    Raises:
        ValueError: They are open with another protection: one writer cannot write rows in two ways.
    """
    with _guard:
        shared = _shared.get(address)
        if shared is None:
            shared = _shared[address] = Shared(address, protection)
        elif shared.protection != protection:
            raise ValueError(
                f"the journal {address.shown} is open in this process with another integrity_key=, encryption= or redact=, and "
                f"its writer would write rows that one of you cannot read: hand the same Journal around, open it with the very "
                f"same objects, or close the other one first"
            )
        shared.users += 1
        return shared


def release(shared: Shared) -> None:
    """Close what the last user leaves behind."""
    with _guard:
        shared.users -= 1
        if shared.users or _shared.get(shared.address) is not shared:
            return
        del _shared[shared.address]
        _closing.append(shared)
    try:
        shared.renewer.close()
        shared.database.close()
    finally:
        with _guard:
            _closing.remove(shared)


def _pause_for_fork() -> None:
    """Close all connections before the process forks; the guard stays held until it has."""
    while True:
        _guard.acquire()
        found = [shared for shared in (*_shared.values(), *_closing) if shared not in _paused]
        if not found:
            return
        # Whoever uses a connection may need the guard: the collector may release a journal anywhere.
        _guard.release()
        for shared in found:
            shared.database.pause_for_fork()
            _paused.append(shared)


def _resume_after_fork() -> None:
    for shared in _paused:
        shared.database.resume_after_fork()
    _paused.clear()
    _guard.release()


def _restart_after_fork() -> None:
    global _guard  # noqa: PLW0603 - threads that waited for it do not exist in the child
    _guard = threading.RLock()
    _paused.clear()
    _closing.clear()
    forget_after_fork()
    for shared in _shared.values():
        shared.database.restart_after_fork()
        shared.renewer.restart_after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_pause_for_fork, after_in_parent=_resume_after_fork, after_in_child=_restart_after_fork
    )
