"""The fixture as its users meet it: a test file of theirs, recorded once, then played with no server."""

import os
import subprocess
import sys

import pytest

from tests.servers.answering import Answer, AnsweringServer

TEST_FILE = """
import httpx2
import pytest

URL = "http://127.0.0.1:{port}/v1"

@pytest.mark.parametrize("n", [1, 2])
def test_asks(cassette, n):
    assert httpx2.post(URL, json={{"n": n}}, timeout=5).json() == {{"said": "hello"}}
    assert len(cassette.requests) == 1

@pytest.mark.cassette("shared.yaml", ignore=["at"])
def test_shares(cassette):
    assert httpx2.post(URL, json={{"at": id(object())}}, timeout=5).json() == {{"said": "hello"}}
"""

SWALLOWED = """
import contextlib
import httpx2

def test_goes_on(cassette):
    with contextlib.suppress(Exception):
        httpx2.post("http://127.0.0.1:1/v1")

def test_fails_for_its_own_reason(cassette):
    httpx2.post("http://127.0.0.1:{port}/v1", json={{}}, timeout=5)
    raise ZeroDivisionError
"""

# Another test holds that pytest finds the plugin by itself; the others' plugins would only take their time.
_ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTEST_ADDOPTS"} | {
    "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"
}


@pytest.fixture
def their_pytest(tmp_path):
    """Run pytest on the user's file; gives what it printed."""

    def run(**environment):
        return subprocess.run(
            [
                sys.executable,
                "-m",
                "pytest",
                "-q",
                "-W",
                "error",
                "--strict-markers",
                "-p",
                "gnl_middleware.pytest_plugin",
            ],
            cwd=tmp_path,
            env=_ENVIRONMENT | environment,
            capture_output=True,
            text=True,
            check=False,
        ).stdout

    return run


def test_a_test_records_its_own_cassette_and_plays_it(their_pytest, tmp_path):
    """Without a recording a test fails and says how to record; `GNL_RECORD=1` records; then it passes with no server."""
    with AnsweringServer([Answer(b'{"said": "hello"}')]) as server:
        (tmp_path / "test_theirs.py").write_text(TEST_FILE.format(port=server.port), encoding="utf-8")
        unrecorded = their_pytest()
        assert len(server.asked) == 0
        recorded = their_pytest(GNL_RECORD="1")
        assert len(server.asked) == 3
    played = their_pytest()

    assert "3 failed in" in unrecorded
    assert "GNL_RECORD=1" in unrecorded
    assert "3 passed" in recorded, recorded
    assert "3 passed" in played, played
    folder = tmp_path / "cassettes"
    found = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.yaml"))
    assert found == ["shared.yaml", "test_theirs/test_asks-1.yaml", "test_theirs/test_asks-2.yaml"]


def test_a_failed_test_records_nothing_and_a_swallowed_miss_fails(their_pytest, tmp_path):
    """A test that goes on from a miss fails all the same; one that failed by itself leaves no recording of its failure."""
    with AnsweringServer() as server:
        (tmp_path / "test_theirs.py").write_text(SWALLOWED.format(port=server.port), encoding="utf-8")
        their_pytest(GNL_RECORD="1")
        assert len(server.asked) == 1
        played = their_pytest()

    assert list(tmp_path.rglob("*fails_for_its_own_reason*.yaml")) == []
    assert "CassetteMissError" in played
    assert "1 failed, 1 passed, 1 error" in played
