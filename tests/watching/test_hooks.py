"""Whoever must be told of a run that needs attention is told once, and cannot harm the run."""

import asyncio
import contextlib
import logging

import pytest

from gnl_middleware import DivergenceError, Journal, NotDone, SideEffectRetryBlockedError, journaled, never


class Killed(BaseException):
    """The worker is gone."""


@pytest.fixture
def told():
    """What the hooks were told, in order."""
    return []


@pytest.fixture
def journal(tmp_path, told):
    """A journal whose hooks take notes."""
    hooks = {
        "on_blocked": lambda error: told.append(("blocked", error.run_id, error.tool)),
        "on_divergence": lambda error: told.append(("diverged", error.run_id, error.part)),
        "on_resume": lambda run: told.append(("resumed", run.run_id, run.attempt)),
    }
    with Journal(tmp_path / "runs.db", **hooks) as opened:
        yield opened


def attempt(journal, run_id="a", *, dies=False, **options):
    """An attempt whose only effect may be cut off."""

    @journaled(replay=never)
    def send(to):
        if dies:
            raise Killed
        return "sent"

    with journal.run(run_id, **options):
        send("ann")


def test_a_first_attempt_that_completes_tells_nobody(journal, told):
    """What goes well is no news; nor is a completed run that is read back."""
    attempt(journal)
    attempt(journal)

    assert told == []


def test_resumed_then_blocked_then_resumed(journal, told):
    """An attempt after a crash is told when it begins, and that it stopped, once; so is the one that goes on."""
    with pytest.raises(Killed):
        attempt(journal, dies=True)
    with pytest.raises(SideEffectRetryBlockedError):
        attempt(journal)
    journal.resolve("a", "send", NotDone(), by="ada")
    attempt(journal)

    assert told == [("resumed", "a", 2), ("blocked", "a", "send"), ("resumed", "a", 3)]


def test_a_swallowed_block_is_told_all_the_same(journal, told):
    """Code that swallows the error cannot keep the alert from going out."""
    with pytest.raises(Killed):
        attempt(journal, dies=True)

    @journaled(replay=never)
    def send(to):
        return "sent"

    with pytest.raises(SideEffectRetryBlockedError), journal.run("a"):
        for _ in range(2):
            with contextlib.suppress(Exception):  # as careless code does
                send("ann")

    assert told[1:] == [("blocked", "a", "send")]


def test_divergence(journal, told):
    """A call that no longer matches its record is told with what differs."""

    @journaled(replay=never)
    def charge(amount):
        return "charged"

    with journal.run("a", replay="strict"):
        charge(10)
    with pytest.raises(DivergenceError), journal.run("a", replay="strict"):
        charge(12)

    assert told == [("diverged", "a", "arguments")]


def test_looking_offline_is_no_resumption(journal, told):
    """Who only looks at a run does not set off an alarm."""
    with pytest.raises(Killed):
        attempt(journal, dies=True)
    with journal.run("a", offline=True):
        pass

    assert told == []


def test_asynchronous_code_is_told_as_well(journal, told):
    """Runs that are opened with `async with` tell the same."""
    with pytest.raises(Killed):
        attempt(journal, dies=True)

    async def again():
        async with journal.run("a"):
            pass

    with pytest.raises(SideEffectRetryBlockedError):
        asyncio.run(again())

    assert told == [("resumed", "a", 2), ("blocked", "a", "send")]


def test_a_hook_that_fails_is_logged_and_changes_nothing(tmp_path, caplog):
    """An alert that cannot be sent neither hides the error nor stops a run that could go on."""

    def fail(_):
        raise OSError("no network")

    with Journal(tmp_path / "runs.db", on_blocked=fail, on_resume=fail) as journal:
        with pytest.raises(Killed):
            attempt(journal, dies=True)
        with caplog.at_level(logging.ERROR), pytest.raises(SideEffectRetryBlockedError):
            attempt(journal)
        journal.resolve("a", "send", NotDone(), by="ada")
        attempt(journal)

        assert journal.find("a").status == "completed"
    assert [record.message.split()[2] for record in caplog.records] == [
        "on_resume",
        "on_blocked",
        "on_resume",
    ]
