"""Values that others have lost, each from a public report, through a journal on every database: what comes back is right."""

import collections
import enum
import json
import math
import pickle
import threading
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from langchain_core.messages import AIMessage, ToolMessage
from pydantic import BaseModel

import gnl_langchain
from gnl_middleware import Journal, JournalCorruptError, UnserializableValueError, codec, journaled, safe
from tests.trust import stored
from tests.trust.order import RUN
from tests.values.test_codec import same

assert gnl_langchain  # registers LangChain's messages


class Colour(enum.Enum):
    RED = "red"


class Model(BaseModel):
    colour: Colour
    inner: "Model | None" = None


@dataclass
class Point:
    x: int


LOADED = {"lc": 1, "type": "constructor", "id": ["os", "system"], "kwargs": {"command": "touch sprung"}}
SECRET = {"lc": 1, "type": "secret", "id": ["PATH"]}
REPORTED: dict[str, Any] = {
    "B11 a zero byte": "a\x00b",
    "B11 a zero byte inside": {"s": "\x00"},
    "B11 its escape as text": "\\u0000",
    "B12 floats that JSON lacks": {"score": math.nan, "max": math.inf, "min": -math.inf, "z": -0.0},
    "B13 a model with an enum in a nested model": Model(colour=Colour.RED, inner=Model(colour=Colour.RED)),
    "B13 a dataclass": Point(7),
    "B13 an enum": Colour.RED,
    "B14 models in containers": {"m": [Model(colour=Colour.RED)], "t": (Model(colour=Colour.RED),)},
    "B14 a set, bytes, a tuple, a decimal": {
        "set": {1, 2},
        "b": b"\xff",
        "tup": (1, 2),
        "dec": Decimal("1.10"),
    },
    "B14 keys that collide as texts": {"k": {1: "a", "1": "b"}},
    "B14 a date and an id": [datetime(2024, 2, 29, 1, 2, 3, 4, tzinfo=UTC), UUID(int=7)],
    "B15 a set in an artifact": ToolMessage("ok", tool_call_id="c1", artifact={"s": {1}, 1: (2,)}),
    "B49 numbers beside each other": [2**53, 2**53 + 1, 1, 1.0, True, 0.0, -0.0, "\u00e9", "e\u0301"],
    "B59 what a loader takes for a secret": SECRET,
    "B59 what a loader takes for a call": LOADED,
    "B59 the same in a reply": AIMessage(
        "", additional_kwargs={"x": SECRET}, response_metadata={"y": LOADED}
    ),
    "B59 the same in an artifact": ToolMessage("ok", tool_call_id="c1", artifact=[SECRET, LOADED]),
    "B62 pickled bytes": pickle.dumps({"a": 1}),
}


@pytest.mark.parametrize("name", REPORTED)
def test_what_was_reported_comes_back(url, open_journal, name, monkeypatch, tmp_path):
    """The value of each report is the same live, on replay, and in a later process's journal: by value and by type."""
    monkeypatch.chdir(tmp_path)
    value, ran, given = REPORTED[name], [], []

    @journaled(replay=safe)
    def get() -> Model | Point | Colour | None:
        ran.append(1)
        return value

    for _ in range(2):
        with open_journal(url) as journal, journal.run(RUN, replay="strict"):
            given.append(get())

    assert [same(each, value) for each in given] == [True, True]
    assert repr(given) == repr([value, value])
    assert ran == [1]
    assert not (tmp_path / "sprung").exists()


