"""A replay that asks something else than the record: what lenient and strict runs let pass."""

import pytest

from gnl_middleware import (
    DivergenceError,
    current_run,
    journaled,
    keyed,
    never,
    safe,
)
from tests.functions.scripted import (
    RUN,
    Function,
    Killed,
    attempt,
    only_step,
    run_async,
    run_status,
)

EFFECTS = [pytest.param(policy, id=policy.label) for policy in (keyed, never)]
LABELS = [pytest.param(policy, id=policy.label) for policy in (safe, keyed, never)]
MODES = ["lenient", "strict"]


def paying(policy):
    """A function that tells what it was called with."""
    ran = []

    @journaled(replay=policy)
    def pay(order):
        ran.append(order)
        return f"paid {order}"

    return pay, ran


def recorded(journal, *orders, policy):
    """A killed attempt that paid for some orders; gives the function and what it was executed with."""
    pay, ran = paying(policy)

    def program():
        with journal.run(RUN):
            for order in orders:
                pay(order)
            raise Killed

    with pytest.raises(Killed):
        program()
    return pay, ran


class TestOtherArguments:
    @pytest.mark.parametrize("replay", MODES)
    @pytest.mark.parametrize("policy", EFFECTS)
    def test_side_effect(self, journal, policy, replay):
        """A `never` or `keyed` call with other arguments than recorded stops the run in both modes; nothing runs."""
        pay, ran = recorded(journal, "o-7", policy=policy)

        with pytest.raises(DivergenceError), journal.run(RUN, replay=replay):
            pay("o-8")

        assert (ran, len(journal.steps(RUN))) == (["o-7"], 1)

    def test_safe_call_in_a_lenient_run(self, journal):
        """A `safe` function with other arguments is a new step in a lenient run."""
        pay, ran = recorded(journal, "o-7", policy=safe)

        with journal.run(RUN):
            result = pay("o-8")

        assert (result, ran) == ("paid o-8", ["o-7", "o-8"])

    def test_safe_call_in_a_strict_run(self, journal):
        """A `safe` function with other arguments stops a strict run while a recorded call of that name is unconsumed."""
        pay, ran = recorded(journal, "o-7", policy=safe)

        with pytest.raises(DivergenceError), journal.run(RUN, replay="strict"):
            pay("o-8")

        assert (ran, len(journal.steps(RUN))) == (["o-7"], 1)

    @pytest.mark.parametrize("replay", MODES)
    @pytest.mark.parametrize("policy", LABELS)
    def test_one_call_more(self, journal, policy, replay):
        """Once everything recorded was asked for, more calls are simply live: the code has grown."""
        pay, ran = recorded(journal, "o-7", policy=policy)

        with journal.run(RUN, replay=replay):
            results = [pay("o-7"), pay("o-8"), pay("o-7")]

        assert results == ["paid o-7", "paid o-8", "paid o-7"]
        assert ran == ["o-7", "o-8", "o-7"]

    @pytest.mark.parametrize("replay", MODES)
    def test_recorded_calls_in_another_order(self, journal, replay):
        """Recorded calls are read back whatever their order: each is known by what it was called with."""
        pay, _ = recorded(journal, "o-7", "o-8", policy=never)

        with journal.run(RUN, replay=replay) as run:
            results = [pay("o-8"), pay("o-7")]

        assert (results, run.steps_ran) == (["paid o-8", "paid o-7"], 0)

    def test_error_names_the_oldest_call_left(self, journal):
        """Of several recorded calls that were not asked for, the error names the one that came first."""
        orders = [f"o-{number}" for number in range(9)]
        pay, _ = recorded(journal, *orders, policy=safe)
        oldest = journal.steps(RUN)[1].key

        with pytest.raises(DivergenceError) as caught, journal.run(RUN, replay="strict"):
            pay(orders[0]), pay("another")

        assert caught.value.step_key == oldest

    def test_other_names_and_other_scopes_do_not_count(self, journal):
        """A strict run compares with recorded calls of the same name in the same scope only."""
        pay, _ = recorded(journal, "o-7", policy=safe)
        look = Function(safe, "looked", name="look")

        with journal.run(RUN, replay="strict") as run:
            with run.scope("branch"):
                inside = pay("o-8")
            results = [look.call(), inside, pay("o-7")]

        assert results == ["looked", "paid o-8", "paid o-7"]


