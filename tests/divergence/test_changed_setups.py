"""A changed setup of an agent between two attempts: its instructions, its model, its settings or its tools."""

import logging

import pytest

from gnl_middleware import DivergenceError
from tests.langchain.driving import drive
from tests.langchain.test_strict import agent_of
from tests.worlds import Log

SETUPS = {
    "instructions": {"prompt": "Be verbose."},
    "model": {"model_name": "scripted-2"},
    "tool description": {"description": "Pay the money back."},
    "another tool": {"more_tools": True},
}


@pytest.fixture
def recorded(journal, tmp_path):
    """A journal with the whole run of an agent."""
    drive(journal, agent_of(tmp_path)[1])
    return journal


@pytest.mark.parametrize("changes", SETUPS.values(), ids=SETUPS)
def test_stop_reports_it_in_a_lenient_run(recorded, tmp_path, changes):
    """With on_change="stop" a lenient run is stopped by a changed setup, before anybody is asked or anything runs."""
    with pytest.raises(DivergenceError):
        drive(recorded, agent_of(tmp_path, **changes)[1], on_change="stop")

    assert (len(Log(tmp_path / "bill").lines()), len(Log(tmp_path / "effects").lines())) == (2, 1)


@pytest.mark.parametrize("changes", SETUPS.values(), ids=SETUPS)
def test_continue_lets_it_pass_in_a_strict_run(recorded, tmp_path, changes):
    """With on_change="continue" a strict run goes on with a changed setup, and serves its records."""
    driven = drive(recorded, agent_of(tmp_path, **changes)[1], replay="strict", on_change="continue")

    assert (driven.reply, driven.ran) == ("It is refunded.", 0)


def test_continue_lets_nothing_else_pass(recorded, tmp_path):
    """A changed question is no changed setup: a strict run with on_change="continue" stops at it."""
    question = {"messages": [("user", "please refund order 8")]}

    with pytest.raises(DivergenceError):
        drive(recorded, agent_of(tmp_path)[1], given=question, replay="strict", on_change="continue")


@pytest.mark.parametrize(
    ("changes", "cause"),
    [
        ({"model_name": "scripted-2"}, "another model: 'scripted' answered then, 'scripted-2' is asked now"),
        (
            {"description": "Pay the money back."},
            "the schema of a tool changed, at setup.tools[0].function.description",
        ),
        ({"more_tools": True}, "a new tool look"),
    ],
    ids=["model", "schema", "tool"],
)
def test_the_error_shows_both_setups(recorded, tmp_path, changes, cause):
    """What the model was asked with then and what it would be asked with now are both readable, and so is the cause."""
    with pytest.raises(DivergenceError) as caught:
        drive(recorded, agent_of(tmp_path, **changes)[1], replay="strict")

    assert caught.value.part == "setup"
    assert caught.value.recorded["model"] == "scripted"
    assert f"- {cause}" in str(caught.value)


def test_another_choice_is_refused(journal):
    """A misspelt choice is an error when the run is described, not when it diverges."""
    with pytest.raises(ValueError, match="on_change is 'halt'; choose one of continue, stop"):
        journal.run("order-7", on_change="halt")


class TestTheLogOfALenientRun:
    """Who goes on with a difference is told once, with the place."""

    def warnings(self, caplog):
        return [record.getMessage() for record in caplog.records if record.name == "gnl_middleware"]

    def test_a_timestamp_in_the_prompt_is_named(self, journal, tmp_path, caplog):
        """A prompt that differs only in a date says so, names the place, and what to write instead."""
        drive(journal, agent_of(tmp_path, prompt="Today is 2026-11-29. Be brief.")[1])

        with caplog.at_level(logging.WARNING):
            drive(journal, agent_of(tmp_path, prompt="Today is 2026-11-30. Be brief.")[1])

        (told,) = self.warnings(caplog)
        assert "only what is made anew each time differs" in told
        assert "a date or time at messages[0].content: take it from run.now()" in told

    def test_any_other_change_is_shown(self, recorded, tmp_path, caplog):
        """Another prompt is shown as a difference, once for all the requests that it stands in."""
        with caplog.at_level(logging.WARNING):
            drive(recorded, agent_of(tmp_path, prompt="Be verbose.")[1])

        (told,) = self.warnings(caplog)
        assert "-Be brief.\n+Be verbose." in told

    def test_no_change_says_nothing(self, recorded, tmp_path, caplog):
        """A replay that asks the same is silent."""
        with caplog.at_level(logging.WARNING):
            drive(recorded, agent_of(tmp_path)[1])

        assert self.warnings(caplog) == []
