"""Pruning removes what ended long ago, never what is open, and lets nothing be repeated."""

import threading
from datetime import timedelta

import pytest

from gnl_middleware import RunErasedError, SideEffectRetryBlockedError, journaled, never
from gnl_middleware.storage import operations
from tests.retention.jobs import age, job, rows, statuses

DAY = timedelta(days=1)
OLD = 2 * 86_400


def pruned(journal, **conditions):
    return sorted(run.run_id for run in journal.prune(**{"older_than": DAY} | conditions).runs)


def test_only_old_runs_that_ended(journal):
    """Old runs that completed or failed go; what is young, interrupted or blocked stays."""
    for ends in ("completed", "failed", "interrupted", "blocked"):
        job(journal, ends, ends=ends.replace("blocked", "interrupted"))
    with pytest.raises(SideEffectRetryBlockedError):
        job(journal, "blocked")
    job(journal, "young")
    age(journal, OLD, "completed", "failed", "interrupted", "blocked")

    assert pruned(journal, dry_run=True) == ["completed", "failed"]
    assert pruned(journal) == ["completed", "failed"]
    assert statuses(journal) == {"young": "completed", "interrupted": "interrupted", "blocked": "blocked"}
    assert rows(journal, "completed") == {"gnl_runs": 1, "gnl_removals": 1}


def test_open_runs_only_where_they_are_named(journal):
    """Interrupted and blocked runs go only where somebody says so; running and paused ones never."""
    job(journal, "a", ends="interrupted")
    age(journal, OLD, "a")

    for status in ("running", "paused", ["completed", "paused"]):
        with pytest.raises(ValueError, match="never pruned"):
            journal.prune(older_than=DAY, status=status)
    assert pruned(journal, status="interrupted") == ["a"]


def test_a_held_run_stays(journal):
    """A run that a worker holds is no interrupted one, however long ago it changed."""
    with journal.run("a"):
        age(journal, OLD, "a")

        assert pruned(journal, status=["completed", "interrupted"]) == []


def test_a_run_that_was_taken_meanwhile_stays(journal, monkeypatch):
    """Between looking and removing, a worker may begin the next attempt: its record is not pulled away."""
    job(journal, "a", ends="failed")
    job(journal, "b")
    age(journal, OLD, "a", "b")
    found = operations.fitting_runs

    def found_before_the_attempt(*arguments):
        result = found(*arguments)
        if not journal.attempts("a")[1:]:
            with pytest.raises(SideEffectRetryBlockedError):
                job(journal, "a")
        return result

    monkeypatch.setattr(operations, "fitting_runs", found_before_the_attempt)

    assert pruned(journal) == ["b"]
    assert len(journal.steps("a")) == 2


def test_by_metadata_tags_and_size(journal):
    """Old runs can be narrowed by what they are marked with and by how much they take."""
    job(journal, "a", metadata={"customer": "ann"}, tags=["vip"])
    job(journal, "b", metadata={"customer": "ann"})
    job(journal, "c", "".join(map(str, range(5_000))))
    age(journal, OLD, "a", "b", "c")

    assert pruned(journal, metadata={"customer": "ann"}, tags=["vip"], dry_run=True) == ["a"]
    assert pruned(journal, metadata={"customer": "ann"}, dry_run=True) == ["a", "b"]
    assert pruned(journal, larger_than=2_000) == ["c"]


def test_a_dry_run_measures(journal):
    """What a dry run says of size is what goes, and it removes nothing."""
    job(journal, "a")
    age(journal, OLD, "a")

    told = journal.prune(older_than=DAY, dry_run=True)
    done = journal.prune(older_than=DAY)

    assert told.bytes == done.bytes > 0
    assert told.runs[0].steps == done.runs[0].steps == 2


def test_in_batches(journal, monkeypatch):
    """Many runs go in several transactions, so that a worker never waits for all of them."""
    monkeypatch.setattr("gnl_middleware.runs._BATCH", 2)
    names = [str(number) for number in range(5)]
    for name in names:
        with journal.run(name):
            pass
    age(journal, OLD, *names)
    before = journal._database().counters.commits

    assert pruned(journal) == names
    assert journal._database().counters.commits - before == 3


def test_a_late_redelivery_repeats_nothing(journal):
    """A pruned run that is delivered once more does not do its job again, until its name is pruned as well."""
    job(journal, "a")
    age(journal, OLD, "a")
    journal.prune(older_than=DAY)

    with pytest.raises(RunErasedError):
        job(journal, "a")
    assert pruned(journal, status="erased") == []
    age(journal, OLD, "a")
    assert pruned(journal, status="erased") == ["a"]
    assert rows(journal, "a") == {}
    with pytest.raises(ValueError, match="pruned alone"):
        journal.prune(older_than=DAY, status=["erased", "failed"])


def test_journal_window_keys_keep_their_outcome(journal):
    """Once per key means for ever: a later run gets the outcome of the pruned one, and nothing happens twice."""
    ran = []

    @journaled(replay=never(once_per="args", window="journal"))
    def refund(order):
        ran.append(order)
        return f"refunded {order}"

    with journal.run("a"):
        refund("7")
        journaled(lambda text: text, replay=never, name="other")("x")
    age(journal, OLD, "a")

    (proof,) = journal.prune(older_than=DAY).runs

    assert (proof.steps, proof.steps_kept) == (1, 1)
    with journal.run("b"):
        assert refund("7") == "refunded 7"
    assert ran == ["7"]
    assert [step.name for step in journal.steps("a")] == ["refund"]
    age(journal, OLD, "a")
    assert pruned(journal, status="erased") == []


def test_workers_go_on_meanwhile(journal):
    """Runs that are worked on while others are pruned lose nothing."""
    names = [f"old-{number}" for number in range(20)]
    for name in names:
        job(journal, name)
    age(journal, OLD, *names)
    worker = threading.Thread(target=lambda: [job(journal, f"new-{number}") for number in range(10)])
    worker.start()

    assert pruned(journal) == sorted(names)
    worker.join()
    assert set(statuses(journal).values()) == {"completed"}
    assert len(statuses(journal)) == 10
