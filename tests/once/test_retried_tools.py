"""Errors that prove that nothing happened, under LangChain's retry middleware (DESIGN 3.1, `not_performed`)."""

import threading

import pytest
from langchain.agents.middleware import ToolRetryMiddleware

from gnl_middleware import Done, Journal, RetryLimitError, SideEffectRetryBlockedError, current_step, never
from tests.langchain.driving import drive
from tests.langchain.processes import in_process
from tests.once.agents import FIVE, agent_with, answers, asking_for, every_way, told
from tests.worlds import Log

CLOSED, LOST = "closed", "lost"


class BankClosedError(ConnectionRefusedError):
    """A subclass of the error that the policies of these tests list."""


PROVEN = never(not_performed=(ConnectionRefusedError,), errors=(BankClosedError,))


def failing(effects, *failures):
    """A refund that fails in these ways before it succeeds; only a lost answer hides an effect."""
    left, lock = list(failures), threading.Lock()

    def refund(order: str) -> str:
        """Refund an order."""
        with lock:
            failure = left.pop(0) if left else None
        if failure == CLOSED:
            raise BankClosedError("the bank is closed")
        effects.add(f"{order} {current_step().idempotency_key}")
        if failure == LOST:
            raise TimeoutError("no answer")
        return f"refunded {order}"

    return refund


def retrying(effects, policy, *failures, retries=5, replies=None, **options):
    """An agent that retries its refund, and what its model was asked."""
    retry = ToolRetryMiddleware(max_retries=retries, initial_delay=0, jitter=False, **options)
    replies = replies or (asking_for("call_1"),)
    return agent_with([failing(effects, *failures)], policy, *replies, middleware=[retry])


@every_way
class TestProven:
    def test_is_retried_until_it_happens(self, journal, effects, way):
        """Each listed error frees the call for the next try: one step, one key, one effect, and a replay runs nothing."""
        agent, asked = retrying(effects, PROVEN, CLOSED, CLOSED)
        first = drive(journal, agent, way)

        again = drive(journal, agent, way)

        (step,) = [step for step in journal.steps("run") if step.kind == "tool"]
        assert (step.attempts, step.status, len(effects.lines())) == (3, "done", 1)
        assert answers(asked[1]) == [("call_1", "refunded o-7")]
        assert (told(again.state["messages"]), again.ran) == (told(first.state["messages"]), 0)

    def test_stops_at_the_first_error_that_proves_nothing(self, journal, effects, way):
        """Closed, then a lost answer: the third try does not run, and the run waits for a person."""
        agent, asked = retrying(effects, PROVEN, CLOSED, LOST)

        for _ in range(2):
            with pytest.raises(SideEffectRetryBlockedError):
                drive(journal, agent, way)

        assert (len(effects.lines()), len(asked)) == (1, 1)

    def test_settles_that_one_by_asking(self, journal, effects, way):
        """Closed, then a lost answer, which `recover` is asked about, once: its answer is the result."""
        asked_about = []
        policy = PROVEN(recover=lambda call: asked_about.append(call.error) or Done("found"))
        agent, asked = retrying(effects, policy, CLOSED, LOST)

        drive(journal, agent, way)

        assert answers(asked[1]) == [("call_1", "found")]
        assert asked_about == ["TimeoutError: no answer"]
        assert len(effects.lines()) == 1

    def test_gives_up_as_the_middleware_says(self, journal, effects, way):
        """When the retries are used up the model is told, and each later attempt replays what it was told."""
        agent, asked = retrying(effects, PROVEN, *[CLOSED] * 9, retries=2)
        first = drive(journal, agent, way)

        again = drive(journal, agent, way)

        ((call_id, text),) = answers(asked[1])
        assert (call_id, "the bank is closed" in text) == ("call_1", True)
        assert (told(again.state["messages"]), len(asked), effects.lines()) == (
            told(first.state["messages"]),
            2,
            [],
        )

    def test_ends_at_the_policys_limit(self, journal, effects, way):
        """A step is tried `max_attempts` times, whatever the middleware would still do."""
        agent, _ = retrying(effects, PROVEN(max_attempts=3), *[CLOSED] * 9)

        with pytest.raises(RetryLimitError):
            drive(journal, agent, way)

        (step,) = [step for step in journal.steps("run") if step.kind == "tool"]
        assert (step.attempts, effects.lines()) == (3, [])


@every_way
def test_one_of_five_equal_calls_is_retried(journal, effects, way):
    """Five equal calls of one key, with retries around each: whoever is first fails harmlessly, and one refund is made."""
    policy = PROVEN(once_per="args")
    agent, asked = retrying(effects, policy, CLOSED, CLOSED, CLOSED, replies=[asking_for(*FIVE)])
    first = drive(journal, agent, way)

    again = drive(journal, agent, way)

    assert answers(asked[1]) == [(call_id, "refunded o-7") for call_id in FIVE]
    assert len(effects.lines()) == 1
    assert (told(again.state["messages"]), again.ran) == (told(first.state["messages"]), 0)


@pytest.mark.parametrize(
    "point", ["before_intent", "after_intent", "before_body", "after_body", "after_outcome"]
)
def test_death_between_two_tries(tmp_path, point):
    """The worker dies in the second try, after the first one proved that nothing happened: only the second is in doubt."""
    crashed = in_process(dies_in_the_second_try, tmp_path, point)
    happened = len(Log(tmp_path / "effects").lines())

    ended = in_process(dies_in_the_second_try, tmp_path, None)

    assert crashed.died
    assert happened == (point in ("after_body", "after_outcome"))
    if point in ("after_intent", "before_body", "after_body"):
        assert ended.error[1] == "SideEffectRetryBlockedError"
        assert len(Log(tmp_path / "effects").lines()) == happened
    else:
        assert ended.value == [["call_1", "refunded o-7"]], ended
        assert len(Log(tmp_path / "effects").lines()) == 1


def dies_in_the_second_try(folder, point):
    """Runs in a process of its own."""
    import os

    from gnl_middleware.testing import CRASH_EXIT_CODE, observe_points

    tries = []

    def die(reached, _number, name):
        if name == "refund" and reached == "before_intent":
            tries.append(reached)
        if name == "refund" and reached == point and len(tries) == 2:
            os._exit(CRASH_EXIT_CODE)

    observe_points(die)
    agent, _ = retrying(Log(folder / "effects"), PROVEN, *([CLOSED] if point else []))
    with Journal(folder / "runs.db") as journal:
        return answers(drive(journal, agent).state["messages"])
