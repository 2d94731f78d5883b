"""A server, a cassette that it was recorded into, and the server gone."""

import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from gnl_middleware.cassettes import use_cassette
from tests.cassettes.clients import post
from tests.servers.answering import Answer, AnsweringServer


@dataclass
class Recording:
    """A cassette, and the address that it answers for; nobody listens there any more."""

    path: Path
    url: str

    def ask(self, body, *, way="httpx", address="/v1/chat", **headers):
        """The answer to a JSON body, as status and text."""
        return post(way, self.url + address, body, headers)


@pytest.fixture
def recorded(tmp_path):
    """Record an exchange of bodies and answers; gives the cassette."""

    def record(exchanges, *, way="httpx", **options):
        path = tmp_path / "cassettes" / "recorded.yaml"
        answers = [_answer(answer) for _, answer in exchanges]
        with AnsweringServer(answers) as server:
            with use_cassette(path, record=True, **options):
                for body, _ in exchanges:
                    post(way, server.url + "/v1/chat", body, {"authorization": "Bearer a-key-that-is-secret"})
            assert len(server.asked) == len(exchanges)
            return Recording(path, server.url)

    return record


def _answer(answer):
    return answer if isinstance(answer, Answer) else Answer(json.dumps(answer).encode())
