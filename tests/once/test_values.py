"""What is shared is the owner's value, whole, or an error; never a second effect (DESIGN 3.1, 3.4)."""

import contextlib
import datetime as dt
import decimal
import sqlite3

import pytest

from gnl_middleware import (
    Done,
    JournalCorruptError,
    NotDone,
    SideEffectRetryBlockedError,
    Unknown,
    UnserializableValueError,
)
from tests.once.refunds import IN_JOURNAL, IN_RUN, Refund, attempt, both_windows, run_status, steps

FIRST, LATER = ("o-7", "first"), ("o-7", "later")
VALUES = [
    None,
    "",
    b"\x00\xff",
    ("a", 1),
    {1: "one", "b": [decimal.Decimal("0.10"), -0.0]},
    dt.datetime(2026, 11, 29, tzinfo=dt.UTC),
    {"b": 1, "a": 2},
]


@both_windows
@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_value_is_shared_without_loss(journal, policy, value):
    """The later call gets what the first one got, of the same types and in the same order, live and on replay."""
    refund = Refund(value, policy=policy)

    results = [attempt(journal, refund, FIRST, LATER) for _ in range(2)]

    assert [repr(result) for pair in results for result in pair] == [repr(value)] * 4


def test_shared_values_are_copies(journal):
    """Who changes its result in place changes nobody else's."""
    refund = Refund({"items": []}, policy=IN_RUN)

    with journal.run("run"):
        refund.call(*FIRST)["items"].append("changed")
        later = refund.call(*LATER)

    assert later == {"items": []}


class TestUnreadableValue:
    """The owner's effect happened, and its value could not be journalled: done is done (DESIGN 3.1)."""

    HOOKS = [  # noqa: RUF012 - read only
        pytest.param(None, id="no hook"),
        pytest.param(lambda call: NotDone(), id="not done"),
        pytest.param(lambda call: Unknown(), id="unknown"),
    ]

    @pytest.mark.parametrize("hook", HOOKS)
    def test_no_later_call_runs(self, journal, hook):
        """Every later call raises what the owner's call raises, on every attempt; the body never runs again."""
        refund = Refund(object(), policy=IN_JOURNAL(recover=hook))

        for run in ("owner", "waiter", "owner", "waiter", "third"):
            with pytest.raises(UnserializableValueError, match="object"):
                attempt(journal, refund, LATER, run_id=run)

        assert len(refund.ran) == 1

    def test_calls_of_the_same_run(self, journal):
        """In the run of the owner, too."""
        refund = Refund(object(), policy=IN_RUN)

        for _ in range(2):
            with pytest.raises(UnserializableValueError):
                attempt(journal, refund, FIRST, LATER, catch=(UnserializableValueError,))

        assert refund.ran == ["first"]


def test_damaged_value_is_not_shared(journal, tmp_path):
    """A recorded value that is not what was written is an error that names it, for the owner and for those who share."""
    refund = Refund("refunded", policy=IN_JOURNAL)
    attempt(journal, refund, FIRST, run_id="owner")
    with contextlib.closing(sqlite3.connect(tmp_path / "runs.db")) as database, database:
        database.execute(
            "UPDATE gnl_blobs SET body = ?, compressed = 0 WHERE hash = (SELECT value_hash FROM gnl_steps)",
            (b'"refused!"',),
        )
    database.close()

    with pytest.raises(JournalCorruptError, match="owner"):
        attempt(journal, refund, LATER, run_id="waiter")

    assert (refund.ran, steps(journal, "waiter")) == (["first"], [])


class TestErasedOwner:
    """The owner's run was erased or pruned: its key stays (DESIGN 3.4, section 4), its outcome is gone."""

    @pytest.fixture
    def refund(self, journal, tmp_path):
        """A refund whose owner's run has no rows any more."""
        refund = Refund(policy=IN_JOURNAL)
        attempt(journal, refund, FIRST, run_id="owner")
        with contextlib.closing(sqlite3.connect(tmp_path / "runs.db")) as database, database:
            for table in ("gnl_steps", "gnl_blobs", "gnl_attempts"):
                database.execute(f"DELETE FROM {table} WHERE run_id = 'owner'")
            database.execute("UPDATE gnl_runs SET status = 'erased'")
        database.close()
        return refund

    def test_a_later_call_does_not_run(self, journal, refund):
        """A late redelivery must not repeat what an erased run has done: it blocks, listed, as often as it comes."""
        for _ in range(2):
            with pytest.raises(SideEffectRetryBlockedError, match="erased"):
                attempt(journal, refund, LATER, run_id="waiter")

        assert (refund.ran, run_status(journal, "waiter")) == (["first"], "blocked")

    @pytest.mark.parametrize(
        ("decision", "ran"), [(Done("refunded"), ["first"]), (NotDone(), ["first", "later"])]
    )
    def test_a_person_lets_it_go_on(self, journal, refund, decision, ran):
        """A person who knows what the erased run did decides the call that waits."""
        with pytest.raises(SideEffectRetryBlockedError):
            attempt(journal, refund, LATER, run_id="waiter")
        journal.resolve("waiter", "refund", decision, by="ops")

        results = [attempt(journal, refund, LATER, run_id="waiter") for _ in range(2)]
        third = attempt(journal, refund, ("o-7", "third"), run_id="third") if len(ran) > 1 else ["refunded"]

        assert (results, third, refund.ran) == ([["refunded"]] * 2, ["refunded"], ran)
