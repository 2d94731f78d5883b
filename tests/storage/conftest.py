"""A journal on a real file for each storage test."""

import pytest

from gnl_middleware import Journal


@pytest.fixture
def path(tmp_path):
    """Where the journal of a test is, or will be."""
    return tmp_path / "runs.db"


@pytest.fixture
def journal(path):
    """A journal that is closed after the test."""
    with Journal(path) as opened:
        yield opened


@pytest.fixture
def journal_at():
    """Open a journal at a path of the test's own, closed after the test."""
    opened = []

    def open_one(path):
        opened.append(Journal(path))
        return opened[-1]

    yield open_one
    for journal in opened:
        journal.close()
