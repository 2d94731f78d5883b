"""A world for each test: what tools did to it outlives every worker."""

import pytest

from gnl_middleware.testing import EffectLog


@pytest.fixture
def log(tmp_path):
    """What the tools of a test did."""
    return EffectLog(tmp_path / "effects.jsonl")


@pytest.fixture
def anyio_backend():
    """LangGraph runs on asyncio."""
    return "asyncio"
