"""What the figures were measured on; nothing that names the machine or its folders."""

import importlib.metadata
import os
import platform
import sqlite3
import statistics
import time
from pathlib import Path
from typing import Any

import psycopg

_PACKAGES = (
    *("sqlalchemy", "orjson", "psycopg", "langchain", "langgraph", "langgraph-checkpoint-sqlite"),
    *("langgraph-checkpoint-postgres", "openai-agents", "dbos"),
)
_BLOCK = 4096
_SYNCS = 100


def described(folder: Path, postgres: str | None) -> dict[str, Any]:
    """The machine, its disk and the versions of what was measured."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "kernel": f"{platform.system()} {platform.release()}",
        "file system of the journal": _file_system(folder),
        "append and sync, us": round(_sync_time(folder)),
        "load before, 1 minute": round(os.getloadavg()[0], 1),
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "postgresql": None if postgres is None else _server_version(postgres),
        "packages": {name: found for name in _PACKAGES if (found := _version(name))},
    }


def _processor() -> str:
    information = Path("/proc/cpuinfo")
    if information.exists():
        for line in information.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _file_system(folder: Path) -> str:
    mounted, device = Path("/proc/self/mountinfo"), folder.stat().st_dev
    if mounted.exists():
        for line in mounted.read_text(encoding="utf-8").splitlines():
            where, _, what = line.partition(" - ")
            if where.split()[2] == f"{os.major(device)}:{os.minor(device)}":
                return what.split()[0]
    return "unknown"


def _sync_time(folder: Path) -> float:
    """Microseconds of appending a block to a file and waiting for the disk, in the median."""
    path, times = folder / "synced", list[float]()
    with path.open("ab", buffering=0) as file:
        for _ in range(_SYNCS):
            began = time.perf_counter()
            file.write(b"x" * _BLOCK)
            os.fsync(file.fileno())
            times.append(time.perf_counter() - began)
    path.unlink()
    return statistics.median(times) * 1e6


def _server_version(url: str) -> str:
    with psycopg.connect(url) as connection:
        return connection.info.parameter_status("server_version") or ""


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None
