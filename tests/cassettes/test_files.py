"""The files: a person can read them, any tool that knows vcrpy can, and a stranger's does no harm."""

import gzip
import json
import zlib
from pathlib import Path

import httpx2
import pytest
import vcr
import yaml
import zstandard
from hypothesis import example, given
from hypothesis import strategies as st

from gnl_middleware.cassettes import (
    CassetteUnreadableError,
    Interaction,
    Request,
    Response,
    layout,
    use_cassette,
)
from tests.cassettes.clients import post
from tests.recorded.recordings import FOLDER, NAMES
from tests.servers.answering import Answer, AnsweringServer

EVENTS = (
    'event: message\ndata: {"text": "Grüße, "}\n\nevent: message\ndata: {"text": "world"}\n\ndata: [DONE]\n\n'
)
TEXT = json.dumps({"said": "the plain text " * 20}).encode()
COMPRESSED = {
    "gzip": gzip.compress(TEXT),
    "deflate": zlib.compress(TEXT),
    "zstd": zstandard.ZstdCompressor().compress(TEXT),
}


def interactions(path):
    return yaml.safe_load(path.read_text(encoding="utf-8"))["interactions"]


def test_events_stand_as_they_came(recorded):
    """Server-sent events are a block of text, line for line, and are played byte for byte."""
    recording = recorded([({"stream": True}, Answer(EVENTS.encode(), "text/event-stream; charset=utf-8"))])

    lines = [line.strip() for line in recording.path.read_text(encoding="utf-8").splitlines()]
    start = lines.index("event: message")
    assert lines[start : start + 8] == EVENTS.splitlines()
    with use_cassette(recording.path):
        assert recording.ask({"stream": True})[1] == EVENTS


def test_events_with_other_line_ends_are_readable_too(recorded):
    """Events whose lines end as in HTTP's headers are stored with plain line ends, which mean the same."""
    sent = EVENTS.replace("\n", "\r\n").encode()
    recording = recorded([({"stream": True}, Answer(sent, "text/event-stream"))])

    assert "      event: message\n" in recording.path.read_text(encoding="utf-8")
    with use_cassette(recording.path):
        assert recording.ask({"stream": True})[1] == EVENTS


def test_json_has_a_line_for_each_message(recorded):
    """A request is laid out so that a difference of two recordings shows which message or tool changed."""
    messages = [{"role": "user", "content": "Grüße"}, {"role": "user", "content": "again"}]
    recording = recorded([({"model": "m", "messages": messages}, {"said": [1]})])

    text = recording.path.read_text(encoding="utf-8")
    lines = [line.strip() for line in text.splitlines()]
    assert '{"role": "user", "content": "Grüße"},' in lines
    assert '{"role": "user", "content": "again"}' in lines
    assert '"said": [' in lines


@pytest.mark.parametrize("encoding", COMPRESSED)
def test_bodies_are_stored_decoded(recorded, encoding):
    """A compressed answer is stored as its text, and played without what would decompress it (B42)."""
    answer = Answer(COMPRESSED[encoding], headers={"content-encoding": encoding})
    recording = recorded([({"n": 1}, answer)], way="httpx2")

    (stored,) = interactions(recording.path)
    assert json.loads(stored["response"]["body"]["string"]) == json.loads(TEXT)
    assert set(stored["response"]["headers"]) == {"content-type"}
    with use_cassette(recording.path):
        status, text = recording.ask({"n": 1}, way="httpx")
    assert (status, json.loads(text)) == (200, json.loads(TEXT))


@pytest.mark.parametrize("method", ["HEAD", "DELETE"])
def test_an_answer_without_a_body_may_speak_of_an_encoding(tmp_path, method):
    """An empty body with a gzip header is an empty body (B42)."""
    path, answer = tmp_path / "empty.yaml", Answer(status=204, headers={"content-encoding": "gzip"})
    with AnsweringServer([answer]) as server:
        for record in (True, False):
            with use_cassette(path, record=record):
                assert httpx2.request(method, server.url, timeout=5).status_code == 204
        assert len(server.asked) == 1


def test_a_body_that_is_no_text_is_kept(recorded):
    """Audio and the like come back byte for byte."""
    audio = bytes(range(256))
    recording = recorded([({"n": 1}, Answer(audio, "audio/mpeg"))])

    with use_cassette(recording.path):
        assert httpx2.post(f"{recording.url}/v1/chat", json={"n": 1}, timeout=5).content == audio


