"""The matrix over agents of ``create_agent``: nothing in it knows LangChain, and nothing in the agents knows of it."""

from uuid import uuid4

import pytest

from gnl_middleware import safe
from gnl_middleware.testing import MID_STREAM, POINTS, crash_matrix
from tests.langchain.driving import drive
from tests.toolkit.support_agents import running, support

IN_DOUBT = {"after_intent", "before_body", "after_body", "before_outcome"}


@pytest.mark.parametrize(
    ("shape", "way", "steps"),
    [
        ("sequential", "invoke", ["model", "book", "model", "mail", "model"]),
        ("parallel", "ainvoke", ["model", "book", "mail", "model"]),
        ("nested", "invoke", ["model", "desk", "model", "book", "model", "mail", "model", "model"]),
    ],
)
def test_an_agent_survives_death_at_every_point(log, shape, way, steps):
    """Wherever its worker dies, the agent books and mails at most once, asks no answered model again, and ends or blocks."""
    matrix = crash_matrix(support(log, shape), running(way), log)

    matrix.assert_safe()
    assert sorted(step.title for step in matrix.clean.steps) == sorted(steps)
    assert len(matrix.cells) == len(POINTS) * len(steps)
    assert matrix.clean.effects == {"book": 1, "mail": 1}
    assert matrix.clean.model_calls == steps.count("model")
    died_in_doubt = {
        cell.ending for cell in matrix.cells if cell.step.label == "never" and cell.point in IN_DOUBT
    }
    assert died_in_doubt == {"blocked"}
    assert all(cell.model_calls_repeated == 0 for cell in matrix.cells)


@pytest.mark.parametrize("way", ["stream", "astream"])
def test_a_streamed_model_call_dies_in_mid_stream(log, way):
    """Streamed model calls have one point more, between their chunks: the cut stream is asked again, and nothing else."""
    matrix = crash_matrix(
        support(log, "sequential"), running(way), log, points=["before_body", MID_STREAM, "after_outcome"]
    )

    matrix.assert_safe()
    cut = [cell for cell in matrix.cells if cell.point == MID_STREAM]
    assert [(cell.step.number, cell.step.kind) for cell in cut] == [(1, "model"), (3, "model"), (5, "model")]
    ended = ("finished", True, {"book": 1, "mail": 1})
    assert [(cell.ending, cell.reply_equal, cell.effects) for cell in cut] == [ended] * 3


@pytest.mark.parametrize(("shape", "way"), [("parallel", "invoke"), ("nested", "ainvoke")])
def test_a_wrong_label_is_found_wherever_the_tool_is_called(log, shape, way):
    """A mail tool labelled `safe`, beside another call or inside another tool, is named as the one that happened twice."""
    build = support(log, shape, mailing=safe)

    matrix = crash_matrix(build, running(way), log, steps=["mail"], points=["after_body"])

    assert [(problem.kind, problem.tool, problem.found, problem.expected) for problem in matrix.problems] == [
        ("doubled", "mail", 2, 1)
    ]
    with pytest.raises(AssertionError, match=r"mail happened 2 times instead of 1, .*:after_body \(mail\)"):
        matrix.assert_safe()


def test_a_prompt_that_changes_is_found(log):
    """A user message that differs at each attempt makes answered models be asked again, or stops the run: both are told."""

    def run(agent, run_id, journal):
        question = {"messages": [("user", f"refund order 7, ticket {uuid4()}")]}
        return drive(journal, agent, "invoke", run_id=run_id, given=question).reply

    matrix = crash_matrix(support(log, "parallel"), run, log, steps=["model"], points=["after_outcome"])

    early, late = matrix.cells
    assert (early.step.number, early.ending, early.model_calls_repeated) == (1, "finished", 1)
    assert (late.step.number, late.ending) == (4, "failed")
    with pytest.raises(AssertionError) as raised:
        matrix.assert_safe()
    message = str(raised.value)
    assert "1 model call that had been answered was made again, when the worker died at 1:" in message
    assert "run.now()" in message
    assert "DivergenceError" in message
