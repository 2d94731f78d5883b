"""``gnl`` looks into a journal in PostgreSQL as into one in a file."""

import json

import pytest
from click.testing import CliRunner

from gnl_middleware import Journal, SideEffectRetryBlockedError, journaled, never
from gnl_middleware.cli.app import app
from gnl_middleware.storage.address import parse


class Killed(BaseException):
    """The worker ends here."""


def gnl(*words):
    """Run a command; gives its exit code and what it printed."""
    ended = CliRunner().invoke(app, words)
    return ended.exit_code, ended.output


def cut_off(url):
    """Leave a run blocked behind a charge that was cut off."""

    def body():
        raise Killed

    charge = journaled(body, replay=never, name="charge")
    with Journal(url) as journal:
        with pytest.raises(Killed), journal.run("order-7"):
            charge()
        with pytest.raises(SideEffectRetryBlockedError) as blocked, journal.run("order-7"):
            charge()
    return str(blocked.value)


def test_blocked_run_is_found_and_resolved(url):
    """A run that waits is listed, and the decision that the command takes is the one that the agent gets."""
    cut_off(url)

    _, listed = gnl("runs", "--journal", url, "--json")
    code, _ = gnl("resolve", "order-7", "charge", "--journal", url, "--happened", "--by", "ann")

    assert [run["status"] for run in json.loads(listed)["runs"]] == ["blocked"]
    assert code == 0
    with Journal(url) as journal:
        assert journal.steps("order-7")[0].value == "confirmed by ann"


def test_looking_creates_nothing(url):
    """A database without a journal is reported, and stays as it is."""
    for _ in range(2):
        code, told = gnl("runs", "--journal", url)
        assert code == 1
        assert "holds no journal in the schema gnl" in told


def test_schema_in_the_url(url):
    """A journal in a schema of its own is found by the URL that errors show, also where only a URL is taken."""
    own = f"{url}&schema=jobs"
    error = cut_off(own)

    assert "schema=jobs" in error
    assert gnl("show", "order-7", "--journal", own)[0] == 0
    assert gnl("show", "order-7", "--journal", url)[0] == 1


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("postgres://ann:secret@db:5432/agents", "postgresql+psycopg://ann:***@db:5432/agents"),
        (
            "postgresql://db/agents?user=ann&password=secret",
            "postgresql+psycopg://db/agents?user=ann&password=***",
        ),
        (
            "postgresql://db/agents?pooled=true&schema=jobs",
            "postgresql+psycopg://db/agents?schema=jobs&pooled=true",
        ),
    ],
)
def test_what_is_shown_of_a_url(given, shown):
    """No password is shown, and what is shown opens the same journal."""
    assert parse(given).shown == shown
    assert parse(parse(given).shown).shown == shown
