"""A browser for the tests of pages, a server for each journal, and a place for pictures of them."""

import os
import re
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import uvicorn

from gnl_middleware import Journal
from gnl_middleware.viewer.app import Watch, application, new_token
from gnl_middleware.viewer.plain import Place
from tests.viewer.browser import launched


@pytest.fixture(scope="session")
def pictures(tmp_path_factory):
    """Where the screenshots of a test run are kept."""
    named = os.environ.get("GNL_SCREENSHOTS")
    folder = Path(named) if named else tmp_path_factory.mktemp("screenshots")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture(scope="module")
def browser():
    """Chromium, without a window; ended with its module, since its event loop runs in this thread until then."""
    driver, browser = launched()
    yield browser
    browser.close()
    driver.stop()


@pytest.fixture
def tab(browser):
    """A page of its own, whose errors fail the test."""
    context = browser.new_context(viewport={"width": 1180, "height": 900}, reduced_motion="reduce")
    context.set_default_timeout(10_000)
    page = context.new_page()
    problems = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("console", lambda said: problems.append(said.text) if said.type == "error" else None)
    page.problems = problems
    yield page
    context.close()


@pytest.fixture
def journal_path(tmp_path):
    """Where the journal of a test is."""
    return tmp_path / "runs.db"


@pytest.fixture
def journal(journal_path):
    """The journal of a test."""
    with Journal(journal_path) as opened:
        yield opened


class Server:
    """The pages of a journal, served by a thread.

    Attributes:
        base: Where.
        token: What a person must have.
        address: Both.
    """

    def __init__(self, journal, journal_path):
        self._socket = socket.create_server(("127.0.0.1", 0))
        watch = Watch(journal, new_token(), Place(("--journal", str(journal_path))), every=0.05)
        config = uvicorn.Config(application(watch), log_level="warning", timeout_graceful_shutdown=1)
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": [self._socket]})
        self._thread.start()
        self.base = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self.token, self.address = watch.token, f"{self.base}/?token={watch.token}"

    def stop(self):
        """End it."""
        self._server.should_exit = True
        self._thread.join()
        self._socket.close()


@pytest.fixture
def server(journal, journal_path):
    """A server on the test's journal."""
    journal.runs()
    started = Server(journal, journal_path)
    yield started
    started.stop()


@pytest.fixture
def served(journal, journal_path):
    """`gnl serve` on the test's journal as a process of its own, and the address that it prints."""
    journal.runs()
    command = [
        sys.executable,
        "-m",
        "gnl_middleware.cli",
        "serve",
        "--port",
        "0",
        "--journal",
        str(journal_path),
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        yield process, re.search(r"http://\S+", process.stdout.readline())[0]
        process.kill()
