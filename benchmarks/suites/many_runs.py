"""Many runs at once in one process: ``python -m benchmarks.suites.many_runs FILE RUNS STEPS SIZE`` prints what they took."""

import json
import resource
import sys
from pathlib import Path

from benchmarks.core import CoreOnSqlite
from benchmarks.measure import measured


def main(path: str, runs: int, steps: int, size: int) -> None:
    """Measure, and print it as JSON."""
    subject = CoreOnSqlite()
    subject.at(Path(path))
    measured(subject, ["warm up"], 1, size)
    before = _peak()
    sample = measured(subject, [f"run-{number}" for number in range(runs)], steps, size)
    memory = (_peak() - before) / runs
    subject.close()
    json.dump({"step": sample.step, "whole": sample.whole, "memory": memory}, sys.stdout)


def _peak() -> float:
    """The most memory that this process has had, in kB."""
    status = Path("/proc/self/status")
    if (
        status.exists()
    ):  # elsewhere, and only there, getrusage knows: Linux counts what stood here before the program began
        lines = status.read_text(encoding="utf-8").splitlines()
        return next(float(line.split()[1]) for line in lines if line.startswith("VmHWM"))
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1024 if sys.platform == "darwin" else 1)


if __name__ == "__main__":
    main(sys.argv[1], *[int(argument) for argument in sys.argv[2:]])
