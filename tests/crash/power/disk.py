"""A disk that loses its power: from the record of what a process did, the files as they would be found afterwards.

What was synced is there. What was not is gone, or, where chance says so, there in part, sector by sector and in any order.
"""

import random
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

_RECORD = struct.Struct("<QqIic7x")
_SECTOR = 512


class Operation(NamedTuple):
    """One thing that the process did to its files.

    Attributes:
        at: When, in seconds.
        what: ``o`` open, ``c`` close, ``w`` write, ``t`` truncate, ``s`` sync, ``u`` unlink.
        file: The file descriptor.
        offset: Of a write; the new length of a truncated file; 1 for a file that an open creates.
        content: The bytes of a write, or a path.
    """

    at: float
    what: str
    file: int
    offset: int
    content: bytes

    @property
    def name(self) -> str:
        """The name of the file that is opened or removed; empty for the folder itself."""
        return self.content.rpartition(b"/")[2].decode()


def operations(record: bytes) -> Iterator[Operation]:
    """What the recorder wrote."""
    place = 0
    while place < len(record):
        nanoseconds, offset, length, file, what = _RECORD.unpack_from(record, place)
        place += _RECORD.size
        yield Operation(nanoseconds / 1e9, what.decode(), file, offset, record[place : place + length])
        place += length


@dataclass(eq=False)
class _File:
    """A file: what was synced of it, and what was done to it since."""

    synced: bytearray = field(default_factory=bytearray)
    pending: list[tuple[int, bytes | None]] = field(default_factory=list)

    def sync(self) -> bool:
        """Make all of it durable; whether that changed anything."""
        changed = bool(self.pending)
        for change in self.pending:
            _apply(self.synced, change)
        self.pending.clear()
        return changed

    def after_loss(self, chance: random.Random | None) -> bytes:
        """Its content after the loss of power."""
        content = bytearray(self.synced)
        for change in self.pending if chance else ():
            for part in _sectors(change):
                if chance and chance.random() < 0.5:
                    _apply(content, part)
        return bytes(content)


def _apply(content: bytearray, change: tuple[int, bytes | None]) -> None:
    offset, written = change
    if written is None:
        del content[offset:]
        content.extend(bytes(offset - len(content)))
        return
    content.extend(bytes(max(0, offset - len(content))))
    content[offset : offset + len(written)] = written


def _sectors(change: tuple[int, bytes | None]) -> Iterator[tuple[int, bytes | None]]:
    offset, written = change
    if written is None:
        yield change
        return
    place = 0
    while place < len(written):
        length = _SECTOR - (offset + place) % _SECTOR
        yield offset + place, written[place : place + length]
        place += length


class Disk:
    """The folder of a recorded process.

    Attributes:
        version: Grows when something becomes durable.
        world: The lines that the process has written to the file that stands for the outside world.
    """

    def __init__(self, outside: str) -> None:
        self.version = 0
        self.world = b""
        self._outside = outside
        self._open: dict[int, tuple[str, _File]] = {}
        self._names: dict[str, _File] = {}
        self._durable: dict[str, _File] = {}
        self._folder_changes: list[tuple[str, _File | None]] = []

    def apply(self, operation: Operation) -> None:
        """Let the process do one thing."""
        if operation.what == "o":
            self._opened(operation)
        elif operation.what == "u":
            self._names.pop(operation.name, None)
            self._folder_changes.append((operation.name, None))
        else:
            name, file = self._open[operation.file]
            if operation.what == "s":
                self.version += file.sync() if name else self._sync_folder()
            elif operation.what == "w" and name == self._outside:
                self.world += operation.content
            elif operation.what in "wt":
                written = operation.content if operation.what == "w" else None
                file.pending.append((operation.offset, written))

    def _opened(self, operation: Operation) -> None:
        name = operation.name if operation.offset or operation.name in self._names else ""
        if operation.offset:
            self._names[name] = _File()
            self._folder_changes.append((name, self._names[name]))
        self._open[operation.file] = name, self._names.get(name, _File())

    def _sync_folder(self) -> bool:
        changed = bool(self._folder_changes)
        for name, file in self._folder_changes:
            _rename(self._durable, name, file)
        self._folder_changes.clear()
        return changed

    def after_loss(self, chance: random.Random | None = None) -> dict[str, bytes]:
        """The files that are found after the loss of power.

        Args:
            chance: Decides which part of what was not synced is there all the same; without it, nothing is.
        """
        names = dict(self._durable)
        for name, file in self._folder_changes if chance else ():
            if chance and chance.random() < 0.5:
                _rename(names, name, file)
        # What is shared in memory is no file that outlives the machine.
        return {
            name: file.after_loss(chance)
            for name, file in names.items()
            if name != self._outside and not name.endswith("-shm")
        }


def _rename(names: dict[str, _File], name: str, file: _File | None) -> None:
    if file is None:
        names.pop(name, None)
    else:
        names[name] = file


def without_syncs(done: Sequence[Operation]) -> list[Operation]:
    """The same on a disk that lies: it says that it has synced, and has not."""
    return [operation for operation in done if operation.what != "s"]


def put(files: dict[str, bytes], folder: Path) -> None:
    """Write the files that were found."""
    for name, content in files.items():
        (folder / name).write_bytes(content)
