"""Retries without a crash: whoever calls again, a side effect happens once (DESIGN 3.1, "calling again is not a new step")."""

import asyncio

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import ModelFallbackMiddleware, ModelRetryMiddleware, ToolRetryMiddleware
from langchain.agents.middleware.tool_error import ToolErrorMiddleware

from gnl_langchain import JournalMiddleware, arun_durable, run_durable
from gnl_middleware import (
    Done,
    Journal,
    SideEffectRetryBlockedError,
    current_step,
    journaled,
    keyed,
    never,
    safe,
)
from tests.langchain.driving import WAYS, drive
from tests.langchain.processes import in_process
from tests.langchain.scripted import QUESTION, ScriptedModel, calling, failing_first, said, texts, turns
from tests.worlds import Log

NO_DELAY = {"initial_delay": 0, "jitter": False}


def timing_out(effects, failures=1):
    """A tool whose effect happens, but whose answer is lost in the given number of calls."""
    left = [None] * failures

    def refund(order: int) -> str:
        """Refund an order."""
        effects.add(f"refund {order} {current_step().idempotency_key}")
        if left:
            left.pop()
            raise TimeoutError("no answer from the bank")
        return f"refunded {order}"

    return refund


def refunding_agent(effects, policy, *middleware, failures=1, script=None):
    model = ScriptedModel(script=script or turns(calling("refund", order=7), said()))
    journaling = JournalMiddleware(policies={"refund": policy})
    return create_agent(
        model, [timing_out(effects, failures)], middleware=[*middleware, journaling]
    ), model.asked


def tool_retry(on_failure="continue"):
    return ToolRetryMiddleware(max_retries=2, on_failure=on_failure, **NO_DELAY)


@pytest.mark.parametrize("way", WAYS)
class TestToolRetryAroundAToolThatTimesOutAfterItsEffect:
    def test_never_with_recover_is_settled_by_asking(self, journal, effects, way):
        """The second call of a ``never`` tool does not run: ``recover`` is asked and its value is the tool's result."""
        policy = never(recover=lambda call: Done(f"found: {call.arguments['order']}"))
        agent, asked = refunding_agent(effects, policy, tool_retry())

        driven = drive(journal, agent, way)

        assert len(effects.lines()) == 1
        assert texts(asked[1])[-1] == "found: 7"
        assert driven.reply.strip() == "Done."

    def test_never_without_recover_stops_the_run(self, journal, effects, way):
        """Nothing can tell whether the first call happened, so the retry stops the run instead of repeating it."""
        agent, asked = refunding_agent(effects, never, tool_retry())

        with pytest.raises(SideEffectRetryBlockedError, match="may have happened"):
            drive(journal, agent, way)

        assert len(effects.lines()) == 1
        assert len(asked) == 1
        assert [run.status for run in journal.runs()] == ["blocked"]

    def test_never_that_tells_the_model(self, journal, effects, way):
        """With ``tell_model`` the retry gets a text that says that the call may have happened, and nothing runs again."""
        agent, asked = refunding_agent(effects, never(on_interrupted="tell_model"), tool_retry())

        drive(journal, agent, way)

        assert len(effects.lines()) == 1
        assert "may or may not have happened" in texts(asked[1])[-1]

    def test_never_whose_error_proves_that_nothing_happened(self, journal, effects, way):
        """An error listed in ``not_performed`` frees the call: the retry runs it."""
        agent, asked = refunding_agent(effects, never(not_performed=(TimeoutError,)), tool_retry())

        drive(journal, agent, way)

        assert len(effects.lines()) == 2
        assert texts(asked[1])[-1] == "refunded 7"

    @pytest.mark.parametrize("policy", [safe, keyed], ids=["safe", "keyed"])
    def test_others_run_again_with_the_same_key(self, journal, effects, way, policy):
        """A ``safe`` or ``keyed`` call is retried, as one step with one idempotency key."""
        agent, asked = refunding_agent(effects, policy, tool_retry())

        drive(journal, agent, way)

        first, second = effects.lines()
        assert first == second
        assert texts(asked[1])[-1] == "refunded 7"
        assert [(step.name, step.attempts) for step in journal.steps("run") if step.kind == "tool"] == [
            ("refund", 2)
        ]

    def test_a_finished_run_repeats_neither(self, journal, effects, way):
        """The whole turn replays from the record: no model call, no tool call, the same reply."""
        policy = never(recover=lambda call: Done("found"))
        agent, asked = refunding_agent(effects, policy, tool_retry())
        first = drive(journal, agent, way)

        second = drive(journal, agent, way)

        assert (len(effects.lines()), len(asked), second.ran) == (1, 2, 0)
        assert texts(second.state["messages"]) == texts(first.state["messages"])


@pytest.mark.parametrize("way", WAYS)
def test_a_failure_that_the_model_was_told_of_replays_as_told(journal, effects, way):
    """An error that became a tool message is handled: on replay the model's next request holds the same text."""
    told = ToolErrorMiddleware(lambda error, request: f"{type(error).__name__}: {error}")
    agent, asked = refunding_agent(effects, never, told)
    first = drive(journal, agent, way)

    second = drive(journal, agent, way)

    assert "TimeoutError: no answer from the bank" in texts(asked[1])
    assert (len(effects.lines()), len(asked), second.ran) == (1, 2, 0)
    assert texts(second.state["messages"]) == texts(first.state["messages"])


