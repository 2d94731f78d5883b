"""What is written together: an intent nobody waited for with its outcome, and on a server all rows of a commit."""

from dataclasses import replace

import pytest
import sqlalchemy as sa

from gnl_middleware import Journal, codec, journaled, safe
from gnl_middleware.storage.protocol import Effect, Intent, Outcome, Task, Verdict
from tests.storage.writers import committed, sent_statements, tried

RUN = "order-7"


@pytest.fixture
def opened(place):
    """A run of a journal that has one finished step, `done`, to make others like it of."""
    with Journal(place) as journal, journal.run(RUN) as run:
        journaled(lambda: "looked up", replay=safe, name="look_up")()
        yield run.session


@pytest.fixture
def done(opened):
    """The finished step."""
    (step,) = opened.record.steps.values()
    return step


def ending(step, **changes):
    """An outcome of a try."""
    value = codec.encode(f"value of {step.key}")
    return Outcome(
        step.run_id,
        step.key,
        step.token,
        "done",
        finished_at=2.0,
        ended_tick=9,
        value=value,
        value_hash=codec.content_hash(value),
        **changes,
    )


def test_intent_and_outcome_of_one_commit_are_one_row_written_once(opened, done):
    """A model that answers before its intent is committed costs one statement for its row, not two."""
    step = tried(done, "new")
    sent = sent_statements(opened.database)

    assert committed(opened.database, Intent(step), ending(step)) == [Verdict.WON, Verdict.WON]

    assert len([text for text in sent if "gnl_steps" in text]) == 1
    (found,) = [each for each in opened.look().steps if each.key == "new"]
    assert (found.status, found.ended, codec.decode(found.value)) == ("done", 9, "value of new")
    # What was sealed together is found to be whole, as if it had been written one after the other.
    assert opened.database.inspect(RUN).problems == ()


@pytest.mark.parametrize("side_effect", [False, True], ids=["look-up", "effect"])
def test_each_of_a_mixed_batch_gets_its_own_verdict(opened, done, side_effect):
    """First tries, retries, stale fences, tries that another one took, late outcomes and tasks may share one commit."""
    fresh, again, stale, open_one, taken = (
        tried(done, key, side_effect=side_effect) for key in ("fresh", "again", "stale", "open", "taken")
    )
    committed(opened.database, Intent(again), Intent(open_one), Intent(taken))
    retry = replace(again, token="second token", tries=2)
    stale = replace(stale, fence=done.fence + 1)
    rival = replace(taken, token="rival")
    late = replace(taken, token="token that nobody has")
    told = Task(lambda connection: sa.inspect(connection) is not None)

    verdicts = committed(
        opened.database,
        *(Intent(fresh), ending(fresh)),
        *(Intent(retry, expected=again.token), ending(retry)),
        *(Intent(stale), ending(stale)),
        Intent(rival),
        ending(late),
        ending(open_one),
        Intent(tried(done, "exclusive"), effect=Effect("", "pay", "digest")),
        told,
    )

    won, lost = [Verdict.WON] * 2, [Verdict.STALE, Verdict.LATE]
    assert verdicts == [*won, *won, *lost, Verdict.TAKEN, Verdict.LATE, Verdict.WON, Verdict.WON, True]
    states = {step.key: (step.status, step.token) for step in opened.look().steps}
    assert states == {
        done.key: ("done", done.token),
        "fresh": ("done", fresh.token),
        "again": ("done", "second token"),
        "open": ("done", open_one.token),
        "taken": ("started", taken.token),
        "exclusive": ("started", "token of exclusive"),
    }


def test_effects_of_a_batch_are_counted_as_often_as_they_are_written(opened, done):
    """The run counts each side effect whose row was written, in whatever company, and none twice: a lost row is found missing."""
    steps = [tried(done, f"effect {number}", side_effect=True) for number in range(5)]
    stale = replace(tried(done, "stale", side_effect=True), fence=done.fence + 1)
    committed(opened.database, *map(Intent, steps[:3]))

    committed(opened.database, *map(Intent, [*steps[2:], stale]), ending(steps[4]))

    # Whoever loads the run compares the count with the rows, and finds damage where they differ.
    assert len([step for step in opened.look().steps if step.side_effect]) == len(steps)


def test_failures_are_written_with_all_they_hold(opened, done):
    """An error's text, arguments and odd characters survive the way of a batch."""
    odd = ["plain", "nul \x00 and \ud800", "é \\x00 ' \" \n"]
    failing = [journaled(_raising(text), replay=safe, name=f"fail {text!r}") for text in odd]
    for call in failing:
        with pytest.raises(LookupError):
            call()

    read = {step.name: step.failure for step in opened.look().steps if step.failure is not None}
    assert sorted(failure.args for failure in read.values()) == sorted((text,) for text in odd)


def _raising(text):
    def body():
        raise LookupError(text)

    return body
