"""An agent with a redacted, encrypted and sealed journal dies at every point of every step, and goes on as any other."""

import sqlite3
import zlib
from contextlib import closing

import pytest
from agents import function_tool

from gnl_middleware import Encryption, never
from gnl_middleware.testing import POINTS, EffectLog, crash_matrix
from gnl_openai_agents import DurableRunner
from tests.openai_agents import preloaded
from tests.openai_agents.scripted import QUIET, agent, call, said, turns
from tests.toolkit.support_agents import running, support

SECRETS = ("refund order", "booked 7", "mailed 7", "All is", "book it", "refunded 7", "the customer")
SLICE = ["after_body", "after_outcome"]
assert preloaded  # the workers are forked from here


def taken_out(text):
    """What these agents say and are told, without what is told in it."""
    for secret in SECRETS:
        text = text.replace(secret, "[out]")
    return text


PROTECTIONS = {
    "redacted": {"redact": taken_out},
    "all": {
        "redact": taken_out,
        "encryption": Encryption(current="k", key=lambda _: bytes(32)),
        "integrity_key": bytes(range(32)),
    },
}
CASES = pytest.mark.parametrize(
    ("protection", "points"),
    [
        ("all", SLICE),
        pytest.param("all", list(POINTS), marks=pytest.mark.long),
        pytest.param("redacted", list(POINTS), marks=pytest.mark.long),
    ],
    ids=["slice", "all", "redacted"],
)


@pytest.fixture
def log(tmp_path):
    """What the tools did."""
    return EffectLog(tmp_path / "effects.jsonl")


def check(matrix, path, points):
    """Safe in every cell; and nothing that was taken out is in the file."""
    matrix.assert_safe()
    assert len(matrix.cells) >= len(points) * len(matrix.clean.steps)
    assert all(cell.model_calls_repeated == 0 for cell in matrix.cells)
    told = path.read_bytes()
    with closing(sqlite3.connect(path)) as connection:
        for compressed, body in connection.execute("SELECT compressed, body FROM gnl_blobs"):
            told += zlib.decompress(body) if compressed and body[:1] != b"\x00" else body
    assert [secret for secret in SECRETS if secret.encode() in told] == []


@CASES
@pytest.mark.parametrize("case", [("parallel", "ainvoke"), ("sequential", "stream")], ids=" ".join)
def test_an_agent_of_langchain(log, tmp_path, protection, points, case):
    """Wherever its worker dies, a LangChain agent does each thing once and says the same, and nothing leaks on the way."""
    path, (shape, way) = tmp_path / "runs.db", case

    matrix = crash_matrix(
        support(log, shape),
        running(way),
        log,
        points=points,
        journal=path,
        protection=PROTECTIONS[protection],
    )

    assert matrix.clean.effects == {"book": 1, "mail": 1}
    assert matrix.clean.reply.startswith("[out] done.")
    check(matrix, path, points)


@CASES
@pytest.mark.parametrize("way", ["run", "run_streamed"])
def test_an_agent_of_the_agents_sdk(log, tmp_path, protection, points, way):
    """The same for an agent of the OpenAI Agents SDK, run and streamed."""
    path = tmp_path / "runs.db"

    def refund(order: str) -> str:
        log.note("refund")
        return f"refunded {order}"

    def build():
        script = turns([call("refund", order="7")], [said("Tell the customer that it is done.")])
        return agent(script, function_tool(refund))

    async def run(built, run_id, journal):
        runner = DurableRunner(journal, policies={"refund": never})
        if way == "run":
            return (await runner.run(built, "refund order 7", run_id=run_id, run_config=QUIET)).final_output
        stream = runner.run_streamed(built, "refund order 7", run_id=run_id, run_config=QUIET)
        async for _ in stream.stream_events():
            pass
        return stream.final_output

    matrix = crash_matrix(build, run, log, points=points, journal=path, protection=PROTECTIONS[protection])

    assert matrix.clean.effects == {"refund": 1}
    assert matrix.clean.reply == "Tell [out] that it is done."
    check(matrix, path, points)
