"""Runs are found by status, metadata, tags, name and age, whatever their values look like."""

from datetime import timedelta

import pytest

from gnl_middleware import Journal, SideEffectRetryBlockedError
from tests.retention.jobs import age, job


def found(journal, **conditions):
    return sorted(record.run_id for record in journal.runs(**conditions))


def test_metadata_is_searched_by_name_value_and_type(journal):
    """A run is found by exactly the names and values that it was marked with, all of them."""
    job(journal, "a", metadata={"customer": "7", "region": "eu"})
    job(journal, "b", metadata={"customer": 7, "region": "eu"})

    assert found(journal, metadata={"customer": "7"}) == ["a"]
    assert found(journal, metadata={"customer": 7}) == ["b"]
    assert found(journal, metadata={"region": "eu"}) == ["a", "b"]
    assert found(journal, metadata={"region": "eu", "customer": 8}) == []


def test_tags_are_searched_and_shown(journal):
    """A run is found by all of its tags, and shows them sorted."""
    job(journal, "a", tags=["vip", "refund", "vip"])
    job(journal, "b", tags=["refund"])

    assert found(journal, tags=["refund"]) == ["a", "b"]
    assert found(journal, tags=["refund", "vip"]) == ["a"]
    assert journal.find("a").tags == ("refund", "vip")


def test_marks_belong_to_a_new_run(journal):
    """What a retry brings along changes nothing: a run is found by what it was started with."""
    job(journal, "a", metadata={"customer": "ann"}, tags=["first"])
    job(journal, "a", metadata={"customer": "bob"}, tags=["second"])

    assert found(journal, metadata={"customer": "ann"}, tags=["first"]) == ["a"]
    assert found(journal, tags=["second"]) == []


@pytest.mark.parametrize(
    ("like", "names"),
    [
        ("order:*", ["order:1", "order:22"]),
        ("order:?", ["order:1"]),
        ("ORDER:*", []),
        ("100%_*", ["100%_[a]"]),
        ("*[a]", ["100%_[a]", "1000_[a]"]),
        ("' OR 1=1 --", []),
    ],
)
def test_patterns_of_the_run_id(journal, like, names):
    """`*` and `?` are the only signs that mean something in a pattern; SQL in it stays text."""
    for run_id in ("order:1", "order:22", "100%_[a]", "1000_[a]"):
        with journal.run(run_id):
            pass

    assert found(journal, like=like) == names


def test_status_age_and_limit(journal):
    """Several statuses, an age and a number narrow the list, the latest first."""
    job(journal, "old")
    job(journal, "failed", ends="failed")
    job(journal, "stopped", ends="interrupted")
    age(journal, 7200, "old")

    assert found(journal, status=("failed", "interrupted")) == ["failed", "stopped"]
    assert found(journal, changed_within=timedelta(hours=1)) == ["failed", "stopped"]
    assert [record.run_id for record in journal.runs(limit=1)] == ["stopped"]


def test_an_unknown_run_is_not_found(journal):
    """A run that there is not is None, never an error or another run."""
    assert journal.find("nobody") is None


@pytest.mark.parametrize("tags", ["vip", [""], ["x" * 201], ["a\nb"]], ids=repr)
def test_a_tag_that_is_none_is_refused(tmp_path, tags):
    """One text instead of several, or one that nobody could type or read, is refused before anything is written."""
    with Journal(tmp_path / "runs.db") as journal, pytest.raises(ValueError, match="tags are several"):
        journal.run("a", tags=tags)


def test_attempts_tell_what_they_did_not_spend(journal):
    """Each attempt of a run is kept with how it ended, and how much it read back instead of running it."""
    job(journal, "a", ends="failed")
    with pytest.raises(SideEffectRetryBlockedError):
        job(journal, "a")

    first, second = journal.attempts("a")

    assert (first.status, first.steps_ran, first.steps_read_back) == ("failed", 2, 0)
    assert (second.status, second.steps_ran, second.steps_read_back) == ("blocked", 0, 1)
    assert first.ended_at >= first.started_at
    assert second.seconds_not_spent > 0
