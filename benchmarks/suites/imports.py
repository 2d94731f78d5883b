"""What does it take to start: an import, and the command line?"""

import subprocess
import sys
import time

from benchmarks.interleave import Probe, measure_probes
from benchmarks.registry import Registry
from benchmarks.results import Figure
from benchmarks.sizes import Sizes

_IMPORT = "import time; began = time.perf_counter(); import {}; print(time.perf_counter() - began)"
_BARE_COMMAND = "import click; click.command()(lambda: None)()"
_GNL = "from gnl_middleware.cli import main; main()"


def measure(registry: Registry, sizes: Sizes) -> list[Figure]:  # noqa: ARG001 - as the other suites
    """Imports over an interpreter that runs already; commands from beginning to end."""
    sqlalchemy = Probe("sqlalchemy", "ms", lambda: _imported("sqlalchemy"))
    ours = Probe("gnl_middleware", "ms", lambda: _imported("gnl_middleware"), sqlalchemy)
    bare = Probe("a bare click command --help", "ms", lambda: _ran(_BARE_COMMAND))
    gnl = Probe("gnl --help", "ms", lambda: _ran(_GNL), bare)
    return measure_probes([sqlalchemy, ours, bare, gnl], sizes.imports)


def _imported(module: str) -> dict[str, float]:
    """Milliseconds of an import in a new process."""
    command = [sys.executable, "-c", _IMPORT.format(module)]
    seconds = float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return {"import": seconds * 1e3}


def _ran(program: str) -> dict[str, float]:
    """Milliseconds of a process that shows its help."""
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", program, "--help"], check=True, capture_output=True)
    return {"command": (time.perf_counter() - began) * 1e3}
