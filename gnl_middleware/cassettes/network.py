"""The network, shut while a cassette is active: an audit hook sees every connection that Python opens.

It sees what no patch of a library would, websockets and raw sockets included, and what a thread or an executor opens.
It cannot see what a C library opens by itself (libpq, curl, gRPC, uvloop), nor what another process does.
"""

import ipaddress
import socket
import sys
import threading
from collections.abc import Iterable
from typing import Any, cast

from .errors import NetworkRefusedError

_CONNECTS = frozenset({"socket.connect", "socket.sendto", "socket.sendmsg"})
_LOOKS_UP = frozenset({"socket.getaddrinfo", "socket.gethostbyname"})
_WITHIN_THE_MACHINE = {getattr(socket, name, None) for name in ("AF_UNIX", "AF_NETLINK", "AF_ALG")}
_HERE = frozenset({"", "localhost", "0.0.0.0", "::"})  # noqa: S104 - names of this machine, which nothing is bound to
_LOOPBACK = frozenset({"127.0.0.1", "::1"})

_learning = threading.local()
_lock = threading.Lock()
_active: "list[Guard]" = []
_installed = False


class Guard:
    """Refuses what would leave the process while it is active; the innermost one decides.

    Args:
        path: The cassette, for the message.
        allowed: Hosts that may be reached.
        recording: Hosts that ``allow`` names may be looked up, and what they resolve to may be reached.
    """

    def __init__(self, path: str, allowed: Iterable[str] = (), *, recording: bool = False) -> None:
        self._path, self._recording = path, recording
        self._allowed = set[str]()
        for host in allowed:
            self.allow(host)
        self.refused: list[NetworkRefusedError] = []

    def allow(self, host: str | None) -> None:
        """Let a host be reached: one of the test's own, or one that the recording asks for."""
        named = (host or "").lower()
        self._allowed.add(named)
        if named == "localhost":
            self._allowed |= _LOOPBACK

    def shut(self) -> None:
        """Begin to refuse."""
        global _installed  # noqa: PLW0603 - an audit hook is the process's, and there is no taking it off
        with _lock:
            _active.append(self)
            if not _installed:
                sys.addaudithook(_watch)
                _installed = True

    def open(self) -> None:
        """Refuse no longer."""
        with _lock:
            _active.remove(self)

    def check(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Raise where an event would reach what is not allowed.

        Raises:
            NetworkRefusedError: It would.
        """
        target = _looked_up(arguments) if event in _LOOKS_UP else _connected(arguments)
        if target is None:
            return
        host, shown = target
        if host.lower() in self._allowed:
            if event in _LOOKS_UP:
                self._learn(host)
            return
        if self._recording and _is_address(host):
            return
        error = NetworkRefusedError(target=shown, path=self._path)
        self.refused.append(error)
        raise error

    def _learn(self, host: str) -> None:
        """What the name resolves to may be reached: a connection does not say by which name it was found."""
        if getattr(_learning, "busy", False):
            return
        _learning.busy = True
        try:
            self._allowed |= {str(found[4][0]) for found in socket.getaddrinfo(host, None)}
        except OSError:
            return  # whoever asked is told so by the lookup of their own
        finally:
            _learning.busy = False


def _watch(event: str, arguments: tuple[Any, ...]) -> None:
    # Called for every audited event of the process, for good: it must cost nothing where nobody listens.
    if _active and event.startswith("socket.") and (event in _CONNECTS or event in _LOOKS_UP):
        _active[-1].check(event, arguments)


def _looked_up(arguments: tuple[Any, ...]) -> tuple[str, str] | None:
    """The name that is looked up; None where no network is needed for it."""
    name = arguments[0]
    host = name.decode("latin-1") if isinstance(name, bytes) else str(name or "")
    return None if host.lower() in _HERE or _is_address(host) else (host, host)


def _connected(arguments: tuple[Any, ...]) -> tuple[str, str] | None:
    """Where a socket goes, and how to show it; None where it stays within this machine."""
    endpoint, address = arguments[0], cast("object", arguments[1])
    if address is None or endpoint.family in _WITHIN_THE_MACHINE:
        return None
    parts = cast("tuple[Any, ...]", address) if isinstance(address, tuple) else (address,)
    return str(parts[0]), ":".join(str(part) for part in parts[:2])


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    return True
