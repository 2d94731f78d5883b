"""Who waits for the disk: the intent of a side effect does, everything else is synced behind its caller's back.

Counts, not times: which transactions were committed with `synchronous=FULL`, and what asked for them.
"""

import time
from dataclasses import replace

import pytest

from gnl_middleware import Done, JournalUnavailableError, journaled, keyed, never, safe
from gnl_middleware.storage.writer import SYNC_WITHIN
from tests.storage.conversations import Conversation
from tests.storage.writers import is_at_rest, watched_commits

STEPS = 20


@pytest.fixture
def look_up():
    """A function that may run twice."""
    return journaled(lambda number: number, replay=safe, name="look_up")


@pytest.mark.parametrize("policy", [never, keyed], ids=["never", "keyed"])
def test_each_effect_awaits_one_sync(journal, policy):
    """A step with a side effect waits for the disk once, for its intent; in all it costs at most two syncs."""
    effect = journaled(lambda number: number, replay=policy, name="effect")

    with journal.run("order-7"):
        commits = watched_commits(journal)
        for number in range(STEPS):
            effect(number)
        during = list(commits)

    assert sum(commit.awaited for commit in during) == STEPS
    assert sum(commit.synced for commit in during) <= 2 * STEPS


def test_intent_is_synced_before_the_body_begins(journal):
    """When the body of a side effect begins, its intent has been committed in a transaction that waited for the disk."""
    commits = []
    seen = []

    @journaled(replay=never)
    def effect():
        seen.append([commit.synced for commit in commits if writes_an_intent(commit)])

    with journal.run("order-7"):
        commits = watched_commits(journal)
        effect()

    assert seen == [[True]]


def writes_an_intent(commit):
    """Whether a commit wrote an intent."""
    return any(statement.startswith("INSERT INTO gnl_steps") for statement in commit.statements)


def test_model_and_safe_steps_await_no_sync(journal, look_up):
    """Models and safe tools never wait for the disk."""
    conversation = Conversation()

    with journal.run("order-7"):
        commits = watched_commits(journal)
        for number in range(STEPS):
            conversation.turns(1)
            look_up(number)
        during = list(commits)

    assert sum(commit.awaited for commit in during) == 0


def test_effect_syncs_the_reply_that_asked_for_it(journal):
    """A durable effect implies the durable reply that asked for it: the reply is committed before, or in the same commit."""
    effect = journaled(lambda: "done", replay=never, name="effect")

    with journal.run("order-7"):
        commits = watched_commits(journal)
        Conversation().turns(1)
        effect()
        replies = [index for index, commit in enumerate(commits) if writes_an_outcome(commit)]
        intents = [
            index for index, commit in enumerate(commits) if commit.awaited and writes_an_intent(commit)
        ]

    assert replies[0] <= intents[0]


def writes_an_outcome(commit):
    """Whether a commit wrote an outcome: by itself, or in one row with its intent."""
    columns = (statement.partition(")")[0] for statement in commit.statements)
    return any(
        names.startswith("UPDATE gnl_steps")
        or (names.startswith("INSERT INTO gnl_steps") and "finished_at" in names)
        for names in columns
    )


def test_idle_run_is_synced(journal, look_up, eventually):
    """What nobody waits for reaches the disk all the same, soon after and without another call."""
    counters = journal._database().counters
    with journal.run("order-7"):
        before = counters.own_syncs
        look_up(1)

        eventually(lambda: counters.own_syncs > before)


def test_nothing_is_synced_twice(journal, look_up, eventually):
    """What has reached the disk is not synced again: a journal at rest writes nothing."""
    counters = journal._database().counters
    with journal.run("order-7"):
        look_up(1)
        eventually(lambda: counters.own_syncs and is_at_rest(journal._database()))
        before = replace(counters)

        time.sleep(10 * SYNC_WITHIN)  # nothing to wait for: the promise is that nothing happens

        assert (counters.commits, counters.own_syncs) == (before.commits, before.own_syncs)


def test_busy_run_is_synced_too(journal, look_up):
    """A run that never rests is synced as often as an idle one: what nobody waits for must not wait for a pause."""
    counters = journal._database().counters
    with journal.run("order-7"):
        before, end, number = counters.own_syncs, time.monotonic() + 20 * SYNC_WITHIN, 0
        while time.monotonic() < end:
            number += 1
            look_up(number)

        # Once per SYNC_WITHIN would be 20; a slow machine may miss some.
        assert counters.own_syncs >= before + 5


def test_busy_runs_are_synced_too(journal, look_up):
    """The same where many runs write in turn, so that the writer always has something to do."""
    counters = journal._database().counters
    runs = [journal.run(f"order-{number}") for number in range(4)]
    for run in runs:
        run.__enter__()
    before, end, number = counters.own_syncs, time.monotonic() + 20 * SYNC_WITHIN, 0
    while time.monotonic() < end:
        number += 1
        runs[number % 4].value("moment", lambda: 1)
    synced = counters.own_syncs
    for run in reversed(runs):
        run.__exit__(None, None, None)

    assert synced >= before + 5


def test_run_that_has_ended_is_on_the_disk(journal, look_up):
    """When leaving the run returns, all that it wrote has been synced."""
    with journal.run("order-7"):
        commits = watched_commits(journal)
        look_up(1)

    assert commits[-1].awaited  # noqa: PGH005 - no mock
    assert any("gnl_runs" in statement for statement in commits[-1].statements)


def test_closing_syncs_what_is_left(journal, look_up):
    """Closing a journal syncs what nobody has waited for."""
    run = journal.run("order-7")
    run.__enter__()
    commits = watched_commits(journal)
    look_up(1)

    journal.close()

    assert commits[-1].synced
    with pytest.raises(JournalUnavailableError):
        run.__exit__(None, None, None)


def test_decision_of_a_person_is_synced(journal):
    """A decision that was taken survives the machine: resolve returns after its sync."""

    def cut():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), journal.run("order-7"):
        journaled(cut, replay=never, name="charge")()
    commits = watched_commits(journal)

    journal.resolve("order-7", "charge", Done(None), by="ops")

    assert [commit.synced for commit in commits if commit.statements][-1]


def test_reading_back_writes_no_step(journal, look_up):
    """An attempt that only reads back opens and leaves the run, and writes nothing else."""
    effect = journaled(lambda: "done", replay=never, name="effect")
    for _attempt in range(2):
        with journal.run("order-7") as run:
            commits = watched_commits(journal)
            look_up(1)
            effect()

    assert run.steps_ran == 0
    assert not any(writes_an_intent(commit) or writes_an_outcome(commit) for commit in commits)
