"""What the tests of many workers share."""

import contextlib

import pytest

from tests.processes.children import Child


@pytest.fixture
def effects(tmp_path):
    """The file in which effects happen."""
    return str(tmp_path / "effects")


@pytest.fixture
def crowd():
    """Start a process for each tuple of arguments; all of them are gone after the test."""
    with contextlib.ExitStack() as stack:

        def start(program, *arguments, patience=120):
            return [stack.enter_context(Child(program, *each, patience=patience)) for each in arguments]

        yield start
