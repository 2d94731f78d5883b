"""A journal and a world for each test."""

import pytest

from tests.langgraph.worlds import World
from tests.postgres.conftest import url

__all__ = ["url", "world"]


@pytest.fixture
def world(tmp_path):
    """The world of a test."""
    return World(tmp_path)
