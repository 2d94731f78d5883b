"""Which turns of a recorded conversation are over, and what proves that a rebuilt one is what was asked."""

from typing import Any

import pytest

from gnl_middleware import codec
from gnl_middleware.identity import Message, digest_of
from gnl_middleware.model import ReplyCall, StoredStep
from gnl_middleware.replay.record import Record
from gnl_middleware.replay.turns import Proof, turns_of

SYSTEM, USER = {"role": "system", "content": "Be kind."}, {"role": "user", "content": "hi"}
REPLY, RESULT = {"role": "assistant", "content": ""}, {"role": "tool", "content": "fine"}
BEGUN = digest_of("conversation")


def conversation(*messages: Any, onto: str = BEGUN) -> str:
    """The digest of a conversation."""
    for message in messages:
        onto = digest_of(onto, codec.digest(message))
    return onto


def step(key: str, number: int, **fields: Any) -> StoredStep:
    """A step of a run."""
    given: dict[str, Any] = {
        "kind": "model",
        "status": "done",
        "value": b'"reply"',
        "reply_digest": key,
        "arguments": codec.encode([SYSTEM, USER]),
        "fingerprint": key,
        **fields,
    }
    return StoredStep(
        run_id="run",
        key=key,
        number=number,
        scope="",
        name="m",
        policy="",
        token="t",
        fence=1,
        tries=1,
        attempt=1,
        started_at=0.0,
        begun=number,
        arguments_hash="",
        **given,
    )


def called(reply: str, position: int, number: int, **fields: Any) -> StoredStep:
    """A call of a reply."""
    return step(f"{reply}/{position}", number, kind="tool", reply=reply, position=position, **fields)


def asking(count: int = 1) -> tuple[ReplyCall, ...]:
    """Calls that a reply asks for."""
    return tuple(ReplyCall(f"call_{place}", "look", "") for place in range(count))


def found(*steps: StoredStep) -> list[tuple[str, list[str]]]:
    """The turns of a record, by key."""
    turns = turns_of(Record("run", steps), "")
    return [(turn.reply.key, [call.key for call in turn.calls]) for turn in turns]


class TestTurns:
    def test_in_the_order_of_the_conversation(self):
        """A turn is a reply and its results in the order of the calls, whichever of them came first."""
        steps = [
            step("b", 4),
            step("a", 1, calls=asking(2)),
            called("a", 1, 2),
            called("a", 0, 3),
        ]

        assert found(*steps) == [("a", ["a/0", "a/1"]), ("b", [])]

    @pytest.mark.parametrize("status", ["started", "failed", "withdrawn", "paused"])
    def test_a_call_without_a_result(self, status):
        """A reply of which not every call has a result has none to hand over."""
        steps = [step("a", 1, calls=asking(2)), called("a", 0, 2), called("a", 1, 3, status=status, ended=4)]

        assert found(*steps) == [("a", [])]

    def test_a_failure_that_the_agent_went_on_from(self):
        """A failure that the next request told the model of is a result."""
        failed = called("a", 0, 2, status="failed", value=None, ended=3)

        assert found(step("a", 1, calls=asking()), failed, step("b", 4, answered=("a/0",))) == [
            ("a", ["a/0"]),
            ("b", []),
        ]

    def test_a_result_that_could_not_be_recorded(self):
        """Nor has one whose call was done, and lost its value."""
        assert found(step("a", 1, calls=asking()), called("a", 0, 2, value=None)) == [("a", [])]

    def test_the_last_request_may_be_open(self):
        """A model that was being asked when the process died is asked again."""
        assert found(step("a", 1), step("b", 2, status="started", value=None)) == [("a", [])]

    def test_a_request_that_was_given_up(self):
        """Where an earlier request has no reply, nothing says which of the two a replay comes to."""
        assert found(step("a", 1), step("b", 2, status="started", value=None), step("c", 3)) == []

    def test_other_scopes(self):
        """What other agents of the run asked is no part of the conversation."""
        other = step("x", 2)
        record = Record("run", [step("a", 1), other])

        assert [turn.reply.key for turn in turns_of(record, "elsewhere/")] == []


class TestProof:
    def leads_on(self, second: StoredStep, *, exactly: bool = False, told: Any = (REPLY, RESULT)) -> bool:
        first = step("a", 1, fingerprint=conversation(SYSTEM, USER), calls=asking(), setups=("s",))
        record = Record("run", [first, called("a", 0, 2), second])
        parts = [Message(each["role"], codec.digest(each)) for each in told]
        return Proof(record, turns_of(record, ""), exactly=exactly).leads_on(0, list(told), parts)

    def following(self, *messages: Any, **fields: Any) -> StoredStep:
        """The next request: these messages, recorded whole."""
        fields = {"setups": ("s",), **fields}
        return step(
            "b", 3, fingerprint=conversation(*messages), arguments=codec.encode(list(messages)), **fields
        )

    def test_what_was_asked(self):
        """A turn is proven where its messages make the next recorded request of the one before."""
        assert self.leads_on(self.following(SYSTEM, USER, REPLY, RESULT), exactly=True)

    @pytest.mark.parametrize(
        "messages",
        [
            (SYSTEM, USER, REPLY, {"role": "tool", "content": "other"}),
            (SYSTEM, USER, REPLY),
            (SYSTEM, {"role": "user", "content": "?"}, REPLY, RESULT),
            (USER, REPLY, RESULT),
            (SYSTEM, USER, RESULT, REPLY),
        ],
    )
    def test_what_was_not_asked(self, messages):
        """Another result, another question, a message more or less: none of it is proven."""
        assert not self.leads_on(self.following(*messages))

    def test_changed_instructions(self):
        """Instructions that changed between two attempts do not count, unless every change does."""
        changed = self.following({"role": "system", "content": "Be brief."}, USER, REPLY, RESULT)

        assert self.leads_on(changed)
        assert not self.leads_on(changed, exactly=True)

    def test_a_changed_setup(self):
        """Nor does a changed setup, unless every change does."""
        changed = self.following(SYSTEM, USER, REPLY, RESULT, setups=("other",))

        assert self.leads_on(changed)
        assert not self.leads_on(changed, exactly=True)

    def test_a_record_that_cannot_be_read(self):
        """What cannot be read proves nothing."""
        broken = step("b", 3, fingerprint="other", arguments=b"{", setups=("s",))

        assert not self.leads_on(broken)
