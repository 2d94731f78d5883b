"""The callback handler: it records an agent as it is, compares a re-run, and fails closed."""

import asyncio
from typing import Any

import pytest
from langchain.agents import create_agent

from gnl_langchain import JournalCallbackHandler, JournalMiddleware
from gnl_middleware import (
    DivergenceError,
    Journal,
    JournalUnavailableError,
    UnjournaledCallError,
    never,
    safe,
)
from tests.langchain.driving import WAYS, drive
from tests.langchain.scripted import QUESTION, ScriptedModel, calling, said, turns


def agent_of(effects: Any, *, middleware: Any = (), script: Any = None) -> tuple[ScriptedModel, Any]:
    def refund(order: int) -> str:
        """Refund an order."""
        effects.add(f"refund {order}")
        return f"refunded {order}"

    model = ScriptedModel(script=script or turns(calling("refund", order=7), said()))
    return model, create_agent(model, [refund], middleware=middleware)


def called(agent: Any, way: str, handler: Any) -> str:
    config = {"callbacks": [handler]}
    if way == "invoke":
        return agent.invoke(QUESTION, config)["messages"][-1].text
    if way == "ainvoke":
        return asyncio.run(agent.ainvoke(QUESTION, config))["messages"][-1].text
    if way == "stream":
        return [state["messages"][-1].text for state in agent.stream(QUESTION, config, stream_mode="values")][
            -1
        ]

    async def last() -> str:
        states = [state async for state in agent.astream(QUESTION, config, stream_mode="values")]
        return states[-1]["messages"][-1].text

    return asyncio.run(last())


@pytest.mark.parametrize("way", WAYS)
def test_a_recorded_run_is_replayed_by_the_wrapped_agent(journal, effects, way):
    """What the handler has recorded of an agent that knows nothing of it, `JournalMiddleware` reads back: zero calls."""
    _, agent = agent_of(effects)

    reply = called(agent, way, JournalCallbackHandler(journal, run_id="run"))

    assert [(step.kind, step.status) for step in journal.steps("run")] == [
        ("model", "done"),
        ("tool", "done"),
        ("model", "done"),
    ]
    assert journal.runs()[0].status == "completed"
    wrapped = agent_of(effects, middleware=[JournalMiddleware(never=["refund"])])
    driven = drive(journal, wrapped[1], offline=True)
    assert (driven.reply, reply) == ("Done.", "Done.") or driven.reply.strip() == reply.strip() == "Done."
    assert (driven.ran, driven.read_back) == (0, 3)
    assert effects.lines() == ["refund 7"]


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
def test_a_re_run_that_differs_is_stopped_before_the_tool(journal, effects, way):
    """Another order number in the re-run: `DivergenceError`, and nothing is refunded."""
    called(agent_of(effects)[1], way, JournalCallbackHandler(journal, run_id="run"))
    changed = agent_of(effects, script=turns(calling("refund", order=8), said()))[1]

    with pytest.raises(DivergenceError):
        called(changed, way, JournalCallbackHandler(journal, run_id="run", verify=True))

    assert effects.lines() == ["refund 7"]


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
def test_a_re_run_that_matches_repeats_no_effect(journal, effects, way):
    """The handler can serve nothing, so a matching effect is stopped before its body; a `safe` one may run again."""
    called(agent_of(effects)[1], way, JournalCallbackHandler(journal, run_id="run"))

    with pytest.raises(UnjournaledCallError, match="cannot serve results"):
        called(agent_of(effects)[1], way, JournalCallbackHandler(journal, run_id="run", verify=True))
    assert effects.lines() == ["refund 7"]


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
def test_a_re_run_of_what_is_safe_goes_to_its_end(journal, effects, way):
    """With its tools labelled safe, a whole re-run is compared, and nothing is recorded anew."""
    for verify in (False, True):
        handler = JournalCallbackHandler(journal, run_id="run", verify=verify, policies={"refund": safe})
        assert called(agent_of(effects)[1], way, handler) == "Done."

    assert len(journal.steps("run")) == 3


def test_a_recorded_run_is_not_recorded_again(journal, effects):
    """After a crash the handler refuses before the first model call: only the wrapped agent can resume."""
    model, agent = agent_of(effects)
    called(agent, "invoke", JournalCallbackHandler(journal, run_id="run"))

    with pytest.raises(ValueError, match="resume it with the wrapped agent"):
        called(agent, "invoke", JournalCallbackHandler(journal, run_id="run"))

    assert (len(model.asked), effects.lines()) == (2, ["refund 7"])


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
def test_a_tool_whose_intent_cannot_be_written_does_not_run(tmp_path, effects, way):
    """B54: the journal breaks between the model and its tool, and the caller gets the error instead of the effect."""
    journal = Journal(tmp_path / "runs.db")
    script = turns(calling("refund", order=7), said())

    def breaking(messages: Any) -> Any:
        journal.close()
        return script(messages)

    with pytest.raises((JournalUnavailableError, RuntimeError)):
        called(agent_of(effects, script=breaking)[1], way, JournalCallbackHandler(journal, run_id="run"))

    assert effects.lines() == []


def test_a_policy_for_the_tool(journal, effects):
    """The label that the handler is given is recorded, and holds when the wrapped agent resumes."""
    called(
        agent_of(effects)[1],
        "invoke",
        JournalCallbackHandler(journal, run_id="run", policies={"refund": never}),
    )

    assert journal.steps("run")[1].policy == "never"
