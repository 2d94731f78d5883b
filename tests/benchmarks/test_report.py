"""What was measured, put into figures, tables and a page."""

import pytest

from benchmarks.goals import GOALS, Goal
from benchmarks.measure import Spread
from benchmarks.report import BEGIN, END, tables, written_into
from benchmarks.results import Figure, Results
from benchmarks.text import payload
from tests.docs.conftest import DOCS


def figure(what, subject, median, **where):
    value = Spread(median, median, median, 1)
    return Figure(what=what, subject=subject, unit="us", value=value, ratio=value, to="by hand", **where)


@pytest.fixture
def results():
    """A step of ours that took 1.5 of something, with one run at once."""
    return Results("full", {"cores": 2}, {}, [figure("step", "gnl, SQLite", 1.5, runs=1, payload=2048)])


def test_spread_is_median_and_quartiles():
    """A spread is the median and the quartiles of what was measured; one value is all three."""
    assert Spread.of([5.0, 1.0, 3.0, 2.0, 4.0]) == Spread(3.0, 2.0, 4.0, 5)
    assert Spread.of([7.0]) == Spread(7.0, 7.0, 7.0, 1)


def test_results_are_read_as_they_were_written(results, tmp_path):
    """What was written is what is read."""
    results.write(tmp_path / "results.json")

    assert Results.read(tmp_path / "results.json") == results


def test_goal_that_was_missed_says_so(results):
    """A goal shows what was wanted, what was measured, and whether that is enough; what was not measured is left out."""
    table = tables(results)

    assert "| a step, SQLite, 1 run, to the floor | at most 1.1 | 1.5 | no |" in table
    assert "DBOS" not in table


@pytest.mark.parametrize(
    ("goal", "number", "reached"),
    [
        (Goal("", lambda _: None, at_most=2), 2, True),
        (Goal("", lambda _: None, at_most=2), 2.1, False),
        (Goal("", lambda _: None, at_least=4), 4, True),
        (Goal("", lambda _: None, at_least=4), 3.9, False),
    ],
)
def test_goals_are_bounds(goal, number, reached):
    """A goal is a bound from above or from below."""
    assert goal.is_reached(number) is reached


def test_each_goal_has_one_bound():
    """No goal is reached by whatever is measured."""
    assert [goal.what for goal in GOALS if (goal.at_most is None) == (goal.at_least is None)] == []


def test_page_keeps_what_people_wrote():
    """Only what stands between the marks is replaced."""
    page = f"before\n{BEGIN}\n\nold\n{END}\nafter\n"

    assert written_into(page, "new") == f"before\n{BEGIN}\n\nnew\n{END}\nafter\n"


def test_page_without_marks_is_refused():
    """Nothing is written where nobody said that it may be."""
    with pytest.raises(ValueError, match="no marks"):
        written_into("a page", "new")


def test_documents_have_the_marks():
    """The page of the documents takes the tables."""
    assert "new" in written_into((DOCS / "performance.md").read_text(encoding="utf-8"), "new")


@pytest.mark.parametrize("size", [100, 2048, 200 * 1024])
def test_payloads_are_as_large_as_they_say(size):
    """A payload has its size, differs from its neighbour, and is the same when it is asked for again."""
    assert len(payload(3, size).encode()) == size
    assert payload(3, size) != payload(4, size)
    assert payload(3, size) == payload(3, size)