REFUSED: dict[str, tuple[Any, str]] = {
    "B15 a lock in an artifact": (
        lambda: ToolMessage("ok", tool_call_id="c1", artifact={"a": [threading.RLock()]}),
        "artifact.a[0]",
    ),
    "B14 an object in a tuple": (lambda: {"m": [(1, object())]}, "$.m[0][1]"),
    "B13 a class that nothing declares": (lambda: [collections.OrderedDict(a=1)], "$[0]"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_kept_is_refused_everywhere(url, open_journal, name):
    """The answer at write time is the same on every database: refused with the path, done, and never run again."""
    make, path = REFUSED[name]
    ran = []

    @journaled(replay=safe)
    def get():
        ran.append(1)
        return make()

    for _ in range(2):
        with (
            pytest.raises(UnserializableValueError) as raised,
            open_journal(url) as journal,
            journal.run(RUN),
        ):
            get()
        assert path in raised.value.path

    assert ran == [1]


@pytest.mark.parametrize(
    "body", [pickle.dumps({"a": 1}), b"{'a': 1}", b"\x80\x04.", b"NaN", b'{"a":1} {"b":2}']
)
def test_another_format_is_refused(file_url, open_journal, body):
    """B62: a payload in another format, pickled ones too, is damage that names the step; nothing of it is run."""
    from gnl_middleware.storage import protection, rows

    journal = open_journal(file_url)
    with journal.run(RUN) as run:
        run.value("moment", lambda: "noon")
    digest = codec.content_hash(body)
    with stored.connected(file_url) as connection:
        execute = connection.execute
        put = "INSERT INTO gnl_blobs (run_id, hash, compressed, body) VALUES (:run, :hash, 0, :body)"
        execute(stored.sa.text(put), {"run": RUN, "hash": digest, "body": body})
        cells = dict(execute(stored.sa.text("SELECT * FROM gnl_steps")).mappings().one()) | {
            "value_hash": digest
        }
        seal = protection.NONE.seal("outcome", rows._outcome_cells(cells, RUN, cells["key"], protection.NONE))
        change = "UPDATE gnl_steps SET value_hash = :hash, outcome_seal = :seal"
        execute(stored.sa.text(change), {"hash": digest, "seal": seal})

    with pytest.raises(JournalCorruptError, match="moment"), journal.run(RUN) as run:
        run.value("moment", lambda: "noon")


@pytest.mark.parametrize(
    "run_id", ["a') = 1 OR 1=1 --", 'x"; DROP TABLE gnl_runs; --', "100%s %(name)s", "r" * 512, "ä\u2028'"]
)
def test_what_is_asked_for_is_never_part_of_a_statement(url, open_journal, run_id):
    """B61: a run id, a status or a step's name with quotes and signs finds that run only, and changes no other."""
    journal = open_journal(url)
    for each in (RUN, run_id):
        with journal.run(each) as run:
            run.value("it's %s", lambda: 1)

    assert [len(journal.steps(each)) for each in (RUN, run_id, run_id[:-1])] == [1, 1, 0]
    assert [record.run_id for record in journal.runs(like=run_id)] == [run_id]
    assert journal.verify_integrity(run_id).covered == 2
    assert {record.run_id for record in journal.runs()} == {RUN, run_id}


@pytest.mark.parametrize("schema", ['a"b', "a'; DROP SCHEMA public; --", "100%"])
def test_a_name_of_a_schema_is_quoted(request, schema):
    """B61: the name of a schema is quoted, whatever stands in it."""
    from tests.postgres.server import create_database

    with Journal(create_database(request.getfixturevalue("server_url")), schema=schema) as journal:
        with journal.run(RUN) as run:
            run.value("moment", lambda: "noon")
        assert [step.value for step in journal.steps(RUN)] == ["noon"]


def test_stored_text_is_strict_json(file_url, open_journal):
    """B12: what is stored is strict JSON that any reader takes, without NaN or infinity in it."""
    journal = open_journal(file_url)
    with journal.run(RUN) as run:
        for place, value in enumerate(REPORTED["B12 floats that JSON lacks"].values()):
            run.value(f"v{place}", lambda value=value: {"value": value})

    def refuse(constant):
        raise AssertionError(constant)

    for (body,) in stored.found(file_url, "SELECT body FROM gnl_blobs"):
        json.loads(body, parse_constant=refuse)
