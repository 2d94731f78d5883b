"""What a cassette answers: the recorded answer, once, whatever the client, with nobody listening any more."""

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor

import httpx2
import pytest

from gnl_middleware.cassettes import CassetteMissError, use_cassette
from tests.cassettes.clients import ASYNC, WAYS, post, post_async
from tests.servers.answering import Answer, AnsweringServer


@pytest.mark.parametrize("way", WAYS)
def test_what_was_recorded_is_played(recorded, way):
    """Every client gets the recorded status and text, though the server is gone."""
    recording = recorded([({"n": 1}, {"said": "one"}), ({"n": 2}, Answer(b'{"no": 2}', status=429))], way=way)

    with use_cassette(recording.path) as cassette:
        answers = [recording.ask({"n": number}, way=way) for number in (2, 1)]

    assert [(status, json.loads(text)) for status, text in answers] == [
        (429, {"no": 2}),
        (200, {"said": "one"}),
    ]
    assert (cassette.played, cassette.unplayed) == ((2, 1), ())


@pytest.mark.parametrize("way", WAYS)
def test_any_client_plays_what_another_recorded(recorded, way):
    """A recording belongs to no client: what httpx recorded, each of the others plays."""
    recording = recorded([({"n": 1}, {"said": "one"})])

    with use_cassette(recording.path):
        assert json.loads(recording.ask({"n": 1}, way=way)[1]) == {"said": "one"}


@pytest.mark.parametrize("way", WAYS)
def test_equal_requests_get_their_answers_in_order_and_one_more_is_refused(recorded, way):
    """Three answers to the same request come as 1, 2, 3; the fourth request says that three were recorded (B41)."""
    recording = recorded([({"n": 0}, {"said": number}) for number in (1, 2, 3)])

    with (
        pytest.raises(CassetteMissError, match="3 answers are recorded") as missed,
        use_cassette(recording.path),
    ):
        said = [json.loads(recording.ask({"n": 0}, way=way)[1])["said"] for _ in range(3)]
        recording.ask({"n": 0}, way=way)

    assert said == [1, 2, 3]
    assert (missed.value.reason, missed.value.recorded, missed.value.asked) == ("already_played", 3, 4)


@pytest.mark.parametrize("way", ASYNC)
async def test_requests_at_once_are_matched_by_content(recorded, way):
    """Requests that go out together get each its own answer, in whatever order they arrive."""
    recording = recorded([({"n": number}, {"said": number}) for number in range(8)])

    async with use_cassette(recording.path):
        answers = await asyncio.gather(
            *(post_async(way, recording.url + "/v1/chat", {"n": number}) for number in reversed(range(8)))
        )

    assert [json.loads(text)["said"] for _, text in answers] == list(reversed(range(8)))


def test_threads_share_a_cassette_and_no_answer_is_given_twice(recorded):
    """Equal requests from several threads get different answers, each once."""
    recording = recorded([({"n": 0}, {"said": number}) for number in range(8)])

    with use_cassette(recording.path), ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: recording.ask({"n": 0}, way="httpx2"), range(8)))

    assert sorted(json.loads(text)["said"] for _, text in answers) == list(range(8))


def test_a_body_is_compared_by_its_values(recorded):
    """The order of keys and what SDKs make up do not matter."""
    recording = recorded([({"a": 1, "b": [1, 2]}, {"said": "yes"})])

    with use_cassette(recording.path):
        status, _ = recording.ask({"b": [1, 2], "prompt_cache_key": "made up", "a": 1})

    assert status == 200


@pytest.mark.parametrize(
    "other", [{"a": 1.0}, {"a": True}, {"a": "1"}, {"a": 1, "b": None}, {"a": [1]}, {"b": 1}, {}], ids=repr
)
def test_another_value_is_another_request(recorded, other):
    """A body that differs in one value, even `1` from `1.0` or `true`, is refused."""
    recording = recorded([({"a": 1}, {"said": "yes"})])

    with (
        pytest.raises(CassetteMissError, match="no recorded request is the same"),
        use_cassette(recording.path),
    ):
        recording.ask(other)


@pytest.mark.parametrize("address", ["/v1/other", "/v1/chat?version=2"])
def test_another_address_is_another_request(recorded, address):
    """Path and query are compared, too."""
    recording = recorded([({"a": 1}, {"said": "yes"})])

    with pytest.raises(CassetteMissError), use_cassette(recording.path):
        recording.ask({"a": 1}, address=address)


