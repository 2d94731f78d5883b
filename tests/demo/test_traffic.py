"""The recorded traffic: what it answers, what it refuses, and what it may hold."""

import json

import httpx2
import pytest
import yaml

from gnl_langchain.demo.traffic import RECORDING, recorded_traffic
from gnl_middleware.cassettes import CassetteMissError
from tests.record_cassettes import record_demo


@pytest.fixture(scope="module")
def interactions():
    return yaml.safe_load(RECORDING.read_text(encoding="utf-8"))["interactions"]


@pytest.fixture
def log(tmp_path):
    return tmp_path / "requests.jsonl"


def ask(interaction, **changes):
    """Send a recorded request, or one with other values in its body."""
    body = json.loads(interaction["request"]["body"]) | changes
    return httpx2.post(interaction["request"]["uri"], content=json.dumps(body), timeout=5)


def test_a_recorded_request_gets_its_recorded_answer(interactions, log):
    """The client receives the answer that the recording holds for its request."""
    with recorded_traffic(log):
        answers = [ask(interaction).json() for interaction in interactions[:4]]

    assert answers == [json.loads(each["response"]["body"]["string"]) for each in interactions[:4]]


def test_the_order_of_keys_does_not_matter(interactions, log):
    """A body that says the same in another order of keys is the same request."""
    request = interactions[0]["request"]
    turned = dict(reversed(json.loads(request["body"]).items()))

    with recorded_traffic(log):
        answer = httpx2.post(request["uri"], content=json.dumps(turned), timeout=5)

    assert answer.status_code == 200


@pytest.mark.parametrize("changes", [{"stream": 0}, {"temperature": 1}, {"model": "another"}])
def test_another_body_is_refused(interactions, log, changes):
    """A request that differs in one value, even `false` from `0`, is refused, and still logged."""
    with pytest.raises(CassetteMissError, match="no recorded request is the same"), recorded_traffic(log):
        ask(interactions[0], **changes)

    (sent,) = log.read_text().splitlines()
    assert json.loads(json.loads(sent)) == json.loads(interactions[0]["request"]["body"]) | changes


def test_an_answer_is_given_once(interactions, log):
    """The same request a second time is refused: a model call that is repeated cannot go unnoticed."""
    with pytest.raises(CassetteMissError, match="already_played"), recorded_traffic(log):
        ask(interactions[0])
        ask(interactions[0])

    assert len(log.read_text().splitlines()) == 2


def test_answers_are_given_in_their_order_only(interactions, log):
    """A resumed worker may begin in the middle, but no request can go back to before one that was answered."""
    with pytest.raises(CassetteMissError, match="out_of_order"), recorded_traffic(log):
        ask(interactions[1])
        ask(interactions[0])


def test_the_recording_is_what_its_script_records(tmp_path):
    """Recording again gives the same traffic: the agent, the script and the recording have not drifted apart."""
    again = tmp_path / "again.yaml"

    record_demo(again)

    assert yaml.safe_load(again.read_text()) == yaml.safe_load(RECORDING.read_text(encoding="utf-8"))


def test_the_recording_says_where_it_comes_from_and_holds_no_secrets(interactions):
    """The header names server, model, date and script; only harmless headers are kept."""
    text = RECORDING.read_text(encoding="utf-8")
    header = [line for line in text.splitlines() if line.startswith("#")]
    kept = {name for each in interactions for side in each.values() for name in side["headers"]}

    assert [
        word in " ".join(header) for word in ("Server:", "Model:", "Recorded:", "tests/record_cassettes.py")
    ] == [True] * 4
    assert kept == {"accept", "content-type"}
    assert "no-key-needed" not in text
