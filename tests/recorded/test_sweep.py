"""Recorded traffic of public projects, every tool labelled ``never``: whatever kills the worker, the recording's end.

The provider gives each recorded answer once over all attempts. One exception is right and counted: where the worker died
between an answer and its recorded outcome, the answer reached nobody, so it is asked for once more.
"""

import pytest

from tests.recorded.checks import check_ends_as_recorded
from tests.recorded.recordings import GRAPHS, NAMES, OF_THE_AGENTS_SDK, STREAMED

pytestmark = pytest.mark.usefixtures("recorded_traffic")

WAYS = ("sync", "async")
SLICE = 2


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("recording", NAMES)
def test_a_slice_of_the_places_to_die(sweep, recording, way):
    """Killed anywhere, a recorded run ends as recorded: each answer asked for once, each tool executed once."""
    swept = sweep(recording, way, share=SLICE)

    assert len(swept["killed"]) == SLICE
    check_ends_as_recorded(swept)


@pytest.mark.long
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("recording", NAMES)
def test_every_place_to_die(sweep, recording, way):
    """The same at every crash point of every step, and half way through each stream."""
    swept = sweep(recording, way, share=None)

    kinds, killed = [kind for _, kind in swept["clean"]["kinds"]], {run["cell"] for run in swept["killed"]}
    streamed = kinds.count("model") if recording in STREAMED else 0
    assert len(killed) == len(swept["killed"]) == (6 * len(kinds) + streamed or 3)
    check_ends_as_recorded(swept)


@pytest.mark.parametrize(("recording", "way"), [(name, WAYS[place % 2]) for place, name in enumerate(GRAPHS)])
def test_a_slice_of_the_places_where_graphs_die(sweep, recording, way):
    """The same where the application is a hand-written graph: a node for each agent, and one for its tools."""
    swept = sweep(recording, way, share=2, framework="langgraph")

    assert len(swept["killed"]) == 2
    check_ends_as_recorded(swept)


@pytest.mark.long
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("recording", GRAPHS)
def test_every_place_where_graphs_die(sweep, recording, way):
    """The same at every crash point of every step, and half way through each stream."""
    swept = sweep(recording, way, share=None, framework="langgraph")

    kinds = [kind for _, kind in swept["clean"]["kinds"]]
    assert len(swept["killed"]) >= 6 * len(kinds)
    check_ends_as_recorded(swept)


@pytest.mark.parametrize("recording", OF_THE_AGENTS_SDK)
def test_a_slice_of_the_places_where_agents_of_the_sdk_die(sweep, recording):
    """The same for the OpenAI Agents SDK, in strict mode, which raises nothing."""
    swept = sweep(recording, "async", share=2, framework="openai_agents")

    assert len(swept["killed"]) == 2
    check_ends_as_recorded(swept)


@pytest.mark.long
@pytest.mark.parametrize("recording", OF_THE_AGENTS_SDK)
def test_every_place_where_agents_of_the_sdk_die(sweep, recording):
    """The same at every crash point of every step, and half way through each stream."""
    check_ends_as_recorded(sweep(recording, "async", share=None, framework="openai_agents"))


def test_streams_are_played_as_streams(sweep):
    """The three streamed recordings give their tokens one by one, so the sweep covers streams and not whole replies."""
    events = {name: sweep(name, "sync", share=0)["clean"]["events"] for name in STREAMED}

    assert min(events.values()) > 15


def test_the_sweep_notices_a_tool_that_ran_twice(sweep):
    """Labelled ``safe``, a tool that had run when its worker died runs again, and the count says so."""
    swept = sweep("lc_raw_dict_stream", "async", share=None, label="safe")

    twice = {run["cell"] for run in swept["killed"] if 2 in run["executed"].values()}
    assert twice == {"2:after_body", "2:before_outcome"}
