"""Every promise about what is kept and removed holds in a file and in PostgreSQL."""

import pytest

from gnl_middleware import Journal
from tests.postgres.server import create_database


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request, tmp_path):
    """Where the journal of a test is, or will be."""
    if request.param == "sqlite":
        return str(tmp_path / "runs.db")
    return create_database(request.getfixturevalue("server_url"))


@pytest.fixture
def journal(url):
    """A journal there."""
    with Journal(url) as opened:
        yield opened
