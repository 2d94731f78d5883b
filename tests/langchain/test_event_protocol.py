"""The third event protocol of LangChain and LangGraph: the same events recorded, replayed, and without a journal."""

import asyncio
import itertools
from collections.abc import Callable
from typing import Any

import pytest
from langchain.agents import create_agent

from gnl_langchain import JournalMiddleware, journaled_model
from tests.langchain.asking import ASKED, QUESTION, quote
from tests.langchain.scripted import QUESTION as REQUEST
from tests.langchain.scripted import ScriptedModel, calling, said, turns

# LangChain says of the protocol that its surface may change; whoever uses it is told so, by LangChain.
pytestmark = pytest.mark.filterwarnings("ignore::langchain_core._api.beta_decorator.LangChainBetaWarning")


def events(model: Any) -> list[Any]:
    return list(model.stream_events(QUESTION, version="v3"))


def events_async(model: Any) -> list[Any]:
    async def collected() -> list[Any]:
        return [event async for event in await model.astream_events(QUESTION, version="v3")]

    return asyncio.run(collected())


EVENTS: dict[str, Callable[[Any], list[Any]]] = {"stream_events": events, "astream_events": events_async}


def shown(told: list[Any]) -> list[Any]:
    """Events without the id that LangChain makes up for each message."""
    return [{name: value for name, value in event.items() if name != "id"} for event in told]


@pytest.mark.parametrize("tools", [False, True], ids=["text", "tools"])
@pytest.mark.parametrize("ways", list(itertools.product(EVENTS, EVENTS)), ids="-then-".join)
def test_events_of_a_model(journal, model, server, ways, tools):
    """Recorded in one way and replayed in the other, the same blocks come with the same boundaries and the same usage."""

    def bound(of: Any) -> Any:
        return of.bind_tools([quote]) if tools else of

    recorded_by, replayed_by = (EVENTS[way] for way in ways)
    plain = shown(recorded_by(bound(model)))
    journaled = bound(journaled_model(model))

    with journal.run("run"):
        recorded = shown(recorded_by(journaled))
    with journal.run("run", offline=True, replay="strict") as run:
        replayed = shown(replayed_by(journaled))

    assert recorded == replayed == plain
    assert len(recorded) > 6
    assert (run.steps_ran, len(server.requests)) == (0, 2)


@pytest.mark.parametrize("asked", ASKED)
def test_recorded_otherwise(journal, model, server, asked):
    """What `invoke` or `stream` has recorded is told by the events, and the other way round."""
    journaled = journaled_model(model)
    with journal.run("run"):
        ASKED[asked](journaled)
    with journal.run("other"):
        whole = "".join(_texts(events(journaled)))

    with journal.run("run", offline=True):
        told = "".join(_texts(events(journaled)))
    with journal.run("other", offline=True):
        ASKED[asked](journaled)

    assert told == whole
    assert len(server.requests) == 2


def _texts(told: list[Any]) -> list[str]:
    found = [event.get("delta") or {} for event in told if event["event"] == "content-block-delta"]
    return [str(delta.get("text", "")) for delta in found]


@pytest.mark.parametrize("way", EVENTS)
def test_events_of_an_agent(journal, effects, way):
    """An agent's events come again, messages and all; only a tool that does not run again tells of no start and end."""

    def refund(order: int) -> str:
        """Refund an order."""
        effects.add("refund")
        return "refunded"

    model = ScriptedModel(script=turns(calling("refund", text="I do it", order=7), said("All is done.")))
    agent = create_agent(model, [refund], middleware=[JournalMiddleware(never=[refund])])

    def told() -> list[str]:
        if way == "stream_events":
            with journal.run("run"):
                return [event["method"] for event in agent.stream_events(REQUEST, version="v3")]

        async def collected() -> list[str]:
            async with journal.run("run"):
                stream = await agent.astream_events(REQUEST, version="v3")
                return [event["method"] async for event in stream]

        return asyncio.run(collected())

    recorded, replayed = told(), told()

    assert sorted(replayed) == sorted(method for method in recorded if method != "tools")
    assert {"messages", "tools"} < set(recorded)
    assert (effects.lines(), len(model.asked)) == (["refund"], 2)
