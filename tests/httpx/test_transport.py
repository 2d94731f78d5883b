"""What is recorded is what came over the wire, once, and only where it is a whole answer."""

import gzip
import json

import httpx2
import pytest
from langchain_core.messages import HumanMessage
from langchain_openai import ChatOpenAI

from gnl_httpx import JournalTransport
from gnl_langchain import journaled_model
from gnl_middleware import DivergenceError, Journal, NoActiveRunError, ReplayMissError
from tests.httpx.senders import URLS, Prepared, Sender, read

ASK = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "stream": True}
WAYS = pytest.mark.parametrize("way", ["sync", "async"])
BOTH = pytest.mark.parametrize("library", ["httpx2", "httpx"])


def event(**data):
    return b"data: " + json.dumps(data, ensure_ascii=False).encode() + b"\n\n"


def chat(text, **finish):
    return event(choices=[{"index": 0, "delta": {"content": text}, **finish}])


END = b"data: [DONE]\n\n"
HELLO = chat("Grüße")
CUT_INSIDE_A_LETTER = [HELLO[:-30], HELLO[-30:], chat("", finish_reason="stop"), END]
WHOLE = {
    "chat": (ASK, CUT_INSIDE_A_LETTER),
    "responses": (
        {"model": "m", "input": "hi", "stream": True},
        [
            event(type="response.created"),
            event(type="response.completed", response={"output": [{"type": "message"}]}),
        ],
    ),
    "anthropic": (
        ASK | {"max_tokens": 9},
        [
            event(type="message_start", message={"role": "assistant", "content": []}),
            event(type="content_block_start", index=0, content_block={"type": "text", "text": ""}),
            event(type="content_block_delta", index=0, delta={"type": "text_delta", "text": "hello"}),
            event(type="message_stop"),
        ],
    ),
}


@pytest.fixture
def journal(tmp_path):
    with Journal(tmp_path / "runs.db") as journal:
        yield journal


def models(journal, run_id="r"):
    return [(step.kind, step.status) for step in journal.steps(run_id)]


@BOTH
@WAYS
@pytest.mark.parametrize("wire", WHOLE)
def test_bytes_and_boundaries_come_back(journal, library, way, wire):
    """A replay gives the same status, headers and chunks, cut where they were cut, though it be within a letter."""
    body, chunks = WHOLE[wire]
    sender = Sender(library, Prepared(chunks))

    answers = []
    for _ in range(2):
        with journal.run("r"):
            answers.append(read(library, JournalTransport(sender), body, url=URLS[wire], way=way))

    assert answers[0] == answers[1] == (200, {"content-type": "text/event-stream"}, chunks)
    assert (len(sender.asked), sender.closed) == (1, 1)
    assert models(journal) == [("model", "done")]


@WAYS
def test_a_compressed_answer_comes_back_compressed(journal, way):
    """Raw is raw: what came compressed is given compressed, and its text is understood all the same."""
    text = json.dumps({"choices": [{"message": {"content": "hello"}}], "usage": {"total_tokens": 7}}).encode()
    headers = {"content-type": "application/json", "content-encoding": "gzip"}
    sender = Sender("httpx2", Prepared([gzip.compress(text)], headers=headers))

    for _ in range(2):
        with journal.run("r") as run:
            answer = read("httpx2", JournalTransport(sender), ASK | {"stream": False}, way=way)

    assert answer == (200, headers, [gzip.compress(text)])
    assert (len(sender.asked), run.tokens_not_spent) == (1, 7)


NO_OUTCOME = {
    "refused": Prepared([b'{"error": {"message": "slow down"}}'], 429, {"content-type": "application/json"}),
    "broken": Prepared([HELLO], 500, {"content-type": "text/html"}),
    "empty": Prepared([], 200),
    "cut": Prepared([HELLO]),
    "cut later": Prepared([HELLO, HELLO, HELLO]),
    "an error inside": Prepared([HELLO, event(error={"message": "overloaded"})]),
    "no JSON": Prepared([b"<html>"], 200, {"content-type": "text/html"}),
}


@BOTH
@WAYS
@pytest.mark.parametrize("first", NO_OUTCOME.values(), ids=NO_OUTCOME)
def test_what_is_no_whole_answer_is_no_outcome(journal, library, way, first):
    """The client sees an error or a cut stream as it came, and the next call asks the model again."""
    sender = Sender(library, first, Prepared(CUT_INSIDE_A_LETTER))

    with journal.run("r"):
        seen = read(library, JournalTransport(sender), ASK, way=way)
        again = read(library, JournalTransport(sender), ASK, way=way)

    assert (seen[0], seen[2]) == (first.status, first.chunks)
    assert again[2] == CUT_INSIDE_A_LETTER
    assert (len(sender.asked), sender.closed) == (2, 2)
    assert models(journal) == [("model", "done")]


