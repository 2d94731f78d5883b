"""What a tool gave stands in the journal once, though the model is told it, too; and it is read back as it was."""

from functools import partial

import pytest

from gnl_middleware import Encryption, Journal
from gnl_middleware.codec import content_hash
from gnl_middleware.storage import operations
from gnl_middleware.storage.protocol import Payload, Source
from tests.splicing.telling import RUN, Agent, model_keys, spliced, stored, text


@pytest.fixture
def journal(place):
    """A journal on a file, and one on a server."""
    with Journal(place) as opened:
        yield opened


def weight(journal, run_id=RUN):
    """Bytes that the payloads of a run take."""
    return sum(row[2] for row in stored(journal, run_id))


def test_told_result_is_stored_once(journal):
    """Ten results of which the model is told take the place of ten, not of twenty."""
    given = Agent().run(journal, 10)

    assert len(spliced(journal)) == 10
    assert weight(journal) < 1.2 * sum(map(len, given))


def test_all_is_read_back(journal, place):
    """A second attempt asks the same, nothing runs, and each step is shown with what it was asked and gave."""
    first = Agent()
    given = first.run(journal, 5)

    again = Agent()
    assert again.run(journal, 5, replay="strict") == given
    assert again.ran == []
    told = [message for step in journal.steps(RUN) if step.kind == "model" for message in step.arguments]
    assert told == first.told[: len(told)]
    assert journal.verify_integrity(RUN).problems == ()


def test_one_step_alone(journal):
    """One step that is read without its run is whole."""
    Agent().run(journal, 2)
    whole = {step.key: step for step in journal._database().load(RUN, 0.0)}

    for digest, key in model_keys(journal).items():
        step = journal._database().step(RUN, key, 0.0)
        assert step == whole[key]
        assert content_hash(step.arguments) == digest


def test_several_calls_of_a_reply(journal):
    """Of several results that the model is told at once the longest is stored once; all of them come back."""
    agent = Agent(given=lambda number, _told: text(number, 500 + 2000 * number))
    given = agent.run(journal, 1, calls=3)

    ((_, source),) = spliced(journal)
    assert source in {
        content_hash(step.value)
        for step in journal._database().load(RUN, 0.0)
        if step.value and text(2, 4500).encode() in step.value
    }
    assert Agent().run(journal, 1, calls=3) == given


@pytest.mark.parametrize(
    "value",
    [
        "short",
        'a quoted "text"\nof two lines \\ and a ü ' * 50,
        [{"page": text(1), "of": 2}, {"page": text(2), "of": 2}],
        {"only": list(range(1000))},
        ("tuple", text(3), b"bytes" * 200),
        None,
    ],
    ids=["short", "escaped", "several", "numbers", "tagged", "nothing"],
)
def test_results_of_every_shape(journal, value):
    """Whatever a tool gives comes back, whether or not it is stored once."""
    agent = partial(Agent, given=lambda _number, _told: value)
    agent().run(journal, 2)

    again = agent()
    assert again.run(journal, 2) == [value, value]
    assert again.ran == []


def test_value_that_is_what_the_model_was_told(journal):
    """A tool that gives exactly what is stored spliced: nothing is spliced from that, and all of it is read back."""
    agent = partial(Agent, given=lambda number, told: text(0) if number == 0 else told[1:3])
    given = agent().run(journal, 3)

    loaded = journal._database().load(RUN, 0.0)
    sources = {source for _, source in spliced(journal)}
    assert any(step.kind == "tool" and step.value_hash in dict(spliced(journal)) for step in loaded)
    assert sources.isdisjoint(dict(spliced(journal)))
    again = agent()
    assert again.run(journal, 3) == given
    assert again.ran == []


def put(journal, *payloads):
    """Store payloads in one transaction; gives how each is stored, by hash."""
    journal._database().write(lambda connection: operations.put_payloads(connection, payloads))
    return {digest: how for digest, how, _, _ in stored(journal, payloads[0].run_id)}


def payload_of(body, *sources):
    """A payload with its hash."""
    return Payload(RUN, content_hash(body), body, sources)


WHOLE = f'"{text(1)}"'.encode()
TOLD = b'[{"content":' + WHOLE + b"}]"
TOLD_AGAIN = b'[{"once more":' + TOLD + b"}]"


def test_in_one_transaction(journal):
    """Of what comes in one transaction nothing is spliced from another, whatever their order: what is there already counts."""
    pair = payload_of(TOLD, Source(content_hash(WHOLE), WHOLE)), payload_of(WHOLE)

    assert put(journal, *pair) == {content_hash(TOLD): 1, content_hash(WHOLE): 1}


def test_what_is_gone_is_no_source(journal):
    """A worker that only fell silent, whose run was erased meanwhile, stores whole what it would have spliced."""
    how = put(journal, payload_of(TOLD, Source(content_hash(WHOLE), WHOLE)))

    assert how == {content_hash(TOLD): 1}


def test_what_is_spliced_is_no_source(journal):
    """There are no chains, and no circles: only what is stored whole is a source."""
    put(journal, payload_of(WHOLE))
    assert put(journal, payload_of(TOLD, Source(content_hash(WHOLE), WHOLE)))[content_hash(TOLD)] == 2

    how = put(journal, payload_of(TOLD_AGAIN, Source(content_hash(TOLD), TOLD)))

    assert how[content_hash(TOLD_AGAIN)] == 1
    assert put(journal, payload_of(WHOLE, Source(content_hash(TOLD), TOLD)))[content_hash(WHOLE)] == 1


def test_encrypted_and_redacted(place):
    """What is taken out is in neither, what is hidden is hidden in both, and both are read back."""
    options = {
        "encryption": Encryption(current="one", key={"one": bytes(32)}.__getitem__),
        "redact": lambda told: told.replace("4711", "[card]"),
    }
    agent = partial(Agent, given=lambda number, _told: f"4711 {text(number)}")
    with Journal(place, **options) as journal:
        given = agent().run(journal, 3)
        again = agent()
        assert again.run(journal, 3) == given
        assert again.ran == []
        assert len(spliced(journal)) == 3
        assert all(result.startswith("[card]") for result in given)
