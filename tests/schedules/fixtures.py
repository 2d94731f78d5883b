"""Where the processes of a test come from, and how much of a sweep is run."""

import pytest

from tests.schedules.nursery import Nursery
from tests.schedules.sweeping import Sweep, a_slice, everything


@pytest.fixture(scope="session")
def nursery():
    """A warm parent for processes that die."""
    with Nursery("tests.schedules.programs", "tests.reports.programs") as processes:
        yield processes


@pytest.fixture
def trial(nursery, tmp_path):
    """Run courses of deaths that the test names itself."""
    return Sweep(nursery, tmp_path / "runs", everything)


@pytest.fixture(params=[pytest.param(1, id="slice"), pytest.param(None, id="whole", marks=pytest.mark.long)])
def sweep(request, nursery, tmp_path):
    """Sweep over crash points: a few of them in CI, all of them with ``-m long``."""
    choose = everything if request.param is None else a_slice(request.param)
    return Sweep(nursery, tmp_path / "runs", choose)