@given(st.text() | st.binary())
@example("a\r\nb\r\n")
@example("a\x85b\u2028c\u2029\n")
@example("  begins with spaces\n\n and ends \n  \n")
@example("\ufeff\n\ttab: [\n# no comment")
def test_any_body_comes_back_as_it_was(tmp_path_factory, body):
    """Whatever stands in a body, reading the file gives it back byte for byte."""
    content = body if isinstance(body, bytes) else body.encode()
    interaction = Interaction(Request("POST", "http://x/", {}, content), Response(200, "OK", {}, content))
    path = tmp_path_factory.getbasetemp() / "any.yaml"

    path.write_bytes(layout.written([interaction], "any body").encode())

    assert layout.read(path) == [interaction]


def test_the_header_says_how_it_was_recorded(recorded):
    """The first lines name the server, the model, the client, the day, and what the recorder adds."""
    recording = recorded([({"model": "scripted-1"}, {"said": 1})], note="Script:   tests/somewhere.py")

    header = [
        line for line in recording.path.read_text(encoding="utf-8").splitlines() if line.startswith("#")
    ]
    assert [line.split(":")[0].strip("# ") for line in header[1:]] == [
        "Server",
        "Model",
        "Client",
        "Recorded",
        "Script",
    ]
    assert [word in " ".join(header) for word in ("127.0.0.1", "scripted-1", "python-httpx")] == [True] * 3


def test_other_tools_can_read_it(recorded):
    """It is vcrpy's format: vcrpy itself plays it."""
    recording = recorded([({"n": 1}, {"said": "one"})])

    with vcr.VCR(record_mode="none").use_cassette(str(recording.path)):
        assert json.loads(recording.ask({"n": 1})[1]) == {"said": "one"}


@pytest.mark.usefixtures("recorded_traffic")
@pytest.mark.parametrize("name", NAMES)
def test_recordings_of_other_projects_are_played(name):
    """Every recorded request of public projects, gzip'd or streamed, gets its recorded answer, in order."""
    path = FOLDER / f"{name}.yaml"
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    wanted = yaml.load(path.read_bytes(), Loader=loader)["interactions"]  # noqa: S506 - it is a safe one

    with use_cassette(path) as cassette:
        for each in wanted:
            asked = each["request"]
            headers = {"content-type": "application/json"}
            answer = httpx2.request(asked["method"], asked["uri"], content=asked["body"], headers=headers)
            assert answer.status_code == each["response"]["status"]["code"]
            assert answer.text.strip()

    assert cassette.unplayed == ()


@pytest.mark.parametrize(
    "text",
    [
        "!!python/object/apply:os.system ['touch HARM']",
        "version: 1\ninteractions:\n- !!python/object/apply:pathlib.Path.touch [HARM]",
        "interactions: {a: 1}",
        "[1, 2]",
        "interactions:\n- request: {method: GET}",
        "interactions: [\n",
        "interactions:\n- {request: {method: GET, uri: x, body: [1]}, response: {status: {code: 1}}}",
        "\x00",
        "",
    ],
)
def test_a_strangers_file_does_no_harm(tmp_path, monkeypatch, text):
    """Nothing in a file is run or imported: what is no cassette is refused, and the message says why (B62)."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "theirs.yaml"
    path.write_text(text, encoding="utf-8")

    with pytest.raises(CassetteUnreadableError, match=r"theirs\.yaml cannot be played"), use_cassette(path):
        pass

    assert not Path("HARM").exists()


def test_a_block_that_sends_nothing_writes_nothing(tmp_path):
    """Recording a test that makes no request leaves no empty cassette behind."""
    with use_cassette(tmp_path / "nothing.yaml", record=True):
        pass

    assert list(tmp_path.iterdir()) == []


def test_a_recording_is_replaced_whole(tmp_path):
    """A cassette is written beside its old self and then put in its place: nobody sees half a file."""
    path = tmp_path / "deep" / "down.yaml"
    with AnsweringServer() as server, use_cassette(path, record=True):
        post("httpx", server.url, {})

    assert [each.name for each in path.parent.iterdir()] == ["down.yaml"]
