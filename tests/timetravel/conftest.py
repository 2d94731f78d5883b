"""A journal on a file and one on a server for each test."""

import itertools

import pytest

from gnl_middleware import Journal

_schemas = itertools.count(1)


def pytest_generate_tests(metafunc):
    """Run each test on both databases; of a module that names tests in ``ON_BOTH``, the others on a file only."""
    if "url" in metafunc.fixturenames:
        both = getattr(metafunc.module, "ON_BOTH", {metafunc.function.__name__})
        stores = ["sqlite", "postgres"] if metafunc.function.__name__ in both else ["sqlite"]
        metafunc.parametrize("url", stores, indirect=True)


@pytest.fixture
def url(request, tmp_path):
    """Where the journal of a test is."""
    if request.param == "sqlite":
        return str(tmp_path / "runs.db")
    server = request.getfixturevalue("server_url")
    return f"{server}{'&' if '?' in server else '?'}schema=travel_{next(_schemas)}"


@pytest.fixture
def journal(url):
    """The journal of a test, closed behind it."""
    with Journal(url) as opened:
        yield opened
