"""The campaign runs from end to end and says what it measured; how fast anything was is nothing that a test may judge."""

import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from benchmarks.results import Results

ROOT = Path(__file__).parents[2]
MEASURED = {
    *(
        "step",
        "whole",
        "processor",
        "bytes",
        "syncs",
        "commits",
        "resume",
        "load",
        "serve",
        "import",
        "command",
    ),
    *("listing", "memory", "at once: step", "at once: memory", "long: step", "long: load", "long: serve"),
}


@pytest.fixture(scope="module")
def written(tmp_path_factory, server_url):
    """What the smallest campaign writes."""
    folder = tmp_path_factory.mktemp("benchmarks")
    command = [sys.executable, "-m", "benchmarks", "--tiny", "--output", folder, "--postgres", server_url]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


def test_everything_is_measured(written):
    """Each suite measured what it is there for, every floor and every way of ours, and nothing took no time."""
    results = Results.read(written / "results.json")

    assert {figure.what for figure in results.figures} >= MEASURED
    assert {name for name in results.missing if name != "DBOS"} == set()
    subjects = {figure.subject for figure in results.figures}
    ways = {"gnl", "gnl, create_agent", "gnl, LangGraph", "gnl, Agents SDK", "by hand"}
    assert subjects >= {f"{way}, {database}" for way in ways for database in ("SQLite", "PostgreSQL")}
    assert [figure for figure in results.figures if figure.what != "memory" and figure.value.median < 0] == []
    timed = ("step", "whole", "resume", "import", "command", "listing")
    assert [figure for figure in results.figures if figure.what in timed and figure.value.median <= 0] == []


def test_machine_is_described_without_names(written):
    """The results say on what they were measured, and name neither the host nor a folder."""
    results = Results.read(written / "results.json")

    assert {"processor", "cores", "kernel", "file system of the journal", "python", "packages"} <= set(
        results.machine
    )
    text = (written / "results.json").read_text(encoding="utf-8")
    assert [name for name in (tempfile.gettempdir(), str(ROOT), socket.gethostname()) if name in text] == []


def test_pictures_are_drawn(written):
    """Each picture is an SVG that can be read as one, with text for its words."""
    pictures = sorted(written.glob("*.svg"))

    assert [picture.stem for picture in pictures] == ["agents", "at-once", "resume", "step", "weight"]
    trees = [ET.parse(picture) for picture in pictures]  # noqa: S314 - drawn by ourselves
    assert all("gnl, " in " ".join(tree.getroot().itertext()) for tree in trees)


def test_tables_are_written(written):
    """The tables name the floors and this library, and stand in sections."""
    tables = (written / "tables.md").read_text(encoding="utf-8")

    assert "## A step\n" in tables
    assert "| gnl, SQLite | 1 |" in tables
    assert "| by hand, SQLite | 1 |" in tables
