"""What a recording must not hold: allow-listed headers, scrubbed queries and bodies, and a scan before it is written."""

import json

import httpx2
import pytest

from gnl_middleware.cassettes import CassetteSecretError, use_cassette
from tests.servers.answering import Answer, AnsweringServer

KEY = "sk-" + "a1B2" * 8
SECRETS = {
    "query": "AIza" + "x" * 35,
    "header": "header-secret-12345",
    "body": KEY,
    "cookie": "cookie-secret-12345",
    "organisation": "org-" + "s3cret" * 3,
    "request id": "req_0123456789abcdef",
    "password": "hunter2-hunter2",
}


def send(url):
    """The request of B43: secrets in the query, a header of its own, the body, and a password in the address."""
    return httpx2.post(
        f"{url.replace('http://', 'http://me:' + SECRETS['password'] + '@')}/v1/chat?key={SECRETS['query']}&alt=sse",
        json={
            "api_key": SECRETS["body"],
            "tools": [{"headers": {"Authorization": SECRETS["header"]}}],
            "n": 1,
        },
        headers={"X-Api-Key": SECRETS["header"]},
        timeout=5,
    )


@pytest.fixture
def answered():
    """The answer of B43: a cookie, an organisation and a request id beside the content."""
    return Answer(
        b'{"said": "hello", "organization": "%s"}' % SECRETS["organisation"].encode(),
        headers={
            "set-cookie": f"__cf_bm={SECRETS['cookie']}; path=/",
            "openai-organization": SECRETS["organisation"],
            "x-request-id": SECRETS["request id"],
        },
    )


def test_no_secret_is_written_and_matching_still_works(tmp_path, answered):
    """None of the seven secrets is in the file by default, and the same request, with its secrets, is found again (B43)."""
    path = tmp_path / "secrets.yaml"
    with AnsweringServer([answered]) as server:
        with use_cassette(path, record=True):
            assert send(server.url).json()["organization"] == SECRETS["organisation"]
        url = server.url

    text = path.read_text(encoding="utf-8")
    assert [name for name, secret in SECRETS.items() if secret in text] == []
    with use_cassette(path):
        assert send(url).json() == {"said": "hello", "organization": "scrubbed"}


LEAKS = {
    "a key in the prompt": ({"messages": [{"role": "user", "content": f"use {KEY}"}]}, b"{}", "an OpenAI"),
    "a key in the answer": ({}, json.dumps({"choices": [KEY]}).encode(), "an OpenAI"),
    "an e-mail address": ({"messages": ["write to ada@lovelace.io"]}, b"{}", "an e-mail address"),
    "an organisation": ({}, b'{"choices": ["org-abcdefghijklmnop1234"]}', "an organisation"),
    "a token": ({"input": "Bearer abcdefghijklmnop123456"}, b"{}", "a bearer token"),
    "a cookie": ({"input": "sessionid=0123456789abcdef"}, b"{}", "a cookie"),
    "a web token": ({"input": "eyJhbGciOiJI.eyJzdWIiOiIx.c2lnbmF0dXJl"}, b"{}", "a JSON web token"),
    "a private key": ({"input": "-----BEGIN RSA PRIVATE KEY-----"}, b"{}", "a private key"),
    "a database": ({"input": "postgresql://app:pass1234@db/prod"}, b"{}", "a password in an address"),
    "a streamed key": (
        {},
        Answer(b'data: {"delta": "' + KEY.encode() + b'"}\n\n', "text/event-stream"),
        "an OpenAI",
    ),
}


def record(path, body, answer, **options):
    answers = [answer if isinstance(answer, Answer) else Answer(answer)]
    headers = {"authorization": "Bearer the-key-of-this-client"}
    with AnsweringServer(answers) as server, use_cassette(path, record=True, **options):
        httpx2.post(server.url, json=body, headers=headers, timeout=5)


@pytest.mark.parametrize(("body", "answer", "kind"), LEAKS.values(), ids=LEAKS)
def test_what_is_left_is_refused(tmp_path, body, answer, kind):
    """Where a person or a model wrote a secret, no file is written, and the message says where it stands, not what it is."""
    path = tmp_path / "leak.yaml"

    with pytest.raises(CassetteSecretError, match=f"interaction 1, re(quest|sponse) body: {kind}") as refused:
        record(path, body, answer)

    assert list(tmp_path.iterdir()) == []
    assert KEY not in str(refused.value)
    assert "lovelace" not in str(refused.value)


def test_the_clients_own_key_is_known(tmp_path):
    """A key of no known shape is found all the same, where the client sent it as its key."""
    with pytest.raises(CassetteSecretError, match="a credential of this process"):
        record(tmp_path / "leak.yaml", {"input": "the-key-of-this-client"}, b"{}")


def test_keys_of_the_environment_are_known(tmp_path, monkeypatch):
    """Keys that the environment holds are found wherever they stand."""
    monkeypatch.setenv("SOME_PROVIDER_API_KEY", "odd shape 1234")

    with pytest.raises(CassetteSecretError, match="a credential of this process"):
        record(tmp_path / "leak.yaml", {}, b'{"choices": ["odd shape 1234"]}')


def test_a_secret_can_be_replaced(tmp_path):
    """`replace` writes a placeholder, compares with it, and gives it to whoever plays."""
    path, body = tmp_path / "replaced.yaml", {"input": "write to ada@lovelace.io"}
    answer = b'{"choices": ["written to ada@lovelace.io"]}'
    options = {"replace": {"ada@lovelace.io": "ada@example.com"}}

    with AnsweringServer([Answer(answer)]) as server:
        with use_cassette(path, record=True, **options):
            httpx2.post(server.url, json=body, timeout=5)
        url = server.url

    assert "lovelace" not in path.read_text(encoding="utf-8")
    with use_cassette(path, **options):
        assert httpx2.post(url, json=body, timeout=5).json() == {"choices": ["written to ada@example.com"]}


@pytest.mark.parametrize("options", [{"allow": ["ada@lovelace.io"]}, {}], ids=["allowed", "reserved"])
def test_what_is_harmless_passes(tmp_path, options):
    """What a person has called harmless is written; so are addresses that can belong to nobody."""
    mail = "ada@lovelace.io" if options else "ada@shop.example.com or bo@desk.example"

    record(tmp_path / "mail.yaml", {"input": mail}, b"{}", **options)

    assert mail in (tmp_path / "mail.yaml").read_text(encoding="utf-8")


def test_what_agents_work_on_is_not_rewritten(tmp_path):
    """A tool's argument that is called `password` is played as the model gave it, or the agent would do something else."""
    answer = {"content": [{"type": "tool_use", "input": {"password": "mellon"}}], "organization": "acme"}

    record(
        tmp_path / "tool.yaml",
        {"tools": [{"properties": {"password": {"type": "string"}}}]},
        json.dumps(answer).encode(),
    )

    text = (tmp_path / "tool.yaml").read_text(encoding="utf-8")
    assert "mellon" in text
    assert "acme" not in text


def test_the_errors_of_providers_name_no_organisation(tmp_path):
    """The text of a 429 names the organisation; nobody works on that text, so it is scrubbed and not refused."""
    error = b'{"error": {"message": "Rate limit reached in organization org-abcdefghijklmnop1234"}}'

    record(tmp_path / "limited.yaml", {}, Answer(error, status=429, headers={"retry-after": "1"}))

    text = (tmp_path / "limited.yaml").read_text(encoding="utf-8")
    assert "org-" not in text
    assert "retry-after" in text
