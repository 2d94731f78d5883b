"""Conversations that a server keeps: what it may have gone on from is not sent again unless a person says so."""

import asyncio
from typing import Any

import pytest
from agents import Agent
from agents.testing import ModelStep, ScriptedModel

from gnl_middleware import Done, Failed, NotDone, ResolutionRefusedError, SideEffectRetryBlockedError
from gnl_openai_agents import DurableRunner
from tests.openai_agents.driving import WAYS, run
from tests.openai_agents.scripted import said

OPTIONS: dict[str, Any] = {"run_id": "order-7", "conversation_id": "conv_1"}


class Killed(BaseException):
    """Ends the attempt while the provider is being asked."""


async def die(asked: Any) -> Any:
    raise Killed


def answering(reply: Any) -> Agent[Any]:
    return Agent(name="A", model=ScriptedModel([reply] * 3))


def cut_off(runner: DurableRunner, way: str = "run") -> None:
    with pytest.raises(Killed):
        WAYS[way](runner, answering(ModelStep.respond(die)), "go", **OPTIONS)


@pytest.mark.parametrize("way", ["run", "run_streamed"])
def test_a_call_that_was_cut_off_blocks(journal, way):
    """The server may hold the turn already: the call is not sent again, and is listed as waiting for a person."""
    runner = DurableRunner(journal)
    cut_off(runner, way)
    again = answering([said()])

    with pytest.raises(SideEffectRetryBlockedError, match="conversation") as raised:
        WAYS[way](runner, again, "go", **OPTIONS)

    assert len(again.model.calls) == 0
    assert "--did-not-happen" in str(raised.value)
    assert "--happened" not in str(raised.value)
    assert [record.status for record in journal.runs()] == ["blocked"]
    assert ["conversation" in (step.blocked or "") for step in journal.steps("order-7")] == [True]


@pytest.mark.parametrize("way", ["run", "run_streamed"])
def test_a_person_lets_it_be_sent_again(journal, way):
    """Once somebody has seen that the turn is not in the conversation, the same call goes on; that binds to one try."""
    runner = DurableRunner(journal)
    cut_off(runner, way)
    with pytest.raises(SideEffectRetryBlockedError):
        WAYS[way](runner, answering([said()]), "go", **OPTIONS)
    journal.resolve("order-7", 1, NotDone(), by="ada", note="looked at conv_1")
    cut_off(runner, way)
    with pytest.raises(SideEffectRetryBlockedError):
        WAYS[way](runner, answering([said()]), "go", **OPTIONS)
    journal.resolve("order-7", 1, NotDone(), by="ada")

    assert WAYS[way](runner, answering([said()]), "go", **OPTIONS).final_output == "Done."
    assert [record.status for record in journal.runs()] == ["completed"]


def test_a_person_gives_it_up(journal):
    """``Failed`` ends the run with that text, on every attempt, and the provider is not asked."""
    runner = DurableRunner(journal)
    cut_off(runner)
    journal.resolve("order-7", 1, Failed("the customer was answered by hand"), by="ada")
    again = answering([said()])

    for _ in range(2):
        with pytest.raises(Exception, match="answered by hand"):
            run(runner, again, "go", **OPTIONS)
    assert len(again.model.calls) == 0


def test_nobody_can_say_what_it_replied(journal):
    """``Done`` is refused: the reply that the run would go on from is lost."""
    cut_off(DurableRunner(journal))

    with pytest.raises(ResolutionRefusedError, match="reply"):
        journal.resolve("order-7", 1, Done("fine"), by="ada")


def test_the_model_is_never_told_of_it(journal):
    """``on_interrupted="tell_model"`` is for tools: here there is no result that a text could stand for."""
    runner = DurableRunner(journal)
    cut_off(runner)

    with pytest.raises(SideEffectRetryBlockedError):
        run(runner, answering([said()]), "go", **OPTIONS, on_interrupted="tell_model")


def test_a_changed_call_blocks_too(journal):
    """What was cut off stays open: another question in the conversation is not asked past it."""
    runner = DurableRunner(journal)

    async def two(first: Any, second: Any) -> None:
        with journal.run("order-7"):
            for text, agent in (("one", first), ("two", second)):
                await runner.run(agent, text, conversation_id="conv_1")

    with pytest.raises(Killed):
        asyncio.run(two(answering(ModelStep.respond(die)), answering([said()])))

    unasked = answering([said()])
    with pytest.raises(SideEffectRetryBlockedError), journal.run("order-7"):
        run(runner, unasked, "two", conversation_id="conv_1")
    assert len(unasked.model.calls) == 0


def test_a_failed_call_is_asked_again(journal):
    """A provider that said no has not gone on: the next attempt asks it."""
    runner = DurableRunner(journal)

    async def refuse(asked: Any) -> Any:
        raise ConnectionError("refused")

    with pytest.raises(ConnectionError):
        run(runner, answering(ModelStep.respond(refuse)), "go", **OPTIONS)

    assert run(runner, answering([said()]), "go", **OPTIONS).final_output == "Done."


def test_a_finished_call_is_read_back(journal):
    """What has its outcome is read back like any other, without the server."""
    runner = DurableRunner(journal)
    run(runner, answering([said()]), "go", **OPTIONS)

    assert run(runner, answering([said()]), "go", **OPTIONS, offline=True).final_output == "Done."
