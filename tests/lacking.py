"""What a test needs and the repository does not bring: in CI its lack is a failure, elsewhere a skip that says what to install."""

import os
from typing import NoReturn

import pytest


def lack(problem: str) -> NoReturn:
    """End the test: something that it needs is not here."""
    if os.environ.get("CI"):
        pytest.fail(problem)
    pytest.skip(problem)
