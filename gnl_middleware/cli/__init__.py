"""The command line `gnl`: look into a journal, and decide what may have happened. Needs the extra `cli`."""

import io
import sys
from collections.abc import Sequence
from importlib.util import find_spec

_NEEDED = ("click", "rich")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line, then exit.

    Args:
        arguments: What stands behind `gnl`; the process's own arguments by default.

    Raises:
        SystemExit: Always. The code is 0 when it went well, 1 when what was asked about is not there or was refused, and
            2 when the command could not be understood or click and rich are not installed.
    """
    if any(find_spec(package) is None for package in _NEEDED):
        sys.stderr.write("The command line needs click and rich: pip install 'gnl-middleware[cli]'\n")
        raise SystemExit(2)
    for stream in (sys.stdout, sys.stderr):
        # A terminal that lacks a character shows its code; an answer half printed would be worse.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    from .app import app  # noqa: PLC0415 - click may be missing, and is looked for first

    app.main(None if arguments is None else list(arguments), prog_name="gnl")
