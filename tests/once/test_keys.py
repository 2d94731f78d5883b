"""What makes two calls one piece of business, and how far that reaches (DESIGN 3.4)."""

import pytest

from gnl_middleware import Journal, UnserializableValueError, current_run, journaled, keyed, never, safe
from tests.once.refunds import (
    IN_JOURNAL,
    IN_RUN,
    Refund,
    attempt,
    both_colours,
    both_windows,
    per_order,
    steps,
)

CALLS = [("o-7", "late"), ("o-7", "damaged"), ("o-8", "late")]


class TestSameKey:
    @both_colours
    @both_windows
    def test_later_call_gets_the_first_outcome(self, journal, policy, asynchronous):
        """Calls of one order are one refund, whatever their other arguments; another order is another refund."""
        refund = Refund(
            lambda order, note: f"refunded {order}: {note}", policy=policy, asynchronous=asynchronous
        )

        results = attempt(journal, refund, *CALLS)

        assert results == ["refunded o-7: late", "refunded o-7: late", "refunded o-8: late"]
        assert refund.ran == ["late", "late"]
        assert steps(journal) == [("done", None), ("done", "shared"), ("done", None)]

    @both_colours
    @both_windows
    def test_replay_runs_nothing(self, journal, policy, asynchronous):
        """On the second and the third attempt each call gets the same value, and no body runs."""
        refund = Refund(
            lambda order, note: f"refunded {order}: {note}", policy=policy, asynchronous=asynchronous
        )

        first, *later = [attempt(journal, refund, *CALLS) for _ in range(3)]

        assert later == [first, first]
        assert refund.ran == ["late", "late"]

    @pytest.mark.parametrize("policy", [never(once_per="args"), never(once_per="args", window="journal")])
    def test_all_arguments_are_the_key(self, journal, policy):
        """With "args", equal arguments are one call, and any other argument makes another."""
        refund = Refund(policy=policy)

        attempt(journal, refund, ("o-7", "late"), ("o-7", "late"), ("o-7", "damaged"), ("o-8", "late"))

        assert refund.ran == ["late", "damaged", "late"]

    @pytest.mark.parametrize(
        ("one", "other", "equal"),
        [
            (1, 1.0, False),
            (1, True, False),
            ("1", 1, False),
            (0.0, -0.0, False),
            (2**53, 2**53 + 1, False),
            ([1, 2], [2, 1], False),
            ("\u00e9", "e\u0301", False),
            ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
            (float("nan"), float("nan"), True),
            (None, None, True),
        ],
    )
    def test_keys_are_told_apart_as_all_of_identity(self, journal, one, other, equal):
        """Keys are equal and different where arguments are (DESIGN 3.2)."""
        refund = Refund(policy=IN_JOURNAL)

        attempt(journal, refund, (one, "one"), (other, "other"))

        assert refund.ran == (["one"] if equal else ["one", "other"])

    def test_default_arguments_count(self, journal):
        """A default that is left out and the same value given are one call of a plain function."""
        refund = Refund(policy=never(once_per="args"))

        with journal.run("run"):
            refund.call("o-7")
            refund.call(order="o-7", note="")

        assert len(refund.ran) == 1

    @pytest.mark.parametrize("label", [safe, keyed, never], ids=lambda policy: policy.label)
    def test_every_label_shares(self, journal, label):
        """A call that may run twice after a crash is still made once per key."""
        refund = Refund(policy=label(once_per=per_order, window="journal"))

        results = attempt(journal, refund, *CALLS[:2]) + attempt(journal, refund, CALLS[0], run_id="other")

        assert (results, len(refund.ran)) == (["refunded"] * 3, 1)

    def test_without_it_two_equal_calls_are_two(self, journal):
        """Off by default: two equal calls that were both meant both run."""
        refund = Refund(policy=never)

        attempt(journal, refund, ("o-7", "late"), ("o-7", "late"))

        assert len(refund.ran) == 2

    def test_another_tool_is_another_business(self, journal):
        """A key belongs to its tool: a refund and a mail about the same order are two effects."""
        refund, mail = Refund(), Refund(name="mail")

        attempt(journal, refund, ("o-7", ""))
        attempt(journal, mail, ("o-7", ""), run_id="other")

        assert (len(refund.ran), len(mail.ran)) == (1, 1)