@WAYS
def test_a_connection_that_breaks_is_no_outcome(journal, way):
    """The client gets the error that it would get without us."""
    sender = Sender("httpx2", Prepared([HELLO], breaks=True), Prepared(CUT_INSIDE_A_LETTER))

    with journal.run("r"):
        with pytest.raises(httpx2.ReadError, match="broke off"):
            read("httpx2", JournalTransport(sender), ASK, way=way)
        assert read("httpx2", JournalTransport(sender), ASK, way=way)[2] == CUT_INSIDE_A_LETTER

    assert models(journal) == [("model", "done")]


@BOTH
@WAYS
@pytest.mark.parametrize(("stop_behind", "asked"), [(END, 1), (HELLO, 2)], ids=["at the end", "half way"])
def test_a_reader_may_stop_at_the_event_that_says_so(journal, library, way, stop_behind, asked):
    """SDKs stop at `[DONE]`: what ends the transfer is read for them. Who stops half way has no outcome, and asks again."""
    chunks = [HELLO, END, b"\n", b": good bye\n\n"]
    sender = Sender(library, Prepared(chunks))

    for _ in range(2):
        with journal.run("r"):
            read(library, JournalTransport(sender), ASK, way=way, stop_behind=stop_behind)

    assert (len(sender.asked), sender.closed) == (asked, asked)


def test_other_requests_go_through(journal):
    """What asks no model is neither recorded nor refused: files, lists of models, embeddings."""
    sender = Sender("httpx2", Prepared([b"{}"], headers={}))

    with journal.run("r"):
        for url in ("https://api.openai.com/v1/embeddings", "https://api.openai.com/v1/threads/t/messages"):
            read("httpx2", JournalTransport(sender), {"role": "user", "content": "x"}, url=url)
        httpx2.Client(transport=JournalTransport(sender)).get(URLS["chat"])

    assert (len(sender.asked), journal.steps("r")) == (3, [])


def test_outside_a_run(journal):
    """Outside any run a model call is refused, and the error says how to open one; or it goes through, where that is said."""
    sender = Sender("httpx2", Prepared(CUT_INSIDE_A_LETTER))

    with pytest.raises(NoActiveRunError):
        read("httpx2", JournalTransport(sender), ASK)
    assert read("httpx2", JournalTransport(sender, on_no_run="passthrough"), ASK)[2] == CUT_INSIDE_A_LETTER


@pytest.mark.parametrize(
    "changed",
    [
        {"messages": [{"role": "system", "content": "New."}]},
        {"temperature": 1},
        {"tools": [{"type": "function"}]},
    ],
    ids=["messages", "settings", "tools"],
)
def test_a_changed_request_diverges_in_strict_mode(journal, changed):
    """Another prompt, setting or tool on a replay is told before anything is sent."""
    sender = Sender("httpx2", Prepared(CUT_INSIDE_A_LETTER))
    with journal.run("r"):
        read("httpx2", JournalTransport(sender), ASK)

    with pytest.raises(DivergenceError), journal.run("r", replay="strict"):
        read("httpx2", JournalTransport(sender), ASK | changed)

    assert len(sender.asked) == 1


def test_how_a_request_is_sent_is_not_what_it_asks(journal):
    """A recorded answer serves whole and streamed requests of the same conversation alike, also offline."""
    sender = Sender("httpx2", Prepared(CUT_INSIDE_A_LETTER))
    with journal.run("r"):
        read("httpx2", JournalTransport(sender), ASK)

    with journal.run("r", replay="strict", offline=True):
        again = read("httpx2", JournalTransport(sender), ASK | {"prompt_cache_key": "made up"})
    with pytest.raises(ReplayMissError), journal.run("new", offline=True):
        read("httpx2", JournalTransport(sender), ASK)

    assert again[2] == CUT_INSIDE_A_LETTER


@pytest.mark.parametrize("wrapped", [True, False], ids=["wrapped", "alone"])
def test_a_framework_above_journals_alone(journal, provider, wrapped):
    """Below a journalled LangChain model the transport adds no step of its own; below a plain one it is the journal's."""
    transport = JournalTransport(httpx2.HTTPTransport(verify=False))
    client = httpx2.Client(transport=transport)
    plain = ChatOpenAI(model="scripted", api_key="none", base_url=provider.base_url, http_client=client)
    model = journaled_model(plain) if wrapped else plain

    for _ in range(2):
        with journal.run("r"):
            reply = model.invoke([HumanMessage("hello")])

    assert reply.tool_calls[0]["name"] == "look_up"
    assert models(journal) == [("model", "done")]
    assert len(provider.requests) == 1
