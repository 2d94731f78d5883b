"""Runs that are only read back: finished ones, offline ones, and those that are asked for with another input."""

import contextlib

import pytest

from gnl_middleware import (
    ReplayMissError,
    RunInputMismatchError,
    SideEffectRetryBlockedError,
    journaled,
    keyed,
    never,
    safe,
)
from tests.functions.scripted import (
    RUN,
    Function,
    Killed,
    answering,
    attempt,
    run_status,
)

LABELS = [pytest.param(policy, id=policy.label) for policy in (safe, keyed, never)]
MODES = ["lenient", "strict"]


class TestOffline:
    @pytest.mark.parametrize("policy", LABELS)
    def test_call_without_a_record(self, journal, policy):
        """Offline, a call that is not recorded raises ReplayMissError with its name; nothing runs, nothing is written."""
        pay = Function(policy, "paid")

        with pytest.raises(ReplayMissError) as caught:
            attempt(journal, pay, offline=True)

        assert (caught.value.run_id, caught.value.name) == (RUN, "pay")
        assert (pay.ran, journal.steps(RUN)) == ([], [])

    @pytest.mark.parametrize("policy", LABELS)
    @pytest.mark.parametrize("ending", [Killed(), TimeoutError()], ids=["interrupted", "failed"])
    def test_call_without_an_outcome(self, journal, policy, ending):
        """Offline, a call that was interrupted or reopened is not run, not settled and not asked about."""
        asked = []
        labelled = never(recover=answering(None, awaited=False, asked=asked)) if policy is never else policy
        pay = Function(labelled, ending)
        with pytest.raises((Killed, TimeoutError)):
            attempt(journal, pay)

        with pytest.raises(ReplayMissError):
            attempt(journal, pay, offline=True)

        assert (len(pay.ran), asked) == (1, [])

    def test_values_too(self, journal):
        """Offline, a value of the run that is not recorded is not made."""
        with pytest.raises(ReplayMissError), journal.run(RUN, offline=True) as run:
            run.random()

    def test_finished_run_replays(self, journal):
        """A finished run replays offline: values, results and handled errors, with nothing run."""
        pay, look = Function(never, "paid"), Function(safe, ValueError("no"), name="look")

        def program(**options):
            with journal.run(RUN, **options) as run:
                drawn = run.random()
                with pytest.raises(ValueError, match="no"):
                    look.call()
                return drawn, pay.call(), run.steps_ran

        live, offline = program(), program(offline=True)

        assert offline == (*live[:2], 0)
        assert (len(pay.ran), len(look.ran)) == (1, 1)

    def test_looking_at_an_interrupted_run_changes_nothing(self, journal):
        """Reading an interrupted run offline asks no hook and does not make the run complete."""
        asked = []
        look = Function(safe, "looked", name="look")

        def body():
            raise Killed

        body.__name__ = "looked_at_offline"
        pay = journaled(never(recover=answering(None, awaited=False, asked=asked))(body))

        def first():
            with journal.run(RUN):
                look.call(), pay()

        with pytest.raises(Killed):
            first()

        with contextlib.suppress(SideEffectRetryBlockedError):
            attempt(journal, look, offline=True)

        assert asked == []
        assert run_status(journal) != "completed"


class TestFinishedRun:
    @pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
    @pytest.mark.parametrize("replay", MODES)
    def test_replays_with_nothing_run(self, journal, replay, asynchronous):
        """A finished run that is opened again gives the same results, runs nothing and stays completed."""
        functions = [
            Function(policy, policy.label, name=policy.label, asynchronous=asynchronous)
            for policy in (safe, keyed, never)
        ]
        results = attempt(journal, *functions, asynchronous=asynchronous)
        steps = journal.steps(RUN)

        again = attempt(journal, *functions, asynchronous=asynchronous, replay=replay)

        assert again == results
        assert [len(function.ran) for function in functions] == [1, 1, 1]
        assert (journal.steps(RUN), run_status(journal)) == (steps, "completed")

    def test_counts_what_it_did_not_do(self, journal):
        """The handle tells how many steps ran in this attempt and how many were read back."""
        look, pay = Function(safe, "looked", name="look"), Function(safe, Killed(), "paid")
        counts = []

        def program():
            with journal.run(RUN) as run:
                try:
                    look.call(), pay.call(), run.random()
                finally:
                    counts.append((run.attempt, run.steps_ran, run.steps_read_back))

        with pytest.raises(Killed):
            program()
        program()
        program()

        assert counts == [(1, 2, 0), (2, 2, 1), (3, 0, 3)]


class TestInput:
    @pytest.mark.parametrize("replay", MODES)
    def test_another_input_is_refused(self, journal, replay):
        """A run id that was started with another input is refused in both modes, before anything runs."""
        with journal.run(RUN, input={"question": "first"}):
            pass

        with (
            pytest.raises(RunInputMismatchError) as caught,
            journal.run(RUN, input={"question": "second"}, replay=replay),
        ):
            pytest.fail("the run was entered")

        assert caught.value.run_id == RUN
        assert caught.value.recorded != caught.value.asked
        assert [record.attempts for record in journal.runs()] == [1]

    @pytest.mark.parametrize("first", [{"a": 1, "b": [2]}, "", 0, False, []], ids=repr)
    def test_same_input_is_taken(self, journal, first):
        """The same input goes on, also one that Python takes for false; no input at all asks for no comparison."""
        with journal.run(RUN, input=first):
            pass
        with journal.run(RUN, input=first) as again:
            pass
        with journal.run(RUN) as without:
            pass

        assert (again.attempt, without.attempt) == (2, 3)
        with pytest.raises(RunInputMismatchError), journal.run(RUN, input="another"):
            pass

    def test_first_input_given_later_counts(self, journal):
        """A run that was first opened without an input is held to the first one that it is given."""
        with journal.run(RUN):
            pass
        with journal.run(RUN, input="first"):
            pass

        with pytest.raises(RunInputMismatchError), journal.run(RUN, input="second"):
            pass


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"replay": "loose"}, "lenient, strict"),
        ({"on_busy": "queue"}, "raise, wait"),
        ({"on_interrupted": "ignore"}, "block, tell_model"),
        ({"lease": 0}, "lease"),
    ],
)
def test_option_that_means_nothing_is_refused(journal, options, named):
    """A misspelt option is refused before the run is opened, and the error names the choices."""
    with pytest.raises(ValueError, match=named):
        journal.run(RUN, **options)