class TestError:
    """What a DivergenceError tells."""

    @pytest.fixture
    def error(self, journal):
        pay, _ = recorded(journal, "o-7", policy=never)
        with pytest.raises(DivergenceError) as caught, journal.run(RUN):
            pay("o-8")
        return caught.value

    def test_facts(self, journal, error):
        """The error carries run, step, what differs, what is recorded and what was asked."""
        assert (error.run_id, error.step_key, error.part) == (RUN, only_step(journal).key, "arguments")
        assert (error.recorded, error.asked) == ({"order": "o-7"}, {"order": "o-8"})

    def test_difference_is_readable(self, error):
        """The difference names the place, and shows what stood there and what stands there now."""
        assert error.diff.splitlines()[2:] == ["@@ arguments.order @@", "-o-7", "+o-8"]

    def test_message_says_what_why_and_what_next(self, error):
        """The message names run and step, shows the difference, likely causes, and the command to look with."""
        message = str(error)

        assert f"'{RUN}'" in message
        assert error.step_key in message
        assert error.diff in message
        assert "Likely causes" in message
        assert "gnl show" in message
        assert "run.scope(" in message

    def test_it_stops_the_run(self, journal, error):
        """A run that left its record has failed, and has changed nothing."""
        assert (run_status(journal), len(journal.steps(RUN))) == ("failed", 1)

    def test_undoing_the_change_goes_on(self, journal, error):
        """After the change is undone the same run id goes on where it was."""
        pay, ran = paying(never)

        with journal.run(RUN):
            result = pay("o-7")

        assert (result, ran) == ("paid o-7", [])


class TestLeftBehind:
    @pytest.mark.parametrize("replay", MODES)
    @pytest.mark.parametrize("policy", EFFECTS)
    @pytest.mark.parametrize("recorded_policy", EFFECTS)
    def test_new_side_effect_before_a_recorded_one(self, journal, recorded_policy, policy, replay):
        """A new side effect while a recorded one of its scope was not asked for stops the run before it starts."""
        recorded(journal, "o-7", policy=recorded_policy)
        refund = Function(policy, "refunded", name="refund")

        with pytest.raises(DivergenceError, match="not asked for"):
            attempt(journal, refund, replay=replay)

        assert refund.ran == []

    def test_new_safe_call_before_a_recorded_effect(self, journal):
        """A new `safe` call in front of a recorded side effect may run: reading more changes nothing."""
        pay, _ = recorded(journal, "o-7", policy=never)
        look = Function(safe, "looked", name="look")

        with journal.run(RUN):
            results = [look.call(), pay("o-7")]

        assert results == ["looked", "paid o-7"]

    def test_new_effect_behind_a_recorded_safe_call(self, journal):
        """A recorded `safe` call that is not made any more holds nothing up in a lenient run."""
        recorded(journal, "o-7", policy=safe)

        assert attempt(journal, Function(never, "refunded", name="refund")) == ["refunded"]

    def test_effect_of_another_branch(self, journal):
        """A recorded side effect of another branch does not hold a new one up: branches come in any order."""
        refund = Function(never, "refunded", name="refund")
        pay, _ = paying(never)

        def pay_in_a_branch():
            with journal.run(RUN), current_run().scope("billing"):
                pay("o-7")
                raise Killed

        with pytest.raises(Killed):
            pay_in_a_branch()

        assert attempt(journal, refund) == ["refunded"]

    def test_values_do_not_count(self, journal):
        """A new value of the run in front of recorded effects is taken, in a strict run as well."""
        pay, _ = recorded(journal, "o-7", policy=never)

        with journal.run(RUN, replay="strict") as run:
            run.now()
            result = pay("o-7")

        assert result == "paid o-7"


def test_asynchronous_calls_leave_the_record_alike(journal):
    """Coroutine functions are held to their record in the same way."""
    pay = Function(never, "paid", asynchronous=True)
    attempt(journal, pay, asynchronous=True)

    async def other():
        async with journal.run(RUN):
            await pay.call("o-8")

    with pytest.raises(DivergenceError):
        run_async(other())

    assert pay.ran == ["o-7"]
