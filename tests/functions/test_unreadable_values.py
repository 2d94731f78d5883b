"""Values that cannot be journalled: what ran is done and never runs again, and every attempt says the same."""

import pytest

from gnl_middleware import (
    UnserializableValueError,
    current_run,
    journaled,
    keyed,
    never,
    safe,
)
from gnl_middleware.adapter import register
from tests.functions.scripted import RUN, Function, attempt, only_step, run_status

LABELS = [pytest.param(policy, id=policy.label) for policy in (safe, keyed, never)]
UNREADABLE = {"receipt": [1, {"file": object()}]}
both_colours = pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])


@both_colours
@pytest.mark.parametrize("policy", LABELS)
def test_same_error_on_every_attempt(journal, policy, asynchronous):
    """A value that cannot be journalled raises the same error now and on every replay; the body never runs again."""
    pay = Function(policy, UNREADABLE, asynchronous=asynchronous)
    errors = []

    for _ in range(3):
        with pytest.raises(UnserializableValueError) as caught:
            attempt(journal, pay, asynchronous=asynchronous)
        errors.append(caught.value)

    step = only_step(journal)
    facts = {(error.path, error.type_name, error.step_key, str(error)) for error in errors}
    assert len(facts) == len(pay.ran) == 1
    assert errors[0].path == "$.receipt[1].file"
    assert (errors[0].type_name, errors[0].step_key) == ("object", step.key)
    assert (step.status, step.value) == ("done", None)


class Broken:
    """A registered type whose values cannot be taken apart."""


def take_apart(value):
    """What was registered for it."""
    raise KeyError("no such part")


register(Broken, tag="test-broken", to_plain=take_apart, from_plain=Broken)


@both_colours
def test_value_whose_own_code_fails(journal, asynchronous):
    """A value whose registered code fails is as unreadable as any: what ran is done and does not run again."""
    pay = Function(never, [Broken()], asynchronous=asynchronous)

    for _ in range(2):
        with pytest.raises(UnserializableValueError):
            attempt(journal, pay, asynchronous=asynchronous)

    assert (len(pay.ran), only_step(journal).status, run_status(journal)) == (1, "done", "failed")


def test_swallowed_error_comes_back(journal):
    """Code that swallows the error gets no further: the next call and the end of the run raise it again."""
    pay = Function(never, UNREADABLE)
    later = Function(safe, "later", name="later")

    with pytest.raises(UnserializableValueError):
        attempt(journal, pay, later, catch=(UnserializableValueError,))

    assert (later.ran, run_status(journal)) == ([], "failed")


def test_offline_too(journal):
    """Read offline, the value is as unreadable, and the error is the same."""
    pay = Function(never, UNREADABLE)
    with pytest.raises(UnserializableValueError):
        attempt(journal, pay)

    with pytest.raises(UnserializableValueError, match=r"\$\.receipt\[1\]\.file"):
        attempt(journal, pay, offline=True)


def test_unreadable_run_value(journal):
    """A value of the run that cannot be journalled is an error that names the step; it is not made twice."""
    made = []

    for _ in range(2):
        with pytest.raises(UnserializableValueError) as caught, journal.run(RUN) as run:
            run.value("handle", lambda: made.append(1) or object())

    assert caught.value.step_key == only_step(journal, "handle").key
    assert made == [1]


def test_unreadable_argument(journal):
    """An argument that cannot be journalled is refused before anything runs, with its path."""
    ran = []

    @journaled(replay=never)
    def pay(order):
        ran.append(order)

    with pytest.raises(UnserializableValueError) as caught, journal.run(RUN):
        pay({"lines": [object()]})

    assert caught.value.path.endswith("order.lines[0]")
    assert (ran, journal.steps(RUN)) == ([], [])


def test_value_inside_an_enclosing_step(journal):
    """The error passes an enclosing step, which is not recorded as done, and comes back from it on every attempt."""
    charge = Function(never, UNREADABLE, name="charge")

    @journaled(replay=safe)
    def outer():
        assert current_run() is not None
        return charge.call()

    for _ in range(2):
        with pytest.raises(UnserializableValueError), journal.run(RUN):
            outer()

    assert (len(charge.ran), only_step(journal, "charge").status) == (1, "done")
    assert only_step(journal, "outer").status == "started"


def test_live_value_is_the_replayed_one(journal):
    """The caller gets the decoded copy live, too: what it does to it reaches neither the body nor the record."""
    kept = {"lines": [1]}
    pay = Function(safe, kept)

    (live,) = attempt(journal, pay)
    live["lines"].append(2)
    (replayed,) = attempt(journal, pay)

    assert (kept, replayed) == ({"lines": [1]}, {"lines": [1]})
    assert live is not kept


@pytest.mark.parametrize(
    "value",
    [
        None,
        (),
        (1, [2]),
        {1: "one"},
        {"a", "b"},
        b"\x00\xff",
        10**30,
        float("inf"),
        -0.0,
        "\ud800\x00",
        [True, 1, 1.0],
    ],
    ids=lambda value: repr(sorted(value) if isinstance(value, set) else value),  # the same in every process
)
def test_types_survive(journal, value):
    """What a function returned keeps its type and value, live and on replay alike."""
    pay = Function(never, value)

    results = [attempt(journal, pay)[0] for _ in range(2)]

    assert [(type(result), repr(result)) for result in results] == [(type(value), repr(value))] * 2
