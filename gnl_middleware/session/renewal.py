"""Keep leases alive from a thread of its own, past the writer's queue.

A tool that blocks the event loop, or a long commit, must not lose the run.
"""

import threading
import time
import weakref

from gnl_middleware.errors import GnlError
from gnl_middleware.lease import RENEWALS_PER_LEASE

from .claims import renew as renew_claims
from .session import Session

_IDLE = 5.0


class Renewer:
    """Renews the leases of a journal's open runs; its thread lives while there are any."""

    def __init__(self) -> None:
        self._wake = threading.Condition()
        self._sessions: dict[int, weakref.ref[Session]] = {}
        self._thread: threading.Thread | None = None
        self._closed, self._renewed_at = False, 0.0

    def hold(self, session: Session) -> None:
        """Renew this session's lease from now on."""
        with self._wake:
            self._sessions[id(session)] = weakref.ref(session)
            if self._thread is None:
                self._renewed_at = time.monotonic()
                self._thread = threading.Thread(target=self._work, name="gnl-renewer", daemon=True)
                self._thread.start()
            self._wake.notify()

    def drop(self, session: Session) -> None:
        """Stop renewing this session's lease."""
        with self._wake:
            self._sessions.pop(id(session), None)

    def close(self) -> None:
        """End the thread."""
        with self._wake:
            self._closed = True
            self._wake.notify()
            thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def restart_after_fork(self) -> None:
        """Begin anew in a child process: the parent's leases are the parent's."""
        for session in self._held():
            session.leave_to_the_parent()
        self._wake = threading.Condition()
        self._sessions, self._thread = {}, None

    def _work(self) -> None:
        while self._is_due():
            self._renew_all()

    def _renew_all(self) -> None:
        # A function of its own: while the thread sleeps, none of its names may keep a session alive.
        for session in self._held():
            _renew(session)

    def _is_due(self) -> bool:
        with self._wake:
            return self._wait()

    def _wait(self) -> bool:
        """Sleep until the next renewal; False when there is nothing left to do.

        Whoever joins meanwhile is looked at, so that a shorter lease is renewed in time, and is renewed with the others.
        """
        while not self._closed:
            lengths = [session.lease.length for session in self._held()]
            if not lengths:
                if not self._wake.wait(_IDLE) and not self._sessions:
                    break
                self._renewed_at = time.monotonic()
                continue
            left = self._renewed_at + min(lengths) / RENEWALS_PER_LEASE - time.monotonic()
            if left <= 0:
                self._renewed_at = time.monotonic()
                return True
            self._wake.wait(left)
        self._thread = None
        return False

    def _held(self) -> list[Session]:
        held = {key: reference() for key, reference in list(self._sessions.items())}
        for key, session in held.items():
            if session is None:
                self._sessions.pop(key, None)
        return [session for session in held.values() if session is not None]


def _renew(session: Session) -> None:
    asked_at = session.clock.monotonic()
    try:
        ours = renew_claims(session) if not session.locked else _renew_lease(session)
    except GnlError:
        # The next round tries again; meanwhile the deadline decides whether the lease still holds.
        return
    if not ours:
        session.lease.lost = "renewal" if session.locked else "claim"
    elif session.locked:
        session.lease.deadline = asked_at + session.lease.length


def _renew_lease(session: Session) -> bool:
    return session.database.renew_lease(
        session.run_id, session.lease.fence, session.clock.time(), session.lease.length
    )
