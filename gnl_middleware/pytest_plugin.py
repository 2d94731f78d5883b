"""The crash toolkit and cassettes as pytest fixtures; pytest finds this plugin by itself (``-p no:gnl`` leaves it out).

It is loaded at every start of pytest, so what its fixtures give is imported when a test asks for it.
"""

import re
from collections.abc import Callable, Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from .cassettes import ActiveCassette
    from .testing import CrashMatrix, EffectLog, ManualClock

_failure = pytest.StashKey[BaseException]()


@pytest.fixture
def crash_matrix() -> "Callable[..., CrashMatrix]":
    """``crash_matrix(build, run, effects).assert_safe()``: kill the agent's worker everywhere, and count what happened.

    See ``gnl_middleware.testing.crash_matrix``.
    """
    from .testing import crash_matrix  # noqa: PLC0415 - see above

    return crash_matrix


@pytest.fixture
def crash_at() -> "Callable[..., None]":
    """``crash_at("send_email:after_body", run, agent)``: a process that dies there, for a test of what comes after.

    See ``gnl_middleware.testing.crash_at``.
    """
    from .testing import crash_at  # noqa: PLC0415 - see above

    return crash_at


@pytest.fixture
def effect_log(tmp_path: Path) -> "EffectLog":
    """A log for the doubles of tools: ``effect_log.note("send_email")``; as ``effects`` it counts them for each run."""
    from .testing import EffectLog  # noqa: PLC0415 - see above

    return EffectLog(tmp_path / "effects.jsonl")


@pytest.fixture
def manual_clock() -> "ManualClock":
    """A clock for ``Journal(clock=manual_clock)`` that the test turns: ``manual_clock.advance(30)``."""
    from .testing import ManualClock  # noqa: PLC0415 - see above

    return ManualClock()


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known."""
    config.addinivalue_line(
        "markers",
        "cassette(path=None, **options): which file the fixture `cassette` plays, and use_cassette's options",
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Let the fixture `cassette` know how its test has ended."""
    if call.when == "call" and call.excinfo is not None:
        item.stash[_failure] = call.excinfo.value
    return (yield)


@pytest.fixture
def cassette(request: pytest.FixtureRequest) -> "Generator[ActiveCassette]":
    """The test's own cassette, active while it runs: ``cassettes/<module>/<test>.yaml`` beside the test's file.

    ``GNL_RECORD=1`` records it. ``@pytest.mark.cassette("other.yaml", ordered=True)`` names another file of that folder and
    gives options; see ``gnl_middleware.cassettes.use_cassette``.
    """
    from .cassettes import use_cassette  # noqa: PLC0415 - see above

    marker = request.node.get_closest_marker("cassette")
    options: dict[str, Any] = {} if marker is None else dict(marker.kwargs)
    named: tuple[Any, ...] = () if marker is None else marker.args
    folder = Path(request.path).parent / "cassettes"
    own = Path(Path(request.path).stem, re.sub(r"[^\w.-]+", "-", request.node.name).strip("-") + ".yaml")
    use = use_cassette(folder / (named[0] if named else own), **options)
    active = use.__enter__()
    try:
        yield active
    finally:
        # What has failed is not recorded; and a miss that made it fail is told once.
        error: BaseException | None = request.node.stash.get(_failure, None)
        use.__exit__(None if error is None else type(error), error, None)
