"""Who holds a run, and whether the holder is known to be dead.

A restart on the same machine must not wait for the lease of a killed process, and must never take a run from a live
one. So a holder is declared dead only where that is certain: same machine (machine id and boot id), same pid namespace,
and no living process with that pid and start time. Everything else has to run out.
"""

import json
import os
import secrets
import socket
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

_GONE = "ZX"
_let_go: set[str] = set()

RENEWALS_PER_LEASE = 4
"""A lease is renewed this often within its length, so that one late renewal does not lose it."""


@dataclass(frozen=True, slots=True)
class Holder:
    """A process that holds a run.

    Attributes:
        host: Its host name, to show to people.
        machine: Machine id and boot id, or empty where the system does not tell.
        namespace: Its pid namespace.
        pid: Its process id.
        started: Its start time in the kernel's ticks, which no change of the clock can alter.
        nonce: Tells two holds of one process apart.
    """

    host: str
    machine: str
    namespace: str
    pid: int
    started: str
    nonce: str

    @classmethod
    def here(cls) -> "Holder":
        """This process, for one hold."""
        pid = os.getpid()
        return cls(
            host=socket.gethostname(),
            machine=_machine(),
            namespace=_namespace(),
            pid=pid,
            started=(_stat(pid) or ("", ""))[1],
            nonce=secrets.token_hex(4),
        )

    @classmethod
    def from_text(cls, text: str) -> "Holder | None":
        """A stored holder; None if the text is not one."""
        try:
            holder = cls(**json.loads(text))
        except (TypeError, ValueError):
            return None
        return holder if holder._is_readable() else None

    def _is_readable(self) -> bool:
        texts = (self.host, self.machine, self.namespace, self.started, self.nonce)
        return all(type(text) is str for text in texts) and type(self.pid) is int and 0 < self.pid < 1 << 31

    def to_text(self) -> str:
        """The holder as it is stored."""
        return json.dumps(asdict(self), separators=(",", ":"))

    def is_dead(self) -> bool:
        """True only if the process is certainly gone, or has let go of this hold; a zombie counts as gone."""
        if not self.machine or self.machine != _machine() or self.namespace != _namespace():
            return False
        if not self.started:
            return False
        found = _stat(self.pid)
        if found is None:
            return not _exists(self.pid)
        state, started = found
        if state in _GONE or started != self.started:
            return True
        return self.pid == os.getpid() and self.nonce in _let_go

    def __str__(self) -> str:
        """As people read it."""
        return f"pid {self.pid} on {self.host}"


def let_go(holder: Holder) -> None:
    """Nobody works under this hold of ours any more, though the journal may still name it: it is void at once."""
    _let_go.add(holder.nonce)


def is_dead(holder_text: str | None) -> bool:
    """Whether a stored holder is certainly gone; an unreadable one is not."""
    if not holder_text:
        return True
    holder = Holder.from_text(holder_text)
    return holder is not None and holder.is_dead()


def shown(holder_text: str | None) -> str:
    """A stored holder as people read it."""
    holder = Holder.from_text(holder_text) if holder_text else None
    return str(holder) if holder else holder_text or "nobody"


@cache
def _machine() -> str:
    # Containers of one image share a machine id; the boot id tells apart the kernels that they run on.
    boot = _first_line("/proc/sys/kernel/random/boot_id")
    return f"{_first_line('/etc/machine-id')}:{boot}" if boot else ""


def _namespace() -> str:
    try:
        return str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        return ""


def _first_line(path: str) -> str:
    try:
        return Path(path).read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return ""


def _stat(pid: int) -> tuple[str, str] | None:
    """State and start time of a process; None where the system does not show it."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # The command name stands in parentheses and may hold anything; the state follows it, the start time 19 fields later.
    after_name = stat.rpartition(")")[2].split()
    return after_name[0], after_name[19]


def _exists(pid: int) -> bool:
    """Whether there is such a process, also one of another user that /proc hides (mounted with ``hidepid``)."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
