"""A database for each test, on one server for all."""

import pytest

from gnl_middleware import Journal
from tests.postgres.server import create_database


@pytest.fixture
def url(server_url):
    """An empty database."""
    return create_database(server_url)


@pytest.fixture
def journal(url):
    """A journal in it."""
    with Journal(url) as opened:
        yield opened
