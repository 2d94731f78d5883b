"""Streams of a journalled model: recorded as they came, replayed as they were recorded, and never half."""

import asyncio
from typing import Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler

from gnl_langchain import journaled_model
from tests.langchain.asking import ASKED, QUESTION, STREAMED, TEXT, merged
from tests.langchain.scripted import ScriptedModel, said, turns


@pytest.mark.parametrize("replayed_by", STREAMED)
@pytest.mark.parametrize("recorded_by", STREAMED)
def test_chunks_come_back_with_their_boundaries(journal, model, recorded_by, replayed_by):
    """A replayed stream is cut where the live one was cut."""
    journaled = journaled_model(model)
    with journal.run("run"):
        recorded = ASKED[recorded_by](journaled)

    with journal.run("run"):
        replayed = ASKED[replayed_by](journaled)

    assert len(recorded) > 5
    assert [chunk.content for chunk in replayed] == [chunk.content for chunk in recorded]


class Heard(BaseCallbackHandler):
    """Notes what it hears of a model."""

    def __init__(self) -> None:
        self.tokens: list[str] = []
        self.events: list[str] = []

    def on_chat_model_start(self, *args: Any, **kwargs: Any) -> None:
        self.events.append("start")

    def on_llm_new_token(self, token: str, **kwargs: Any) -> None:
        self.tokens.append(token)

    def on_llm_end(self, *args: Any, **kwargs: Any) -> None:
        self.events.append("end")


@pytest.mark.parametrize("use", STREAMED)
def test_token_callbacks_fire_once_live_and_replayed(journal, model, use):
    """A callback hears each token once, as without the journal, also when the reply is read back."""
    heard = {}
    for name, asked in (
        ("unwrapped", model),
        ("recorded", journaled_model(model)),
        ("replayed", journaled_model(model)),
    ):
        handler = heard[name] = Heard()
        with journal.run("run"):
            ASKED[use](asked.with_config(callbacks=[handler]))

    assert "".join(heard["unwrapped"].tokens) == TEXT
    for name in ("recorded", "replayed"):
        assert heard[name].tokens == heard["unwrapped"].tokens
        assert heard[name].events == ["start", "end"]


def test_what_is_recorded_of_a_chunk_is_what_the_provider_gave(journal):
    """Ids that LangChain writes into the chunks it is given are made up anew: a replay has an id of its own."""
    model = journaled_model(ScriptedModel(script=turns(said("one two"))))
    ids = []

    for _ in range(2):
        with journal.run("run"):
            ids.append({chunk.id for chunk in model.stream(QUESTION)})

    first, second = ids
    assert len(first) == len(second) == 1
    assert first != second


class CutModel(ScriptedModel):
    """A model whose stream breaks in the middle, as often as ``cuts`` says."""

    cuts: list[None]

    def _stream(self, *args: Any, **options: Any) -> Any:
        for place, chunk in enumerate(super()._stream(*args, **options)):
            if place == 2 and self.cuts:
                self.cuts.pop()
                raise ConnectionError("the connection broke")
            yield chunk


@pytest.mark.parametrize("use", STREAMED)
def test_a_stream_that_the_provider_cut_is_asked_again_in_the_same_attempt(journal, use):
    """Half a reply is no outcome: a retry asks, gets the whole, and only the whole is recorded."""
    model = journaled_model(CutModel(script=turns(said("one two three four")), cuts=[None]))

    with journal.run("run"):
        with pytest.raises(ConnectionError):
            ASKED[use](model)
        whole = ASKED[use](model)

    assert merged(whole).text == "one two three four "
    assert len(model.asked) == 2
    assert [step.status for step in journal.steps("run")] == ["done"]


@pytest.mark.parametrize("use", STREAMED)
def test_a_stream_that_the_provider_cut_is_asked_again_in_the_next_attempt(journal, use):
    """The same where the cut ended the attempt."""
    model = journaled_model(CutModel(script=turns(said("one two three four")), cuts=[None]))
    with pytest.raises(ConnectionError), journal.run("run"):
        ASKED[use](model)

    with journal.run("run"):
        whole = ASKED[use](model)

    assert merged(whole).text == "one two three four "
    assert len(model.asked) == 2
    assert [step.status for step in journal.steps("run")] == ["done"]


def stop_early(model: Any) -> str:
    """Take two chunks of a stream and leave the rest."""
    chunks = model.stream(QUESTION)
    text = next(chunks).text + next(chunks).text
    chunks.close()
    return text


def stop_early_async(model: Any) -> str:
    async def take() -> str:
        chunks = model.astream(QUESTION)
        text = (await anext(chunks)).text + (await anext(chunks)).text
        await chunks.aclose()
        return text

    return asyncio.run(take())


@pytest.mark.parametrize("stop", [stop_early, stop_early_async])
def test_a_consumer_that_stops_early_is_given_the_stream_anew(journal, stop):
    """A stream that its consumer left is no outcome: the same code asks again and gets the same part, and no step hangs."""
    model = journaled_model(ScriptedModel(script=turns(said("one two three four"))))

    with journal.run("run"):
        first = stop(model)
    with journal.run("run"):
        second = stop(model)
        whole = merged(list(model.stream(QUESTION))).text

    assert first == second == "one two "
    assert whole == "one two three four "
    assert len(model.asked) == 3


def test_the_outcome_is_committed_before_the_last_chunk_is_given(journal):
    """Whoever has seen the end of a stream never loses it: the journal holds the reply by then."""
    model = journaled_model(ScriptedModel(script=turns(said("one two"))))

    with journal.run("run"):
        chunks = model.stream(QUESTION)
        texts = [next(chunks).text, next(chunks).text]
        before_last = [step.status for step in journal.steps("run") if step.status == "done"]
        last = next(chunks)
        after_last = [step.status for step in journal.steps("run")]
        chunks.close()

    assert texts == ["one ", "two "]
    assert before_last == []
    assert last.chunk_position == "last"
    assert after_last == ["done"]
