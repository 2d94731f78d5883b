"""Damage and read many journals, in processes that may die or hang over one of them."""

import json
import os
import selectors
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gnl_middleware import Journal

from .mutations import HOSTILE_MODULE
from .order import write

_ROOT = Path(__file__).parents[3]
_PATIENCE = 120.0
"""Seconds after which a process that says nothing hangs."""


@dataclass
class Findings:
    """What came of damaged journals.

    Attributes:
        journals: How many were read.
        kinds: How many of each kind of damage.
        wrong: What was wrong, by its kind: seed, what was done, and how it showed.
    """

    journals: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    wrong: dict[str, list[str]] = field(default_factory=dict)

    def add(self, seed: int, told: str, kind: str, shown: str) -> None:
        """Note something that is wrong."""
        self.wrong.setdefault(kind, []).append(f"journal {seed} ({told}): {shown}")


def prepare(folder: Path, *, closed: bool) -> None:
    """Write the journal that is damaged, and the module that nobody must import.

    Args:
        folder: Where.
        closed: Whether it was closed; else it is found as a process leaves it that dies, with its log beside it.
    """
    (folder / f"{HOSTILE_MODULE}.py").write_text("", encoding="utf-8")
    with Journal(folder / "first.db") as journal:
        write(journal)
        if not closed:
            _copy(folder)
    if closed:
        _copy(folder)


def _copy(folder: Path) -> None:
    for suffix in ("", "-wal"):
        if (file := folder / f"first.db{suffix}").exists():
            (folder / f"whole.db{suffix}").write_bytes(file.read_bytes())


def damage(folder: Path, first: int, last: int) -> Findings:
    """Damage and read the journals of these seeds, on all processors."""
    findings, selector = Findings(), selectors.DefaultSelector()
    # More processes than processors: a damaged file makes the library wait and try again.
    for readers in range(workers := 4 * (os.cpu_count() or 1)):
        share = (last - first) // workers
        begin = first + readers * share
        end = last if readers == workers - 1 else begin + share
        _Reader(folder, begin, end).start(selector)
    while selector.get_map():
        for key, _ in selector.select(_PATIENCE / 10):
            key.data.listen(selector, findings)
        for key in list(selector.get_map().values()):
            key.data.check(selector, findings)
    return findings


class _Reader:
    """A process that reads journals, and the one after it if it does not survive that."""

    def __init__(self, folder: Path, first: int, last: int) -> None:
        self._folder, self._first, self._last = folder, first, last
        self._process: subprocess.Popen[bytes] | None = None
        self._seed, self._heard, self._rest = first, time.monotonic(), b""

    def start(self, selector: selectors.BaseSelector) -> None:
        """Begin with the first journal."""
        arguments = [str(self._folder), str(self._first), str(self._last)]
        self._process = subprocess.Popen(
            [sys.executable, "-W", "error", "-m", "tests.crash.damage.reader", *arguments],
            cwd=_ROOT,
            stdout=subprocess.PIPE,
        )
        self._heard, self._rest = time.monotonic(), b""
        selector.register(self._out, selectors.EVENT_READ, self)

    @property
    def _out(self) -> Any:
        assert self._process is not None
        return self._process.stdout

    def listen(self, selector: selectors.BaseSelector, findings: Findings) -> None:
        """Take what it has said since; where it has ended, see how."""
        said = os.read(self._out.fileno(), 1 << 16)
        self._heard = time.monotonic()
        *told, self._rest = (self._rest + said).split(b"\n")
        for line in told:
            self._take(json.loads(line), findings)
        if not said:
            self._bury(selector, findings, "death")

    def _take(self, said: dict[str, Any], findings: Findings) -> None:
        self._seed = said["seed"]
        if "told" in said:
            findings.journals += 1
            findings.kinds[said["told"].partition(":")[0]] += 1
            for kind, shown in said["wrong"]:
                findings.add(said["seed"], said["told"], kind, shown)

    def check(self, selector: selectors.BaseSelector, findings: Findings) -> None:
        """End it if it hangs."""
        if self._process is not None and time.monotonic() - self._heard > _PATIENCE:
            self._process.kill()
            self._bury(selector, findings, "hang")

    def _bury(self, selector: selectors.BaseSelector, findings: Findings, how: str) -> None:
        assert self._process is not None
        selector.unregister(self._out)
        code = self._process.wait()
        self._out.close()
        self._process = None
        if code == 0:
            return
        findings.add(self._seed, "", how, f"exit code {code}")
        self._first = self._seed + 1
        if self._first < self._last:
            self.start(selector)


def lines(findings: Findings) -> Iterator[str]:
    """What was wrong, for people to read."""
    for kind, shown in sorted(findings.wrong.items()):
        yield f"{kind}: {len(shown)}"
        yield from shown[:20]