@pytest.mark.parametrize("way", WAYS)
def test_model_retry_asks_again_and_repeats_no_effect(journal, effects, way):
    """A model call that failed is asked again; the tool that ran before it stays run."""
    script = turns(calling("refund", order=7), said())
    answers = failing_first(lambda messages: None, ConnectionError("503"))

    def flaky(messages):
        later = len(messages) > 2 and isinstance(error := answers(messages), Exception)
        return error if later else script(messages)

    agent, asked = refunding_agent(
        effects, never, ModelRetryMiddleware(max_retries=1, **NO_DELAY), failures=0, script=flaky
    )
    drive(journal, agent, way)

    again = drive(journal, agent, way)

    assert len(effects.lines()) == 1
    assert [len(messages) for messages in asked] == [1, 3, 3]
    assert again.ran == 0


@pytest.mark.parametrize("replay", ["lenient", "strict"])
@pytest.mark.parametrize("way", WAYS)
def test_fallback_answer_is_given_to_the_primary_that_is_well_again(tmp_path, effects, way, replay):
    """A reply that the fallback gave before a crash is read back, though the primary is asked first and could answer."""
    crashed = in_process(answered_by_fallback, tmp_path, way, replay, True, crash_at="refund:after_outcome")

    ended = in_process(answered_by_fallback, tmp_path, way, replay, False)

    assert crashed.died
    assert ended.value == {"reply": "Done.", "primary": [3], "fallback": [], "ran": 1}, ended
    assert len(effects.lines()) == 1


def answered_by_fallback(folder, way, replay, primary_is_down):
    """Runs in a process of its own."""
    script = turns(calling("refund", order=7), said())
    down = turns(ConnectionError("503"))
    primary = ScriptedModel(script=down if primary_is_down else script, model_name="primary")
    fallback = ScriptedModel(script=script, model_name="fallback")
    agent = create_agent(
        primary,
        [timing_out(Log(folder / "effects"), failures=0)],
        middleware=[ModelFallbackMiddleware(fallback), JournalMiddleware(policies={"refund": never})],
    )
    with Journal(folder / "runs.db") as journal:
        driven = drive(journal, agent, way, replay=replay)
    lengths = {model.model_name: [len(asked) for asked in model.asked] for model in (primary, fallback)}
    return {"reply": driven.reply.strip(), "ran": driven.ran, **lengths}


class TestAnOuterLoopThatRunsEverythingAgain:
    """A job queue's redelivery, or a loop around the whole: each round is an attempt of the same run."""

    def script(self):
        errors = [ConnectionError("500"), ConnectionError("500")]
        answered = turns(calling("refund", order=7), said())
        return lambda messages: errors.pop() if len(messages) > 2 and errors else answered(messages)

    def test_run_durable(self, tmp_path, effects):
        """Two rounds fail at the second model call, the third ends: one effect, and the first reply is paid for once."""
        agent, asked = refunding_agent(effects, never, failures=0, script=self.script())

        for _ in range(3):
            try:
                result = run_durable(agent, QUESTION, run_id="order-7", journal=tmp_path / "runs.db")
            except ConnectionError:
                continue

        assert texts(result["messages"])[-1] == "Done."
        assert len(effects.lines()) == 1
        assert [len(messages) for messages in asked] == [1, 3, 3, 3]

    def test_arun_durable(self, tmp_path, effects):
        """The same with ``arun_durable``, each round on an event loop of its own."""
        agent, asked = refunding_agent(effects, never, failures=0, script=self.script())

        for _ in range(3):
            try:
                result = asyncio.run(
                    arun_durable(agent, QUESTION, run_id="order-7", journal=tmp_path / "runs.db")
                )
            except ConnectionError:
                continue

        assert texts(result["messages"])[-1] == "Done."
        assert len(effects.lines()) == 1
        assert [len(messages) for messages in asked] == [1, 3, 3, 3]

    def test_a_tool_that_times_out_blocks_every_round(self, tmp_path, effects):
        """Where nothing can tell, no round repeats the effect, however often the loop comes back."""
        agent, asked = refunding_agent(effects, never, failures=9)
        raised = []

        for _ in range(4):
            with pytest.raises((TimeoutError, SideEffectRetryBlockedError)) as caught:
                run_durable(agent, QUESTION, run_id="order-7", journal=tmp_path / "runs.db")
            raised.append(caught.type.__name__)

        assert raised == ["TimeoutError", *["SideEffectRetryBlockedError"] * 3]
        assert len(effects.lines()) == 1
        assert len(asked) == 1


@pytest.mark.parametrize("way", WAYS)
def test_a_users_loop_over_any_exception_runs_the_body_once(journal, effects, way):
    """``except Exception: continue`` around a journalled ``never`` function repeats nothing and hides nothing."""

    @journaled(replay=never)
    def charge(order: int) -> str:
        effects.add(f"charge {order}")
        raise TimeoutError("no answer from the bank")

    def refund(order: int) -> str:
        """Refund an order."""
        for _ in range(5):
            try:
                return charge(order)
            except Exception:  # noqa: BLE001, S112
                continue
        return "gave up"

    model = ScriptedModel(script=turns(calling("refund", order=7), said()))
    agent = create_agent(model, [refund], middleware=[JournalMiddleware(safe=[refund])])

    with pytest.raises(SideEffectRetryBlockedError) as caught:
        drive(journal, agent, way)

    assert caught.value.tool == "charge"
    assert len(effects.lines()) == 1
    assert len(model.asked) == 1
