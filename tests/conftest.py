"""What holds for all tests."""

import faulthandler
import os
import time

import pytest

from gnl_middleware import Journal
from gnl_middleware.session import context
from gnl_middleware.session.context import current_session
from gnl_middleware.testing import observe_points
from tests.lacking import lack
from tests.postgres.server import VARIABLE, NoServerError, Server, create_database
from tests.recorded.recordings import missing
from tests.worlds import Log


@pytest.fixture(autouse=True)
def patience_for_long_campaigns(request):
    """A whole campaign takes longer than any other test may, so nothing ends it as if it hung."""
    if request.node.get_closest_marker("long"):
        faulthandler.cancel_dump_traceback_later()


@pytest.fixture(autouse=True)
def no_run_is_left_open():
    """What a test leaves open would be the run of the next test's calls."""
    yield
    left = current_session()
    if left is not None:
        context._entered.set(())
        pytest.fail(f"run {left.run_id!r} is still open behind the test")


@pytest.fixture
def journal(tmp_path):
    """A journal that is closed after the test."""
    with Journal(tmp_path / "runs.db") as opened:
        yield opened


@pytest.fixture
def watch_points():
    """Watch the points that steps come to: called with an observer of (point, step number, name)."""
    yield observe_points
    observe_points(None)


@pytest.fixture
def effects(tmp_path):
    """The world of a test: what its tools did."""
    return Log(tmp_path / "effects")


@pytest.fixture(scope="session")
def server_url():
    """A PostgreSQL server: the one that is named, or one that is started here. In CI there must be one."""
    if url := os.environ.get(VARIABLE):
        yield url
        return
    server = _started()
    yield server.url
    server.remove()


@pytest.fixture
def own_server():
    """A PostgreSQL server that a test may kill."""
    server = _started()
    yield server
    server.remove()


@pytest.fixture(params=["sqlite", "postgres"])
def place(request, tmp_path):
    """Where a journal may be: a path or a URL. Tests that take it hold for both databases."""
    if request.param == "sqlite":
        return str(tmp_path / "runs.db")
    return create_database(request.getfixturevalue("server_url"))


@pytest.fixture
def recorded_traffic():
    """The recorded traffic of public projects is here."""
    if (problem := missing()) is not None:
        lack(problem)


@pytest.fixture
def eventually():
    """Look again and again until something is so; fail after a minute."""

    def wait(holds):
        patience = time.monotonic() + 60
        while not holds():
            assert time.monotonic() < patience
            time.sleep(0.005)

    return wait


def _started():
    try:
        return Server()
    except NoServerError as problem:
        lack(f"no PostgreSQL to test against: {problem}")
