"""Crash points: what they are called, who may watch them, and the one that only streams come to."""

import pytest

from gnl_langchain import journaled_model
from gnl_middleware import Journal, ReplayMissError, journaled, safe
from gnl_middleware.testing import (
    CRASH_VARIABLE,
    MID_STREAM,
    POINTS,
    CrashPoint,
    install_crash_points,
    model_off,
)
from tests.langchain.driving import drive
from tests.langchain.scripted import ScriptedModel, said, turns
from tests.toolkit.support_agents import support

IN_ORDER = [*POINTS[:3], MID_STREAM, *POINTS[3:]]


@pytest.fixture
def journal(tmp_path):
    """A journal on a real file."""
    with Journal(tmp_path / "runs.db") as journal:
        yield journal


def test_the_six_points_of_every_step_are_those_they_were():
    """A step that is not streamed has six points, and `mid_stream` is none of them."""
    assert POINTS == (
        "before_intent",
        "after_intent",
        "before_body",
        "after_body",
        "before_outcome",
        "after_outcome",
    )


@pytest.mark.parametrize("way", ["stream", "astream"])
def test_a_streamed_model_call_passes_mid_stream(log, journal, watch_points, way):
    """A streamed model call comes to `mid_stream` once, after its first chunk was given on; a tool never does."""
    reached = []
    watch_points(lambda point, number, name: reached.append((number, point)))

    drive(journal, support(log, "sequential")(), way)

    assert [point for number, point in reached if number == 1] == IN_ORDER
    assert [point for number, point in reached if number == 2] == list(POINTS)


def test_the_first_chunk_is_given_on_before_mid_stream(journal, watch_points):
    """Whoever consumes the stream has its first chunk when the point is reached, and no more than that."""
    chunks, given = [], []
    watch_points(lambda point, number, name: given.append(list(chunks)) if point == MID_STREAM else None)
    model = journaled_model(ScriptedModel(script=turns(said("All is done."))))

    with journal.run("run"):
        for chunk in model.stream("hello"):
            chunks.append(str(chunk.content))  # noqa: PERF401 - one by one: it is watched as it grows

    assert given == [["All "]]
    assert chunks == ["All ", "is ", "done. ", ""]


def test_a_step_that_is_not_streamed_never_passes_mid_stream(log, journal, watch_points):
    """A model call whose reply comes in one piece has no such point."""
    reached = set()
    watch_points(lambda point, number, name: reached.add(point))

    drive(journal, support(log, "sequential")(), "invoke")

    assert reached == set(POINTS)


def test_mid_stream_can_be_named_as_a_crash_point():
    """`STEP:mid_stream` is a crash point like the others; an unknown one is refused with the names of all."""
    assert CrashPoint.parse("gpt-4o:mid_stream") == CrashPoint("gpt-4o", "mid_stream")
    with pytest.raises(ValueError, match="mid_stream"):
        CrashPoint.parse("gpt-4o:mid_body")


def test_a_program_that_installs_no_crash_point_leaves_the_toolkit_alone(journal):
    """`install_crash_points()` in the code under test takes away its own observer, never the toolkit's."""
    call = journaled(lambda: 1, replay=safe, name="call")
    with model_off() as refused:
        install_crash_points({CRASH_VARIABLE: ""})

        with pytest.raises(ReplayMissError), journal.run("run"):
            call()

    assert refused == ["call"]
