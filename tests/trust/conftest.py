"""A journal of each kind for every promise about trust."""

import pytest

from gnl_middleware import Journal
from tests.postgres.server import create_database


@pytest.fixture(params=["sqlite", "postgres"])
def url(request, tmp_path):
    """Where a journal will be: a file, or an empty database."""
    if request.param == "sqlite":
        return str(tmp_path / "runs.db")
    return create_database(request.getfixturevalue("server_url"))


@pytest.fixture
def file_url(tmp_path):
    """Where a journal will be, for what is the same on every database."""
    return str(tmp_path / "runs.db")


@pytest.fixture
def open_journal():
    """Open a journal with options of the test's own, closed after the test."""
    opened = []

    def open_one(url, **options):
        opened.append(Journal(url, **options))
        return opened[-1]

    yield open_one
    for journal in opened:
        journal.close()
