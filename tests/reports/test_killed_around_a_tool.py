"""What a kill around a tool call leads to depended on the host; here it depends on the point and the label alone."""

import pytest

POINTS = ["2:before_intent", "2:after_intent", "2:before_body", "2:after_body", "2:before_outcome"]
POINTS += ["2:after_outcome", "3:before_intent"]
IN_DOUBT = POINTS[1:5]
HAPPENED = POINTS[3:5]

HOSTS = [
    pytest.param({}, 0, id="no checkpointer"),
    *(
        pytest.param({"saver": "sqlite", "durability": durability}, 1, id=durability, marks=marks)
        for durability, marks in (("sync", ()), ("async", pytest.mark.long), ("exit", pytest.mark.long))
    ),
]


def killed(trial, policy, host, shift):
    """How the run ends for each kill point; a host with a checkpointer has a step before the first model call."""
    shifted = {
        f"{int(number) + shift}:{place}": f"{number}:{place}"
        for number, place in (point.split(":") for point in POINTS)
    }
    ended = trial.each("one_charge", [(point, None) for point in shifted], policy=policy, **host)
    assert all(how.died for how in ended.values())
    return {shifted[points[0]]: how for points, how in ended.items()}


@pytest.mark.parametrize("policy", ["safe", "keyed"])
@pytest.mark.parametrize(("host", "shift"), HOSTS)
def test_a_call_that_may_run_twice(trial, policy, host, shift):
    """Begun and unfinished, it runs again, with the same key; finished, it is read back."""
    ended = killed(trial, policy, host, shift)

    assert {(how.reply, how.error) for how in ended.values()} == {("done: charged 42", None)}
    # One line of effects for each key: a second charge under another key would be a second entry.
    assert {point: list(how.effects.values()) for point, how in ended.items()} == {
        point: [2] if point in HAPPENED else [1] for point in POINTS
    }


@pytest.mark.parametrize(("host", "shift"), HOSTS)
def test_a_call_that_must_not_run_twice(trial, host, shift):
    """Begun and unfinished, nobody knows: the run stops before a second charge. Otherwise it ends as if unharmed."""
    ended = killed(trial, "never", host, shift)

    assert {point: how.error for point, how in ended.items()} == {
        point: "SideEffectRetryBlockedError" if point in IN_DOUBT else None for point in POINTS
    }
    assert {point: sum(how.effects.values()) for point, how in ended.items()} == {
        point: 0 if point in IN_DOUBT[:2] else 1 for point in POINTS
    }


@pytest.mark.parametrize(("host", "shift"), HOSTS)
def test_a_call_that_can_be_asked_about(trial, host, shift):
    """With `recover`, every kill ends as if unharmed: one charge, the same reply."""
    ended = killed(trial, "recover", host, shift)

    outcomes = {(how.reply, how.error, sum(how.effects.values())) for how in ended.values()}
    assert outcomes == {("done: charged 42", None, 1)}


@pytest.mark.parametrize(("host", "shift"), HOSTS)
def test_a_call_that_the_model_is_told_about(trial, host, shift):
    """With `tell_model`, the model hears that it may have happened, and nothing runs a second time."""
    ended = killed(trial, "tell_model", host, shift)

    told = {point: "may or may not have happened" in (how.reply or "") for point, how in ended.items()}
    assert told == {point: point in IN_DOUBT for point in POINTS}
    assert all(how.error is None and sum(how.effects.values()) <= 1 for how in ended.values())
