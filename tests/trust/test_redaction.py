"""Redaction: what must not be kept reaches neither the journal nor, after that, the program: live and replay are equal."""

import re
from datetime import UTC, datetime

import pytest

from gnl_middleware import (
    Done,
    Failed,
    RecordedError,
    SideEffectRetryBlockedError,
    UnserializableValueError,
    codec,
    journaled,
    never,
    safe,
)
from gnl_middleware.errors import DivergenceError
from tests.langchain.driving import drive
from tests.langchain.scripted import ScriptedModel, calling, said, turns
from tests.trust import stored
from tests.trust.order import RUN, SECRET, Order, decided


def redact(text):
    """Keys of a payment service."""
    return re.sub(r"sk-live-\d+", "[key]", text)


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        (f"pay with {SECRET}", "pay with [key]"),
        ({SECRET: [SECRET, (SECRET, 7)]}, {SECRET: ["[key]", ("[key]", 7)]}),
        ({1: SECRET, (SECRET,): SECRET}, {1: "[key]", (SECRET,): "[key]"}),
        ({SECRET, "sk-live-1", "b"}, {"[key]", "b"}),
        (frozenset({SECRET}), frozenset({"[key]"})),
        ([f"\ud800{SECRET}"], ["\ud800[key]"]),
        (
            [SECRET.encode(), datetime(2024, 1, 1, tzinfo=UTC), 2**70, 1.5],
            [SECRET.encode(), datetime(2024, 1, 1, tzinfo=UTC), 2**70, 1.5],
        ),
        ({"$gnl": "tuple", "value": SECRET}, {"$gnl": "tuple", "value": "[key]"}),
    ],
    ids=["text", "nested", "keys", "a set", "a frozenset", "a surrogate", "scalars", "a user's tag"],
)
def test_texts_are_redacted_wherever_they_stand(value, kept):
    """Texts are redacted inside of everything that holds them; keys, tags, numbers, bytes and dates are not texts."""
    told = codec.decode(codec.redacted(codec.encode(value), redact))

    assert (told, type(told)) == (kept, type(kept))


def test_nothing_of_it_is_anywhere(url, open_journal):
    """Arguments, messages, values, errors, metadata, decisions and notes: the secret is in no table of the journal."""
    with open_journal(url, redact=redact) as journal:
        decided(journal)
        with pytest.raises(RuntimeError), journal.run("other"):
            raise RuntimeError(f"died with {SECRET}")

    assert b"[key]" in stored.everything(url)
    assert SECRET.encode() not in stored.everything(url)
    assert SECRET not in _payloads(url)


def _payloads(url):
    """Every payload, uncompressed, as one text."""
    with stored.connected(url) as connection:
        rows = connection.execute(stored.sa.text("SELECT compressed, body FROM gnl_blobs"))
        return "".join((stored.plain(bytes(body), compressed)).decode() for compressed, body in rows)


def test_live_and_replay_are_equal(url, open_journal):
    """What the program got live is what a replay gives it: redacted, errors too; fingerprints are those of the originals."""
    journal = open_journal(url, redact=redact)
    order = Order()

    live = order.run(journal)
    replayed = [Order().run(journal, replay="strict") for _ in range(2)]

    assert replayed == [live, live]
    assert order.ran == ["charge", "look_up"]
    assert live[0]["receipt"] == "seven [key] paid with [key]"
    assert live[1] == "there is no order eight of [key]"
    assert live[3] == "noon [key]"


def test_different_secrets_are_different_calls(file_url, open_journal):
    """Two calls that differ only in what is redacted are two steps, since what counts is what was asked."""
    journal = open_journal(file_url, redact=redact)
    ran = []

    @journaled(replay=safe)
    def call(key):
        ran.append(key)
        return len(ran)

    with journal.run(RUN):
        given = [call("sk-live-1"), call("sk-live-2")]
    with journal.run(RUN):
        assert [call("sk-live-1"), call("sk-live-2")] == given == [1, 2]
    assert len(ran) == 2


class PaymentError(Exception):
    """An error of a program's own."""


def test_an_error_keeps_its_class(file_url, open_journal):
    """Live, a redacted error is still of its class, so that the program handles it as ever; a replay knows what is listed."""
    journal = open_journal(file_url, redact=redact)

    @journaled(replay=safe)
    def call():
        raise PaymentError(f"refused {SECRET}", 402)

    def attempt(expected):
        with journal.run(RUN) as run:
            with pytest.raises(expected) as raised:
                call()
            run.value("went on", lambda: 1)
        return raised.value

    live = attempt(PaymentError)
    assert live.args == ("refused [key]", 402)
    assert attempt(RecordedError).text == str(live)


def test_recover_gets_redacted_arguments_and_gives_a_redacted_result(file_url, open_journal):
    """A hook that settles a call sees its arguments as they were kept, and what it answers is redacted, too."""
    asked = []

    def recover(call):
        asked.append(call.arguments)
        return Done(f"found {SECRET}")

    journal = open_journal(file_url, redact=redact)
    results = []
    for dies in (True, False):

        @journaled(replay=never(recover=recover), name="charge")
        def charge(order, *, dies=dies):
            if dies:
                raise KeyboardInterrupt
            return "charged"

        try:
            with journal.run(RUN):
                results.append(charge(f"seven {SECRET}", dies=True))
        except KeyboardInterrupt:
            pass

    assert [arguments["order"] for arguments in asked] == ["seven [key]"]
    assert results == ["found [key]"]


