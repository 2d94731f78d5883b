"""What the campaigns of this folder found, printed at the end of the session."""

from collections.abc import Callable, Generator
from typing import Any

import pytest

_FIGURES = "figures of a crash campaign"


@pytest.fixture
def figures(request: pytest.FixtureRequest) -> Callable[..., None]:
    """Note the figures of a campaign: called with its name and its counts, which are printed when all tests have run."""

    def note(campaign: str, **counts: Any) -> None:
        told = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in counts.items())
        # A property travels with the test's report, also from a worker process to the one that prints.
        request.node.user_properties.append((_FIGURES, f"{campaign}: {told}"))

    return note


@pytest.hookimpl(wrapper=True)
def pytest_terminal_summary(terminalreporter: Any) -> Generator[None]:
    """Print the figures."""
    yield
    reports = [
        report for outcome in ("passed", "failed") for report in terminalreporter.stats.get(outcome, [])
    ]
    noted = [
        line
        for report in reports
        for name, line in getattr(report, "user_properties", [])
        if name == _FIGURES
    ]
    if noted:
        terminalreporter.section("crash campaign")
        for line in noted:
            terminalreporter.line(line)
