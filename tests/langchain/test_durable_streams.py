"""Streams of a durable run: the same chunks, callbacks and usage each time, whoever stops early, and in every mode."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, closing
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage
from langgraph.graph import START, MessagesState, StateGraph

from gnl_langchain import JournalMiddleware, astream_durable, run_durable, stream_durable
from gnl_middleware import current_run, never
from tests.langchain.scripted import QUESTION, ScriptedModel, calling, said, turns

MODES = ("values", "updates", "messages", "custom", "debug", "checkpoints", "tasks")
USAGE = {"input_tokens": 3, "output_tokens": 4, "total_tokens": 7}


class Counting(BaseCallbackHandler):
    """Counts tokens, and the calls that were read back."""

    run_inline = True

    def __init__(self) -> None:
        self.tokens: list[str] = []
        self.usage = 0
        self.replayed: list[bool] = []
        self._metadata: dict[Any, Any] = {}

    def on_chat_model_start(self, *_: Any, run_id: Any, metadata: Any = None, **__: Any) -> None:
        self._metadata[run_id] = metadata

    def on_llm_new_token(self, token: str, **_: Any) -> None:
        self.tokens.append(token)

    def on_llm_end(self, response: Any, *, run_id: Any, **_: Any) -> None:
        usage = response.generations[0][0].message.usage_metadata
        self.usage += usage["total_tokens"] if usage else 0
        self.replayed.append(bool((self._metadata.pop(run_id) or {}).get("gnl_replayed")))


def agent_of(effects: Any, script: Any = None) -> tuple[ScriptedModel, Any]:
    def refund(order: int) -> str:
        """Refund an order."""
        effects.add(f"refund {order}")
        return f"refunded {order}"

    last = AIMessage("All of it is done.", usage_metadata=USAGE)
    model = ScriptedModel(script=script or turns(calling("refund", text="I refund it", order=7), last))
    return model, create_agent(model, [refund], middleware=[JournalMiddleware(never=["refund"])])


def streamed(agent: Any, journal: Any, way: str, **options: Any) -> list[Any]:
    options |= {"run_id": "order-7", "journal": journal}
    if way == "stream":
        return list(stream_durable(agent, QUESTION, **options))

    async def parts() -> list[Any]:
        return [part async for part in astream_durable(agent, QUESTION, **options)]

    return asyncio.run(parts())


def chunks_of(parts: list[Any]) -> list[tuple[Any, ...]]:
    """What a consumer sees of each message chunk; the id of a message is the provider's, or LangChain makes one up."""
    return [
        (type(message), message.content, message.tool_calls, message.usage_metadata)
        if isinstance(message, AIMessage)
        else (type(message), message.content)
        for message, _ in parts
    ]


@pytest.mark.parametrize("way", ["stream", "astream"])
@pytest.mark.parametrize("recorded_by", ["stream", "astream"])
def test_chunks_come_back_as_they_came(journal, effects, recorded_by, way):
    """B36: the same chunks with the same boundaries, usage once, every token told to callbacks; and no live call."""
    model, agent = agent_of(effects)
    first, second = Counting(), Counting()
    recorded = streamed(agent, journal, recorded_by, stream_mode="messages", config={"callbacks": [first]})

    replayed = streamed(
        agent, journal, way, stream_mode="messages", config={"callbacks": [second]}, offline=True
    )

    assert chunks_of(replayed) == chunks_of(recorded)
    assert len(recorded) > 8
    assert (second.tokens, second.usage) == (first.tokens, first.usage) == (first.tokens, 7)
    assert (first.replayed, second.replayed) == ([False] * 2, [True] * 2)
    assert len(model.asked) == 2


@pytest.mark.parametrize("way", ["stream", "astream"])
@pytest.mark.parametrize("mode", MODES)
def test_every_mode_is_read_back(journal, effects, mode, way):
    """Whatever a consumer wants to see of a stream, a replay shows as many parts of it, and runs nothing."""
    model, agent = agent_of(effects)
    recorded = streamed(agent, journal, way, stream_mode=mode)

    replayed = streamed(agent, journal, way, stream_mode=mode, offline=True)

    assert len(replayed) == len(recorded)
    assert (len(model.asked), effects.lines()) == (2, ["refund 7"])


