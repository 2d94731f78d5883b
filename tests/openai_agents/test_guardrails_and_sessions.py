"""Guardrails answer once, in scopes of their own; sessions that a server keeps are refused."""

import asyncio
from typing import Any

import pytest
from agents import (
    GuardrailFunctionOutput,
    InputGuardrailTripwireTriggered,
    OpenAIConversationsSession,
    OutputGuardrailTripwireTriggered,
    RunConfig,
    SQLiteSession,
    input_guardrail,
    output_guardrail,
)
from pydantic import BaseModel

from gnl_middleware import UnjournaledCallError, never
from gnl_openai_agents import DurableRunner, journaled_session
from tests.openai_agents.driving import run
from tests.openai_agents.scripted import QUIET, agent, call, effect_tool, said, turns


class Verdict(BaseModel):
    fine: bool


def guards(asked: list[str], *, trips: bool = False, info: Any = None) -> dict[str, Any]:
    @input_guardrail
    async def before(context: Any, agent: Any, given: Any) -> GuardrailFunctionOutput:
        asked.append("before")
        return GuardrailFunctionOutput(output_info=info, tripwire_triggered=trips)

    @output_guardrail
    def after(context: Any, agent: Any, output: Any) -> GuardrailFunctionOutput:
        asked.append("after")
        return GuardrailFunctionOutput(output_info=info, tripwire_triggered=False)

    return {"input_guardrails": [before], "output_guardrails": [after]}


@pytest.mark.parametrize("where", ["agent", "run_config"])
def test_their_answers_are_read_back(journal, where):
    """A guardrail answers once; a second run gets the same results without asking it."""
    asked: list[str] = []
    for _ in range(2):
        options, config = guards(asked, info={"score": 1}), QUIET
        if where == "run_config":
            options, config = {}, RunConfig(tracing_disabled=True, **options)
        given = agent(turns([said()]), **options)
        result = run(DurableRunner(journal), given, "go", run_id="order-7", run_config=config)
        assert [found.output.output_info for found in result.input_guardrail_results] == [{"score": 1}]
        assert [found.guardrail.get_name() for found in result.output_guardrail_results] == ["after"]

    assert sorted(asked) == ["after", "before"]


def test_what_only_this_process_can_hold_is_asked_for_again(journal):
    """An answer that is no plain data keeps its type: it is not recorded, and the guardrail answers again."""
    asked: list[str] = []
    for _ in range(2):
        given = agent(turns([said()]), **guards(asked, info=Verdict(fine=True)))
        result = run(DurableRunner(journal), given, "go", run_id="order-7")
        assert result.input_guardrail_results[0].output.output_info == Verdict(fine=True)

    assert sorted(asked) == ["after", "after", "before", "before"]


def test_a_tripped_guardrail_trips_again(journal, effects, durable):
    """The run fails as without us, on every attempt."""
    asked: list[str] = []
    runner = DurableRunner(journal, default_policy=never)
    for _ in range(2):
        given = agent(turns([said()]), effect_tool(effects), **guards(asked, trips=True))
        with pytest.raises(InputGuardrailTripwireTriggered):
            durable(runner, given, "go", run_id="order-7")
        assert [record.status for record in journal.runs()] == ["failed"]

    assert asked == ["before"]


def test_an_output_guardrail_that_trips(journal, durable):
    """The run fails as without us, and its status says so."""

    @output_guardrail
    def refuse(context: Any, agent: Any, output: Any) -> GuardrailFunctionOutput:
        return GuardrailFunctionOutput(output_info=None, tripwire_triggered=True)

    with pytest.raises(OutputGuardrailTripwireTriggered):
        durable(
            DurableRunner(journal),
            agent(turns([said()]), output_guardrails=[refuse]),
            "go",
            run_id="order-7",
        )

    assert [record.status for record in journal.runs()] == ["failed"]


def test_a_session_that_a_server_keeps_is_refused(journal):
    """Nobody could tell what a crash left there."""
    from openai import AsyncOpenAI

    session = OpenAIConversationsSession(conversation_id="c", openai_client=AsyncOpenAI(api_key="test"))

    with pytest.raises(UnjournaledCallError, match="OpenAIConversationsSession"):
        run(DurableRunner(journal), agent(turns([said()])), "go", run_id="order-7", session=session)


def test_a_session_that_compacts_is_refused(journal):
    """A model rewrites its history, past the journal."""

    class Compacting(SQLiteSession):
        async def run_compaction(self, args: Any = None) -> None: ...

    session = Compacting("s")

    with pytest.raises(UnjournaledCallError, match="Compacting"):
        run(DurableRunner(journal), agent(turns([said()])), "go", run_id="order-7", session=session)
    session.close()


def test_a_session_is_itself_outside_any_run(tmp_path):
    """A journalled session passes through where no run is open, and keeps the original's attributes."""

    async def go() -> Any:
        inner = SQLiteSession("s", tmp_path / "s.db")
        session = journaled_session(inner)
        await session.add_items([{"role": "user", "content": "hi"}])
        popped = await session.pop_item()
        await session.clear_session()
        found = session.session_id, popped, await session.get_items(), session.db_path
        inner.close()
        return found

    assert asyncio.run(go()) == ("s", {"role": "user", "content": "hi"}, [], tmp_path / "s.db")


class Telling(SQLiteSession):
    """A session that wants the context of the run with each call."""

    contexts: list[Any]

    async def get_items(self, limit: int | None = None, *, wrapper: Any = None) -> Any:
        self.contexts.append(wrapper)
        return await super().get_items(limit)

    async def add_items(self, items: Any, *, wrapper: Any = None) -> None:
        await super().add_items(items)

    async def pop_item(self, *, wrapper: Any = None) -> Any:
        return await super().pop_item()

    async def clear_session(self, *, wrapper: Any = None) -> None:
        await super().clear_session()


def test_a_session_that_wants_the_context_gets_it(journal, effects):
    """The SDK tells such a session of the run; the journalled one hands it on."""
    session = Telling("s")
    session.contexts = []
    given = agent(turns([call("refund", order="7")], [said()]), effect_tool(effects))

    run(DurableRunner(journal, default_policy=never), given, "go", run_id="order-7", session=session)

    assert session.contexts
    assert None not in session.contexts
    session.close()


def test_earlier_turns_of_a_session_are_what_they_were(journal, effects, tmp_path):
    """What was read of a session is read back: a message that came meanwhile does not change a finished run."""
    session = SQLiteSession("s", tmp_path / "s.db")
    asyncio.run(session.add_items([{"role": "user", "content": "earlier"}]))
    runner = DurableRunner(journal)
    first = run(runner, agent(turns([said()])), "go", run_id="order-7", session=session)
    asyncio.run(session.add_items([{"role": "user", "content": "later"}]))

    again = run(
        runner, agent(turns([said()])), "go", run_id="order-7", session=session, offline=True, replay="strict"
    )

    assert again.to_input_list() == first.to_input_list()
    held = [item.get("content") for item in asyncio.run(session.get_items())]
    assert len(held) == 4
    session.close()
