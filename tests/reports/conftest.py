"""Fixtures of the reported troubles: a world and a journal for each, and processes that can die."""

import pytest

from gnl_middleware import Journal
from tests.schedules.fixtures import nursery, sweep, trial
from tests.schedules.world import World

__all__ = ["nursery", "sweep", "trial"]


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture
def world(tmp_path):
    """Where effects and model calls are counted."""
    return World(tmp_path / "world")


@pytest.fixture
def journal(tmp_path):
    with Journal(tmp_path / "journal.db") as opened:
        yield opened
