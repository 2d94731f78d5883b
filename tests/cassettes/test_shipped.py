"""The cassettes that this repository ships: they play offline, say where they come from, and have not drifted."""

import pytest

from gnl_middleware.cassettes import layout, use_cassette
from tests.cassettes.scenarios import SCENARIOS, SUMMARY
from tests.record_cassettes import FOLDER, PLAYED, play, record_invoice, record_scenario

EXPECTED = {
    "chat_sequential": SUMMARY,
    "chat_parallel_stream": SUMMARY,
    "chat_structured": {"city": "Oslo"},
    "chat_errors": {
        "bad": "BadRequestError 400",
        "key": "AuthenticationError 401",
        "limit": "Now it works.",
        "crash": "Now it works.",
    },
    "chat_broken_stream": ["This text does not come ", "APIError"],
    "responses_handoff": ["Forecaster", "In Oslo it rains at 7 degrees."],
    "responses_reasoning": [
        ["reasoning_item", "tool_call_item", "tool_call_output_item"] * 2
        + ["reasoning_item", "message_output_item"],
        SUMMARY,
    ],
    "anthropic_sequential": SUMMARY,
    "anthropic_parallel_stream": SUMMARY,
}
HEADER = ("Server:", "Model:", "Client:", "Recorded:", "Shows:", "Script:", "Again:")


def test_each_scenario_has_its_cassette():
    """There is a cassette for each scenario, and none that nobody can record again."""
    assert {path.stem for path in FOLDER.glob("*.yaml")} == {*SCENARIOS, "invoice"}
    assert set(SCENARIOS) == set(EXPECTED)


@pytest.mark.parametrize("name", SCENARIOS)
def test_it_plays_offline(name):
    """The real clients find out from the cassette what its story says, and ask for each answer once."""
    with use_cassette(FOLDER / f"{name}.yaml") as cassette:
        found = play(SCENARIOS[name], PLAYED)

    assert found == EXPECTED[name]
    assert cassette.unplayed == ()


@pytest.mark.parametrize("name", SCENARIOS)
def test_it_is_what_its_script_records(name, tmp_path):
    """Recording again gives the same traffic: programs, scripts, clients and cassettes have not drifted apart."""
    again = tmp_path / "again.yaml"

    record_scenario(name, again)

    assert layout.read(again) == layout.read(FOLDER / f"{name}.yaml")


def test_the_conversation_of_the_notebooks_is_what_its_script_records(tmp_path):
    """The exported run that the notebooks play has not drifted either."""
    again = tmp_path / "again.yaml"

    record_invoice(again)

    assert layout.contents(again) == layout.contents(FOLDER / "invoice.yaml")


@pytest.mark.parametrize("name", SCENARIOS)
def test_it_says_how_it_was_recorded(name):
    """The first lines name server, model, client, day, story, script, and the command that records it again."""
    text = (FOLDER / f"{name}.yaml").read_text(encoding="utf-8")
    header = [line for line in text.splitlines() if line.startswith("#")]

    assert [word for word in HEADER if word not in " ".join(header)] == []
    assert len(text) < 20_000
