"""What the process tests share."""

import pytest


@pytest.fixture
def path(tmp_path):
    """Where the journal of a test is, or will be."""
    return tmp_path / "runs.db"