def test_fields_can_be_left_out_of_the_comparison(recorded):
    """What changes with every run and means nothing is named, and then no longer compared."""
    recording = recorded(
        [({"meta": {"trace": "x", "kept": 1}, "list": [{"at": 1, "b": 2}]}, {"said": "yes"})]
    )
    ignore = ["meta.trace", "list.at"]

    with use_cassette(recording.path, ignore=ignore):
        assert recording.ask({"meta": {"trace": "y", "kept": 1}, "list": [{"at": 3, "b": 2}]})[0] == 200
    for other in ({"kept": 2, "b": 2}, {"kept": 1, "b": 3}):
        with pytest.raises(CassetteMissError), use_cassette(recording.path, ignore=ignore):
            recording.ask({"meta": {"kept": other["kept"]}, "list": [{"b": other["b"]}]})


def test_an_ordered_cassette_does_not_go_back(recorded):
    """With `ordered=True` an answer that lies behind the last one given is refused, and says why."""
    recording = recorded([({"n": number}, {"said": number}) for number in (1, 2)])

    with pytest.raises(CassetteMissError) as missed, use_cassette(recording.path, ordered=True):
        recording.ask({"n": 2})
        recording.ask({"n": 1})

    assert missed.value.reason == "out_of_order"


@pytest.mark.parametrize("way", ["httpx2", "httpx2-async"])
def test_a_decorator_uses_it_anew_in_each_call(recorded, way):
    """A decorated function or coroutine plays the cassette from its beginning each time it is called."""
    recording = recorded([({"n": 1}, {"said": "one"})])

    @use_cassette(recording.path)
    def ask():
        return post(way, recording.url + "/v1/chat", {"n": 1})[0]

    @use_cassette(recording.path)
    async def ask_async():
        return (await post_async("httpx2-async", recording.url + "/v1/chat", {"n": 1}))[0]

    assert [ask(), ask(), asyncio.run(ask_async()), asyncio.run(ask_async())] == [200] * 4
    assert asyncio.iscoroutinefunction(ask_async)


def test_cassettes_nest(recorded, tmp_path):
    """The innermost cassette answers; after it the outer one goes on."""
    recording = recorded([({"n": 1}, {"said": "one"}), ({"n": 1}, {"said": "two"})])

    with use_cassette(recording.path):
        recording.ask({"n": 1})
        with pytest.raises(CassetteMissError), use_cassette(tmp_path / "empty.yaml"):
            recording.ask({"n": 1})
        assert json.loads(recording.ask({"n": 1})[1]) == {"said": "two"}


def test_the_environment_says_when_to_record(tmp_path, monkeypatch):
    """`GNL_RECORD=1` records what is otherwise played; the old recording is replaced, not added to."""
    path = tmp_path / "asked.yaml"
    for said in (b'"first"', b'"second"'):
        with AnsweringServer([Answer(said)]) as server:
            monkeypatch.setenv("GNL_RECORD", "1")
            with use_cassette(path) as cassette:
                post("httpx", f"http://127.0.0.1:{server.port}/x", {})
            assert cassette.recording
            monkeypatch.delenv("GNL_RECORD")

    with use_cassette(path):
        assert httpx2.post("http://127.0.0.1:1/x", json={}, timeout=5).json() == "second"


def test_a_recording_that_failed_half_way_is_not_written(tmp_path):
    """A block that raised leaves no half recording, and an older one as it was."""
    path = tmp_path / "half.yaml"
    with AnsweringServer() as server, pytest.raises(ZeroDivisionError), use_cassette(path, record=True):
        post("httpx", server.url, {})
        raise ZeroDivisionError

    assert not path.exists()


def test_what_was_asked_can_be_looked_at(recorded):
    """A test sees each request, refused ones included, without secrets, as it comes and afterwards."""
    recording, seen = recorded([({"n": 1}, {"said": "one"})]), []

    with (
        pytest.raises(CassetteMissError),
        use_cassette(recording.path, on_request=seen.append) as cassette,
    ):
        recording.ask({"n": 1}, authorization="Bearer a-key")
        recording.ask({"n": 2})

    assert [json.loads(each.body) for each in cassette.requests] == [{"n": 1}, {"n": 2}]
    assert seen == list(cassette.requests)
    assert "authorization" not in cassette.requests[0].headers