def test_what_waits_for_a_person_is_redacted(file_url, open_journal):
    """The reason of a block, and what the error about it tells, hold nothing of it."""

    def recover(call):
        raise RuntimeError(f"no answer for {SECRET}")

    journal = open_journal(file_url, redact=redact)

    @journaled(replay=never(recover=recover))
    def charge(order):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), journal.run(RUN):
        charge(SECRET)
    with pytest.raises(SideEffectRetryBlockedError) as raised, journal.run(RUN):
        charge(SECRET)

    assert SECRET not in str(raised.value)
    assert SECRET not in str(journal.steps(RUN))
    journal.resolve(RUN, "charge", Failed(f"refused {SECRET}"), by="ops", note=SECRET)
    assert SECRET.encode() not in stored.everything(file_url)


def test_a_difference_is_told_redacted(file_url, open_journal):
    """In strict mode the difference between what was asked and the record shows neither secret, and no false difference."""
    journal = open_journal(file_url, redact=redact)

    @journaled(replay=never)
    def charge(order, key):
        return order

    with journal.run(RUN):
        charge("seven", SECRET)
    with pytest.raises(DivergenceError) as raised, journal.run(RUN, replay="strict"):
        charge("eight", SECRET)

    assert SECRET not in str(raised.value)
    changed = [line for line in raised.value.diff.splitlines()[2:] if line[0] in "+-"]
    assert changed == ["-seven", "+eight"]


@pytest.mark.parametrize(
    "broken",
    [lambda text: 1 / 0, lambda text: None, lambda text: text.encode()],
    ids=["raises", "gives nothing", "gives bytes"],
)
def test_a_redaction_that_fails_writes_nothing(file_url, open_journal, broken):
    """Where the function fails, a body does not begin; nothing is ever written as it was."""
    journal = open_journal(file_url, redact=lambda text: broken(text) if SECRET in text else text)
    ran = []

    @journaled(replay=never)
    def charge(order):
        ran.append(order)
        return SECRET

    with pytest.raises(UnserializableValueError, match="redact"), journal.run(RUN):
        charge(SECRET)
    assert ran == []
    for _ in range(2):  # a value that cannot be kept is lost, and the body still never runs again
        with pytest.raises(UnserializableValueError, match="redact"), journal.run("other"):
            charge("seven")
    assert ran == ["seven"]
    with pytest.raises(RuntimeError), journal.run("third"):
        raise RuntimeError(SECRET)
    assert SECRET.encode() not in stored.everything(file_url)


SECRETS = ("refund order", "booked 7", "mailed 7", "All is", "book it")


def taken_out(text):
    """What the agents of these tests say and are told, without what is told in it."""
    for secret in SECRETS:
        text = text.replace(secret, "[out]")
    return text


@pytest.mark.parametrize("way", ["invoke", "astream"])
def test_an_agent_goes_on_with_what_was_kept(file_url, open_journal, way):
    """An agent sees its model's replies and its tools' answers redacted, and a replay asks and calls nothing again."""
    journal = open_journal(file_url, redact=taken_out)
    ran = []

    def agent():
        from langchain.agents import create_agent

        from gnl_langchain import JournalMiddleware

        def book(order: str) -> str:
            """Book it."""
            ran.append(order)
            return f"booked {order}"

        model = ScriptedModel(
            script=turns(calling("book", order="7", text="I book it now."), said("All is done."))
        )
        return create_agent(model, [book], middleware=[JournalMiddleware(never=["book"])])

    live = drive(journal, agent(), way)
    replay = drive(journal, agent(), way, replay="strict")

    texts = [message.text for message in live.state["messages"]]
    assert texts[1:] == ["I [out] now.", "[out]", "[out] done."] if way == "invoke" else ["I [out] now. "]
    assert [message.text for message in replay.state["messages"]] == texts
    assert (replay.ran, ran) == (0, ["7"])
    assert live.chunks == replay.chunks
    assert b"book it" not in stored.everything(file_url)


def test_a_secret_that_is_cut_by_chunks_is_found(file_url, open_journal):
    """A streamed reply is redacted whole: what stands in two chunks is found, and comes in one piece, live and later."""
    journal = open_journal(file_url, redact=redact)

    class Cutting(ScriptedModel):
        def _stream(self, messages, stop=None, run_manager=None, **options):
            from langchain_core.messages import AIMessageChunk
            from langchain_core.outputs import ChatGenerationChunk

            for piece in ("The key is sk-li", "ve-44", "71.", ""):
                last = {"chunk_position": "last"} if not piece else {}
                yield ChatGenerationChunk(message=AIMessageChunk(content=piece, **last))

    from gnl_langchain import journaled_model

    def texts(**options):
        with journal.run(RUN, **options):
            return [
                chunk.text for chunk in journaled_model(Cutting(script=turns(said("x")))).stream("which key?")
            ]

    live = texts()

    assert "".join(live) == "The key is [key]."
    assert texts(offline=True) == live
    assert b"sk-li" not in stored.everything(file_url)


def test_a_stream_that_cannot_be_joined_is_refused(file_url, open_journal):
    """An adapter that does not say how to join chunks gets an error before the model is asked, not a leak."""
    from gnl_middleware.adapter import ModelCall, Reply, current_session, perform_stream, request_of

    journal = open_journal(file_url, redact=redact)
    call = ModelCall(
        name="model", request=request_of((), (), {}), messages=(), describe=lambda _: Reply(digest="x")
    )
    with journal.run(RUN), pytest.raises(TypeError, match=r"ModelCall\.whole"):
        next(perform_stream(current_session(), call, lambda: iter("ab"), lambda chunk: chunk))

    assert journal.steps(RUN) == []