@pytest.mark.parametrize("way", ["stream", "astream"])
def test_streams_of_subgraphs_are_read_back(journal, effects, way):
    """With `subgraphs` and several modes each part says where it comes from, recorded and replayed, and nothing runs again."""
    model, agent = agent_of(effects)
    graph = StateGraph(MessagesState)
    graph.add_node("agent", agent)
    graph.add_edge(START, "agent")
    made, options = graph.compile(), {"subgraphs": True, "stream_mode": ["updates", "messages"]}

    def places(parts: list[Any]) -> list[Any]:
        return [([part.partition(":")[0] for part in namespace], mode) for namespace, mode, _ in parts]

    recorded = places(streamed(made, journal, way, **options))
    replayed = places(streamed(made, journal, way, offline=True, **options))

    assert replayed == recorded
    assert (["agent"], "messages") in recorded
    assert (len(model.asked), effects.lines()) == (2, ["refund 7"])


@pytest.mark.parametrize("way", ["stream", "astream"])
def test_recorded_by_a_call_and_replayed_by_a_stream(journal, effects, way):
    """`invoke` and `stream` read each other's records: the merged message is the whole one."""
    _, agent = agent_of(effects)
    whole = run_durable(agent, QUESTION, run_id="order-7", journal=journal)["messages"][-1]

    parts = streamed(agent, journal, way, stream_mode="messages", offline=True)

    assert "".join(str(message.content) for message, _ in parts[-1:]).strip() == str(whole.content).strip()
    again = run_durable(agent, QUESTION, run_id="order-7", journal=journal, offline=True)["messages"][-1]
    assert (again.content, again.usage_metadata) == (whole.content, USAGE)


def test_events_of_a_graph_are_read_back(journal, effects):
    """`astream_events` inside a run tells the same events again, with every token."""
    _, agent = agent_of(effects)

    async def events() -> list[tuple[str, str]]:
        async with journal.run("order-7"):
            found = [event async for event in agent.astream_events(QUESTION, version="v2")]
        return [(event["event"], event["name"]) for event in found if "model" in event["event"]]

    recorded, replayed = asyncio.run(events()), asyncio.run(events())

    assert replayed == recorded
    assert ("on_chat_model_stream", "ScriptedModel") in recorded


@pytest.mark.parametrize("way", ["stream", "astream"])
def test_a_stream_that_is_cut_is_asked_again(journal, effects, way):
    """B35: half an answer is none; the resume asks again and nothing broken is ever sent."""
    script = turns(calling("refund", text="I refund it", order=7), said("All is done."))
    cut = [True]

    class Cut(ScriptedModel):
        def _stream(self, *arguments: Any, **options: Any) -> Any:
            for number, chunk in enumerate(super()._stream(*arguments, **options)):
                if number == 2 and cut:
                    raise ConnectionResetError(cut.pop())
                yield chunk

    model = Cut(script=script)

    def refund(order: int) -> str:
        """Refund an order."""
        effects.add("refund")
        return "refunded"

    agent = create_agent(model, [refund], middleware=[JournalMiddleware(policies={"refund": never})])
    with pytest.raises(ConnectionResetError):
        streamed(agent, journal, way, stream_mode="messages")

    streamed(agent, journal, way, stream_mode="messages")

    assert [len(messages) for messages in model.asked] == [1, 1, 3]
    assert effects.lines() == ["refund"]
    assert journal.steps("order-7")[0].attempts == 1


@pytest.mark.parametrize("way", ["stream", "astream"])
@pytest.mark.parametrize("after", [1, 3, 6])
def test_a_consumer_that_stops_early_loses_nothing_finished(journal, effects, after, way):
    """B37: what had finished when the consumer broke off is recorded; the same call goes on and repeats none of it."""
    model, agent = agent_of(effects)
    options: dict[str, Any] = {"run_id": "order-7", "journal": journal, "stream_mode": "messages"}

    def some() -> None:
        with closing(stream_durable(agent, QUESTION, **options)) as parts:
            for _ in range(after):
                next(parts)

    async def some_async() -> None:
        async with aclosing(astream_durable(agent, QUESTION, **options)) as parts:
            for _ in range(after):
                await anext(parts)

    some() if way == "stream" else asyncio.run(some_async())
    finished = {step.key for step in journal.steps("order-7") if step.status == "done"}
    holder = journal.runs()[0].holder

    streamed(agent, journal, way, stream_mode="messages")

    assert holder is None
    assert effects.lines() == ["refund 7"]
    assert finished <= {step.key for step in journal.steps("order-7")}
    assert len(model.asked) <= 4


def test_a_consumer_is_not_inside_the_run(journal, effects):
    """What a consumer does between two chunks, maybe on another thread, is no part of the run."""
    _, agent = agent_of(effects)
    seen = []

    with closing(stream_durable(agent, QUESTION, run_id="order-7", journal=journal)) as parts:
        for _ in range(2):
            with ThreadPoolExecutor(1) as pool:
                pool.submit(next, parts).result()
            seen.append(current_run())
        list(parts)

    assert seen == [None, None]
    assert journal.runs()[0].status == "completed"
