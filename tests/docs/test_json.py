"""The shapes that `--json` prints are those that docs/command-line.md promises."""

import re
from dataclasses import fields

import pytest

from gnl_middleware.cli.doctor import Finding
from gnl_middleware.model import RunRecord, Step
from gnl_middleware.records import Attempt, RemovedRun, Resolution
from gnl_middleware.viewer.plain import Place, waiting_object, waiting_steps
from tests.docs.conftest import DOCS

TEXT = (DOCS / "command-line.md").read_text(encoding="utf-8")
STEP = Step(
    run_id="a",
    key="send/1f/1",
    number=1,
    scope="",
    kind="tool",
    name="send",
    policy="never",
    status="started",
    blocked="no recover",
    attempts=1,
    started_at=0.0,
    finished_at=None,
    arguments={},
    value=None,
    error=None,
    drifted=False,
    resolution=None,
)
RUN = RunRecord("a", "blocked", 1, 0.0, 0.0, None, None)


def promised(name):
    """The names that the document gives an object."""
    (row,) = re.findall(rf"^\| {name} \| (.*) \|$", TEXT, re.MULTILINE)
    return re.findall(r"`(\w+)`", row)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("RUN", RunRecord),
        ("STEP", Step),
        ("ATTEMPT", Attempt),
        ("RESOLUTION", Resolution),
        ("REMOVAL", RemovedRun),
        ("FINDING", Finding),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_objects_have_the_promised_names(name, kind):
    """No name of an object comes, goes or moves without the document saying so."""
    assert promised(name) == [item.name for item in fields(kind)]


def test_what_waits_has_the_promised_names():
    """So has a call that waits for a decision."""
    (waiting,) = waiting_steps(RUN, [STEP], Place())

    assert promised("WAITING") == list(waiting_object(waiting))


def test_every_status_is_explained():
    """Each status that a run can have is explained."""
    explained = TEXT[TEXT.index("Statuses of a run") :]

    for status in ("running", "paused", "completed", "failed", "blocked", "interrupted", "erased"):
        assert f"`{status}`" in explained
