"""A label that changes between attempts: the stricter one holds for a try that has begun."""

import copy
from dataclasses import dataclass

import pytest

from gnl_middleware import (
    Done,
    Policy,
    SideEffectRetryBlockedError,
    current_step,
    journaled,
    keyed,
    never,
    safe,
)
from gnl_middleware.policy import label_of, remembered
from tests.functions.scripted import Function, Killed, answering, attempt, interrupted, only_step

LABELS = {"safe": safe, "keyed": keyed, "never": never}
STRICTNESS = ["safe", "keyed", "never"]


@pytest.mark.parametrize("now", LABELS)
@pytest.mark.parametrize("before", LABELS)
def test_stricter_label_holds(journal, before, now):
    """A call that began under one label and is reached under another is treated by the stricter of the two."""
    interrupted(journal, LABELS[before])
    pay = Function(LABELS[now], "paid")

    try:
        attempt(journal, pay)
    except SideEffectRetryBlockedError:
        blocked = True
    else:
        blocked = False

    assert blocked is ("never" in (before, now))
    assert len(pay.ran) == (not blocked)


@pytest.mark.parametrize("now", LABELS)
@pytest.mark.parametrize("before", LABELS)
def test_step_keeps_the_stricter_label(journal, before, now):
    """What a step is labelled with never becomes laxer, however often the code is relabelled."""
    interrupted(journal, LABELS[before])
    with pytest.raises((Killed, SideEffectRetryBlockedError)):
        attempt(journal, Function(LABELS[now], Killed()))

    label = only_step(journal).policy

    assert label == max(before, now, key=STRICTNESS.index) or (label == before and now == "never")


def test_new_hook_settles_a_call_that_began_without_one(journal):
    """A call that began as `safe` and is `never` with a hook now is settled by that hook."""
    interrupted(journal, safe)
    pay = Function(never(recover=answering(Done("found"), awaited=False)), "paid")

    assert (attempt(journal, pay), pay.ran) == (["found"], [])


def test_finished_call_is_read_back_under_any_label(journal):
    """A call that is done is read back, whatever it is labelled now."""
    attempt(journal, Function(safe, "paid"))

    results = [attempt(journal, Function(policy, "again")) for policy in LABELS.values()]

    assert results == [["paid"]] * 3


def test_idempotency_key_outlives_a_relabelling(journal):
    """The idempotency key of a call is the same under every label."""
    keys = []
    endings = [Killed(), "paid"]

    def labelled(policy):
        def body():
            keys.append(current_step().idempotency_key)
            if isinstance(ending := endings.pop(0), Killed):
                raise ending
            return ending

        function = Function(policy, None)
        function.call = journaled(body, replay=policy, name="pay")
        return function

    with pytest.raises(Killed):
        attempt(journal, labelled(safe))
    attempt(journal, labelled(keyed))

    assert len(keys) == 2
    assert len(set(keys)) == 1


class TestPolicies:
    """What can be said in a label."""

    @pytest.mark.parametrize("options", [{"max_attempts": 0}, {"max_attempts": -1}])
    def test_limit_that_allows_nothing_is_refused(self, options):
        """A step must be allowed at least one try."""
        with pytest.raises(ValueError, match="max_attempts"):
            never(**options)

    @pytest.mark.parametrize("policy", [safe, keyed], ids=["safe", "keyed"])
    def test_hook_for_a_call_that_runs_again_is_refused(self, policy):
        """`recover` belongs to `never`: the others simply run again."""
        with pytest.raises(ValueError, match="recover= is for never"):
            policy(recover=lambda call: Done())

    def test_unknown_label_is_refused(self):
        """There are three labels and no others."""
        with pytest.raises(ValueError, match="safe, keyed or never"):
            Policy("sometimes")

    def test_unknown_option_is_refused(self):
        """A misspelt option is an error that names the known ones."""
        with pytest.raises(TypeError, match=r"recovery.*recover_after"):
            never(recovery=None)

    def test_options_make_a_copy(self):
        """Options make another policy; the label itself never changes."""
        changed = never(max_attempts=2)

        assert (changed.max_attempts, never.max_attempts, changed.label) == (2, 5, "never")

    def test_function_without_a_label_is_refused(self):
        """A function is not journalled before somebody said what may happen to it after a crash."""
        with pytest.raises(TypeError, match="no label"):
            journaled(lambda: None)

    def test_labelled_function_needs_no_second_label(self, journal):
        """The label of a function counts where it is journalled without another one."""
        pay = Function(never, None)
        pay.call = journaled(never(lambda: "paid"), name="pay")

        attempt(journal, pay)

        assert only_step(journal).policy == "never"

    def test_labelled_function_still_works_by_itself(self):
        """Labelling a function changes neither what it does nor what it is called."""

        def charge(order):
            """Charge it."""
            return f"charged {order}"

        labelled = never(charge)

        assert (labelled("o-7"), labelled.__name__, labelled.__doc__) == (
            "charged o-7",
            "charge",
            "Charge it.",
        )


@dataclass
class RecordedTool:
    """A tool as a record, as the OpenAI Agents SDK has them: neither callable nor hashable."""

    name: str


def test_label_of_a_record():
    """A tool that is a record is labelled as a copy, which later copies keep; the record itself stays as it was."""
    tool = RecordedTool("pay_by_record")

    labelled = copy.copy(never(tool))

    assert label_of(labelled) is never
    assert label_of(tool) is None
    assert remembered("pay_by_record") is never
