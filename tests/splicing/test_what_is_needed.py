"""What a spliced payload leaves out is kept for as long as anything needs it, and no longer; its loss is noticed."""

from datetime import timedelta
from functools import partial

import pytest
import sqlalchemy as sa

from gnl_middleware import Done, Journal, JournalCorruptError, never
from gnl_middleware.storage import operations
from gnl_middleware.storage.operations import steps as operations_on_steps
from gnl_middleware.storage.schema import blobs, steps
from tests.splicing.telling import RUN, Agent, change, found, model_keys, spliced, stored, text


@pytest.fixture
def journal(place):
    """A journal on a file, and one on a server."""
    with Journal(place) as opened:
        yield opened


def of(run_id, digest):
    """The condition under which a payload is this one."""
    return (blobs.c.run_id == run_id) & (blobs.c.hash == digest)


DAMAGE = {
    "the source is gone": lambda _told, source: blobs.delete().where(of(RUN, source)),
    "the source is another one": lambda told, _source: (
        blobs.update().where(of(RUN, told)).values(source=told)
    ),
    "the source has no name": lambda told, _source: blobs.update().where(of(RUN, told)).values(source=None),
    "the source holds something else": lambda _told, source: (
        blobs.update().where(of(RUN, source)).values(body=b'"something else"', compressed=0)
    ),
    "the source says that it is spliced": lambda told, source: (
        blobs.update().where(of(RUN, source)).values(compressed=2, source=told)
    ),
    "the rest is another one": lambda told, _source: (
        blobs.update().where(of(RUN, told)).values(body=b"[[1,1,3]]\n[]")
    ),
    "the rest is taken for the whole": lambda told, _source: (
        blobs.update().where(of(RUN, told)).values(compressed=1)
    ),
    "the rest is taken for bytes": lambda told, _source: (
        blobs.update().where(of(RUN, told)).values(compressed=0)
    ),
    "nobody knows how it is stored": lambda told, _source: (
        blobs.update().where(of(RUN, told)).values(compressed=3)
    ),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damage_is_noticed(journal, damage):
    """A splice that does not give what was written is reported with its step, each time anew; nothing runs."""
    Agent().run(journal, 2)
    told, source = spliced(journal)[0]
    key = model_keys(journal)[told]

    assert change(journal, DAMAGE[damage](told, source)) == 1

    for _attempt in range(2):
        again = Agent()
        with pytest.raises(JournalCorruptError) as caught:
            again.run(journal, 2)
        assert RUN in caught.value.where
        assert again.ran == []
    with pytest.raises(JournalCorruptError) as caught:
        journal._database().step(RUN, key, 0.0)
    assert key in caught.value.where
    assert any(key in problem for problem in journal.verify_integrity(RUN).problems)


def test_a_fork_keeps_what_its_steps_need(journal):
    """A fork outlives the run whose payloads it shares, whole, even where it has not the step that gave the source."""
    Agent().run(journal, 3)
    journal.fork(RUN, "b")
    told = {step.key: step.arguments for step in journal.steps("b") if step.kind == "model"}
    # As if the cut had left only the model's steps.
    change(journal, steps.delete().where(steps.c.run_id == "b", steps.c.kind == "tool"))
    spliced_before = len(spliced(journal))

    journal.erase(RUN, rewrite=False, by="ada")

    assert len(spliced(journal)) == spliced_before == 3
    assert {step.key: step.arguments for step in journal.steps("b")} == told


def test_nothing_outlives_the_last_fork(journal):
    """What an erased run left for its forks goes with the last of them: what is spliced, and what it is spliced from."""
    Agent().run(journal, 3)
    journal.fork(RUN, "b")
    journal.fork("b", "c")
    for run_id, left in ((RUN, True), ("b", True), ("c", False)):
        journal.erase(run_id, rewrite=False, by="ada")

        assert bool(stored(journal)) is left
        if run_id == "b":
            assert len([step.value for step in journal.steps("c")]) == 7


def test_a_fork_takes_nothing_of_a_run_that_lives(journal):
    """A fork that is erased leaves the run that it was made of whole."""
    given = Agent().run(journal, 3)
    before = stored(journal)
    journal.fork(RUN, "b")
    journal.erase("b", rewrite=False, by="ada")

    assert stored(journal) == before
    again = Agent()
    assert again.run(journal, 3) == given
    assert again.ran == []


def test_a_fork_goes_on(journal):
    """A fork that goes on is told of results that another run keeps: it stores them whole, and needs nobody for them."""
    given = Agent().run(journal, 2)
    last = max(step.number for step in journal.steps(RUN))
    journal.fork(RUN, "b", before=last)
    again = Agent()
    assert again.run(journal, 2, run_id="b") == given
    assert again.ran == ["model 2"]

    sources = {source for _, source in spliced(journal, "b")}
    assert sources <= {row[0] for row in stored(journal, "b")}
    journal.erase(RUN, rewrite=False, by="ada")
    assert Agent().run(journal, 2, run_id="b") == given


def test_edited_result(journal):
    """A fork whose person gave a step another outcome reads that, and the model is asked about it anew."""
    Agent(policy=never).run(journal, 2)
    tool = next(step for step in journal.steps(RUN) if step.kind == "tool")
    journal.fork(RUN, "b", before=3, edits={tool.key: Done("edited " * 200)}, effects=True)

    for _attempt in range(2):
        given = Agent(policy=never).run(journal, 2, run_id="b")
    assert given[0] == "edited " * 200
    assert journal.verify_integrity("b").problems == ()


def test_what_is_to_be_kept_is_kept_whole(journal):
    """Whoever spares a payload spares what it is spliced from."""
    Agent().run(journal, 2)
    told, source = spliced(journal)[0]

    journal._database().write(lambda connection: operations.delete_payloads(connection, RUN, keep=[told]))

    assert {row[0] for row in stored(journal)} == {told, source}


def test_owner_of_a_once_per_key_stays_readable(journal):
    """Pruning keeps what such a call gave, though it is stored spliced: another run is still answered with it."""
    once = never(once_per="args", window="journal")
    agent = partial(
        Agent, policies={1: once}, given=lambda number, told: text(0) if number == 0 else told[1:3]
    )
    given = agent().run(journal, 2)
    of_owner = sa.select(steps.c.value_hash).where(steps.c.policy == "never")
    ((value,),) = found(journal, of_owner)
    source, before = dict(spliced(journal))[value], len(stored(journal))

    (proof,) = journal.prune(older_than=timedelta(0), by="ada").runs

    assert {value, source} <= {row[0] for row in stored(journal)}
    assert proof.payloads == before - len(stored(journal))
    other = agent()
    assert other.run(journal, 2, run_id="order-8") == given
    assert [name for name in other.ran if name.startswith("tool")] == ["tool 0"]


def test_late_news_takes_no_source(journal):
    """What a worker that fell silent stores for an erased run is taken back, but not what a fork still needs."""
    Agent().run(journal, 2)
    journal.fork(RUN, "b")
    change(journal, steps.delete().where(steps.c.run_id == "b", steps.c.kind == "tool"))
    journal.erase(RUN, rewrite=False, by="ada")
    before = stored(journal)
    source = spliced(journal)[0][1]

    journal._database().write(lambda connection: operations_on_steps._keep_erased(connection, RUN, source))

    assert stored(journal) == before
    assert len(journal.steps("b")) == 3
