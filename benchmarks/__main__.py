"""``python -m benchmarks``: measure, and write what was measured."""

import argparse
import gc
import os
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

from tests.postgres.server import NoServerError, Server

from . import machine, plots, report
from .registry import Registry
from .results import Results
from .sizes import FULL, QUICK, TINY, Sizes
from .subject import Place
from .suites import agents, growth, imports, resuming, scale, steps

ROOT = Path(__file__).parents[1]
SUITES: Mapping[str, ModuleType] = {
    "steps": steps,
    "agents": agents,
    "growth": growth,
    "resuming": resuming,
    "imports": imports,
    "scale": scale,
}
CAMPAIGNS: Mapping[str, Sizes] = {"full": FULL, "quick": QUICK, "tiny": TINY}


def main(arguments: list[str] | None = None) -> int:
    """Run a campaign; gives the exit code: 1 where a suite failed."""
    options = _parsed(arguments)
    if options.report:
        _publish(Results.read(ROOT / "benchmarks/results.json"))
        return 0
    with _folder(options.folder) as folder, _server(options.postgres) as (postgres, why):
        results, failed = _measured(options.campaign, options.only, Place(folder, postgres), why)
    if options.campaign == "full" and not options.only and not options.output:
        results.write(ROOT / "benchmarks/results.json")
        _publish(results)
    else:
        _put_aside(results, options.output or ROOT / ".benchmarks")
    return 1 if failed else 0


def _parsed(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="Measure what journalling costs."
    )
    campaign = parser.add_mutually_exclusive_group()
    campaign.add_argument(
        "--quick", dest="campaign", action="store_const", const="quick", help="a look, under a minute"
    )
    campaign.add_argument(
        "--tiny", dest="campaign", action="store_const", const="tiny", help="only whether it works"
    )
    parser.set_defaults(campaign="full")
    parser.add_argument("--only", action="append", choices=SUITES, help="only this suite; may be given again")
    parser.add_argument("--postgres", metavar="URL", help="a server to use instead of one that is started")
    parser.add_argument(
        "--folder", type=Path, help="where journals are put: the file system that is measured"
    )
    parser.add_argument(
        "--output", type=Path, metavar="FOLDER", help="write there, and leave the documents alone"
    )
    parser.add_argument(
        "--report", action="store_true", help="only write tables and plots of the last results anew"
    )
    return parser.parse_args(arguments)


@contextmanager
def _folder(given: Path | None) -> Generator[Path]:
    with tempfile.TemporaryDirectory(
        prefix="gnl-benchmarks-", dir=given, ignore_cleanup_errors=True
    ) as folder:
        yield Path(folder)


@contextmanager
def _server(url: str | None) -> Generator[tuple[str | None, str]]:
    """The URL of a server, or why there is none."""
    if url:
        yield url, ""
        return
    try:
        server = Server()
    except NoServerError as problem:
        yield None, str(problem)
        return
    try:
        yield server.url, ""
    finally:
        server.remove()


def _measured(
    campaign: str, only: list[str] | None, place: Place, why_no_server: str
) -> tuple[Results, bool]:
    """The results of the suites, and whether one of them failed: hours later the others are worth having."""
    warnings.simplefilter("ignore")  # of frameworks about themselves
    sizes = CAMPAIGNS[campaign]
    registry = Registry(place, why_no_server=why_no_server, ways_of_dbos=sizes.ways_of_dbos)
    results = Results(campaign, machine.described(place.folder, place.postgres), registry.missing, [])
    failed = False
    gc.collect()
    gc.freeze()  # what the frameworks have loaded is looked through no more, by nobody's collection
    for name, suite in SUITES.items():
        if only and name not in only:
            continue
        began = time.monotonic()
        try:
            results.figures.extend(suite.measure(registry, sizes))
        except Exception as error:  # noqa: BLE001 - reported, and the others go on
            traceback.print_exc()
            failed = True
            registry.missing[f"suite {name}"] = type(error).__name__
        print(f"{name}: {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    return results, failed


def _publish(results: Results) -> None:
    report.rewrite(ROOT / "docs/performance.md", results)
    plots.draw(results, ROOT / "docs" / report.PICTURES)


def _put_aside(results: Results, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    results.write(folder / "results.json")
    plots.draw(results, folder)
    text = report.tables(results)
    (folder / "tables.md").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    # Nothing of the machine that measures is to be sent anywhere.
    os.environ.setdefault("OPENAI_AGENTS_DISABLE_TRACING", "1")
    sys.exit(main())
