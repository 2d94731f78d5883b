"""What users of LangGraph have reported about pauses, and what becomes of it here."""

from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, ToolRetryMiddleware
from langchain.agents.middleware.tool_error import ToolErrorMiddleware
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt

from gnl_langchain import JournalMiddleware, run_durable
from gnl_middleware import never
from tests.langchain.processes import in_process
from tests.langchain.scripted import QUESTION, ScriptedModel, calling, said, turns
from tests.langgraph.programs import ended, said_by
from tests.langgraph.worlds import THREAD, World

STORES = [
    "sqlite:exit",
    *(pytest.param(store, marks=pytest.mark.long) for store in ("sqlite:sync", "sqlite:async")),
]


@pytest.mark.parametrize("store", STORES)
def test_a_pause_in_a_task(tmp_path, store):
    """B31: journalled work before a pause runs once, in a task too; a pause is no outcome; plain code runs with each answer."""
    given = [None, {"resume": "a"}, {"resume": "b"}, {"resume": "c"}]
    found = [in_process(ended, tmp_path, "in_a_task", store, "invoke", each).value for each in given]

    assert found == ["paused", "paused", "paused", ["did hold", "a", "b", "did whole c"]]
    assert World(tmp_path).done == ["hold", "plain", "plain", "plain", "whole"]


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("crash_at", [None, "pay:after_body", "pay:before_outcome"])
def test_an_approval_deep_inside(tmp_path, store, crash_at):
    """B32: loaded in a new process, one approval is enough; given once more, it has the first outcome and pays nothing."""
    waiting = in_process(ended, tmp_path, "nested_approval", store, "invoke")
    approve = {"resume": "yes"}
    if crash_at is not None:
        assert in_process(
            ended, tmp_path, "nested_approval", store, "invoke", approve, crash_at=crash_at
        ).died
    approved = [in_process(ended, tmp_path, "nested_approval", store, "invoke", approve) for _ in range(2)]

    assert waiting.value == "paused", waiting
    assert [process.value[-2:] for process in approved] == [["inner done", "Done."]] * 2, approved
    assert World(tmp_path).done == ["paid-42-yes"]
    assert len(World(tmp_path).bill.lines()) == 4


@pytest.mark.parametrize("store", STORES)
def test_one_of_two_calls_is_rejected(tmp_path, store):
    """B07: each call has one answer, in the order of the calls, before the model is asked again; a replay sends the same."""
    waiting = in_process(ended, tmp_path, "one_rejected", store, "invoke")
    reject = {"resume": {"decisions": [{"type": "reject", "message": "not now"}]}}

    died = in_process(ended, tmp_path, "one_rejected", store, "invoke", reject, crash_at="act:after_body")
    found = [in_process(ended, tmp_path, "one_rejected", store, "invoke", reject) for _ in range(2)]

    assert waiting.value == "paused", waiting
    assert died.died
    rejected = "User rejected the tool call for `gated` with reason: not now"
    assert found[0].value[2:] == [rejected, "did act-2", "Done: ['c1', 'c2']"], found
    assert found[1].value == found[0].value
    assert World(tmp_path).done == ["act-2"]
    assert len(World(tmp_path).bill.lines()) == 2


class DoingNothing(AgentMiddleware):
    """Wraps tool calls, and catches what it can."""

    def wrap_tool_call(self, request: Any, handler: Any) -> Any:
        return handler(request)


@pytest.mark.parametrize("around", ["a wrapper", "retries", "errors as answers", "all of them"])
def test_a_pause_passes_whatever_is_around_it(journal, world, around):
    """B53: no layer makes an error or a second try of a pause, and it is no failure in the journal."""
    layers = {
        "a wrapper": [DoingNothing()],
        "retries": [ToolRetryMiddleware(max_retries=2, initial_delay=0, jitter=False)],
        "errors as answers": [ToolErrorMiddleware(on_error=str)],
    }
    chosen = layers.get(around) or [layer for each in layers.values() for layer in each]

    def send(body: str) -> str:
        """Send, once a person has approved it."""
        world.effects.add("asked -")
        return world.act(f"sent-{interrupt('may I?')}")

    agent = create_agent(
        ScriptedModel(script=turns(calling("send", body="x"), said())),
        [send],
        middleware=[*chosen, JournalMiddleware(policies={"send": never(recover=world.recover)})],
        checkpointer=InMemorySaver(),
    )

    def durable(given: Any) -> Any:
        return said_by(run_durable(agent, given, run_id="order-7", journal=journal, config=THREAD))

    paused = durable(QUESTION)
    (asked,) = [step for step in journal.steps("order-7") if step.kind == "tool"]
    resumed = durable(Command(resume="yes"))

    assert (paused, asked.error, journal.runs()[0].status) == ("paused", None, "completed")
    assert resumed[-1] == "Done."
    assert world.done == ["asked", "asked", "sent-yes"]