class TestWindow:
    def test_run_ends_with_the_run(self, journal):
        """In the window of a run, another run makes the call again."""
        refund = Refund(policy=IN_RUN)

        attempt(journal, refund, ("o-7", "first"), run_id="first")
        attempt(journal, refund, ("o-7", "second"), run_id="second")

        assert refund.ran == ["first", "second"]

    def test_journal_reaches_all_runs(self, journal):
        """In the window of the journal, a finished run's outcome is the later runs' too."""
        refund = Refund(policy=IN_JOURNAL)

        results = [attempt(journal, refund, ("o-7", run), run_id=run) for run in ("first", "second", "third")]

        assert (results, refund.ran) == ([["refunded"]] * 3, ["first"])

    def test_journal_opened_again(self, tmp_path):
        """The key outlives the journal object: it stands in the file."""
        refund = Refund(policy=IN_JOURNAL)

        for run in ("first", "second"):
            with Journal(tmp_path / "runs.db") as journal:
                attempt(journal, refund, ("o-7", run), run_id=run)

        assert refund.ran == ["first"]

    @both_windows
    def test_scopes_do_not_divide_it(self, journal, policy):
        """Named branches and the insides of other steps ask for the same business."""
        refund = Refund(policy=policy)

        @journaled(replay=safe)
        def handle():
            return refund.call("o-7", "inside a step")

        with journal.run("run") as run:
            with run.scope("billing"):
                refund.call("o-7", "billing")
            with run.scope("support"):
                refund.call("o-7", "support")
            handle()
            refund.call("o-7", "run")

        assert refund.ran == ["billing"]

    def test_methods_share_by_their_arguments(self, journal):
        """A method's object is not data: two objects that refund one order refund it once."""
        ran = []

        class Bank:
            @journaled(replay=never(once_per="args"))
            def refund(self, order):
                ran.append(order)

        with journal.run("run"):
            Bank().refund("o-7")
            Bank().refund("o-7")

        assert ran == ["o-7"]


class TestKeyThatCannotBeMade:
    def test_function_that_raises(self, journal):
        """Where the key's function fails, nothing runs and nothing is recorded: corrected, the same run goes on."""
        broken = Refund(policy=never(once_per=lambda arguments: arguments["ordre"]))
        corrected = Refund(policy=IN_RUN)

        with pytest.raises(KeyError, match="ordre"):
            attempt(journal, broken, ("o-7", ""))
        results = attempt(journal, corrected, ("o-7", ""))

        assert (broken.ran, results, steps(journal)) == ([], ["refunded"], [("done", None)])

    def test_function_that_gives_no_data(self, journal):
        """A key that cannot be told apart by its value is refused before anything runs."""
        refund = Refund(policy=never(once_per=lambda arguments: object()))

        with pytest.raises(UnserializableValueError, match="object"):
            attempt(journal, refund, ("o-7", ""))

        assert (refund.ran, steps(journal)) == ([], [])


@both_windows
def test_offline_shares_nothing_that_is_not_recorded(journal, policy):
    """Offline, a recorded sharing is read back; a call without a record is a miss even if its effect has happened."""
    from gnl_middleware import ReplayMissError

    refund = Refund(policy=policy)
    attempt(journal, refund, *CALLS[:2])

    results = attempt(journal, refund, *CALLS[:2], offline=True)
    with pytest.raises(ReplayMissError):
        attempt(journal, refund, *CALLS[:2], ("o-7", "third"), offline=True)

    assert (results, refund.ran) == (["refunded"] * 2, ["late"])


@both_windows
@pytest.mark.parametrize("replay", ["lenient", "strict"])
def test_key_comes_from_values_of_the_run(journal, policy, replay):
    """A key made of a recorded value is the same on every attempt."""
    refund = Refund(policy=policy)

    def orders():
        with journal.run("run", replay=replay):
            order = str(current_run().uuid4())
            return [refund.call(order, "first"), refund.call(order, "second")]

    results = [orders(), orders()]

    assert (results, refund.ran) == ([["refunded"] * 2] * 2, ["first"])
