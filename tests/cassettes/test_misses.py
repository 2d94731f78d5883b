"""What a person is told when a request is not recorded: why, which, what is nearest, and how to fix it."""

import pickle

import httpx2
import pytest

from gnl_middleware.cassettes import (
    CassetteMissError,
    CassetteSecretError,
    CassetteUnreadableError,
    NetworkRefusedError,
    use_cassette,
)

CONVERSATION = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "What is the weather?"},
]


def miss(recording, body, **options):
    with pytest.raises(CassetteMissError) as missed, use_cassette(recording.path):
        recording.ask(body, **options)
    return missed.value


def test_a_changed_prompt_is_shown_against_the_nearest_recording(recorded):
    """The message names the reason, the request, the nearest interaction with a short difference, and the ways to fix it."""
    other = [{"role": "user", "content": "Something else entirely"}]
    recording = recorded(
        [
            ({"model": "m", "messages": other}, {"said": 1}),
            ({"model": "m", "messages": CONVERSATION}, {"said": 2}),
        ]
    )

    changed = [CONVERSATION[0], {"role": "user", "content": "What is the weather today?"}]
    error = miss(recording, {"model": "m", "messages": changed})

    assert (error.reason, error.nearest, error.differs) == ("no_match", 2, ("body",))
    message = str(error)
    assert message.startswith("No recorded answer, and nothing was sent (no_match)")
    assert f"POST {recording.url}/v1/chat" in message
    assert f"Cassette: {recording.path} (2 recorded, 0 played)" in message
    assert '-   "content": "What is the weather?",' in message
    assert '+   "content": "What is the weather today?",' in message
    assert "GNL_RECORD=1" in message
    assert "run.now()" in message
    assert len(message.splitlines()) < 30


def test_a_long_text_is_shown_where_it_differs(recorded):
    """Of a long prompt, the place that changed is shown, not its beginning."""
    prompt = "word " * 2000
    recording = recorded([({"prompt": prompt + "Monday" + prompt}, {"said": 1})])

    error = miss(recording, {"prompt": prompt + "Sunday" + prompt})

    assert "Monday" in error.diff
    assert "Sunday" in error.diff
    assert len(str(error)) < 3000


def test_each_reason_has_its_word(recorded):
    """The reason is a stable word, for programs, and its own advice, for people."""
    recording = recorded([({"n": 1}, {"said": 1})])
    absent = recording.path.with_name("absent.yaml")

    elsewhere = miss(recording, {"n": 1}, address="/v1/embeddings")
    with pytest.raises(CassetteMissError) as nothing_similar, use_cassette(recording.path):
        httpx2.get("https://api.example.com/else")
    with pytest.raises(CassetteMissError) as no_cassette, use_cassette(absent):
        recording.ask({"n": 1})

    assert (elsewhere.reason, elsewhere.differs) == ("no_match", ("path",))
    assert nothing_similar.value.reason == "nothing_similar"
    assert nothing_similar.value.nearest is None
    assert no_cassette.value.reason == "no_cassette"
    assert f"there is no cassette {absent}" in str(no_cassette.value)


def test_no_secret_is_in_a_message(recorded):
    """Neither a key in the query nor one in the body reaches the output of a test."""
    recording = recorded([({"n": 1}, {"said": 1})])

    error = miss(
        recording,
        {"api_key": "sk-secret-secret-secret"},
        address="/v1/chat?key=AIzaSecret",
        authorization="Bearer s3cret",
    )

    assert [word for word in ("sk-secret", "AIzaSecret", "s3cret") if word in str(error)] == []


ERRORS = [
    CassetteMissError(
        reason="already_played", path="a.yaml", method="POST", uri="http://x/", recorded=3, asked=4
    ),
    NetworkRefusedError(target="x:1", path="a.yaml"),
    CassetteSecretError(path="a.yaml", found=["interaction 1, request body: a cookie"]),
    CassetteUnreadableError(path="a.yaml", problem="it is no plain YAML"),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_errors_survive_a_pickle(error):
    """Test runners send errors between processes: message and facts arrive."""
    again = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own bytes

    assert (type(again), str(again), vars(again)) == (type(error), str(error), vars(error))
