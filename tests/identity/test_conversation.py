"""What a model request is known by: the chain of its messages, its shape, and the replies that stand in it."""

import itertools

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gnl_middleware.adapter import Message, Request, digest
from gnl_middleware.conversation import Standing


def system(text="be brief"):
    return Message(role="system", digest=digest(["system", text]))


def user(text):
    return Message(role="user", digest=digest(["user", text]))


def assistant(text="", *call_ids, drift=""):
    """A reply; `drift` is what a framework made of it, beyond its text and calls."""
    return Message(
        role="assistant",
        digest=digest(["assistant", text, call_ids, drift]),
        call_ids=call_ids,
        reply=digest([text, call_ids]),
    )


def tool(answers, text="ok"):
    return Message(role="tool", digest=digest(["tool", answers, text]), answers=answers)


def request(*messages, setup="setup"):
    return Request(messages=messages, setup=setup)


QUESTION = (system(), user("open a ticket"), assistant("", "c-1", "c-2"), tool("c-1"), tool("c-2"))
OURS = {QUESTION[2].reply}

words = st.sampled_from(["", "a", "b", "user", "assistant", "tool"])
# `assistant` messages carry calls, `tool` messages answer one: what else frameworks send has neither.
plain_messages = st.builds(Message, role=st.sampled_from(["system", "user"]), digest=words)
assistant_messages = st.builds(
    Message,
    role=st.just("assistant"),
    digest=words,
    call_ids=st.lists(words, max_size=3).map(tuple),
    reply=words,
)
tool_messages = st.builds(Message, role=st.just("tool"), digest=words, answers=words)
conversations = st.lists(plain_messages | assistant_messages | tool_messages, max_size=4).map(tuple)


class TestChain:
    @given(conversations, conversations)
    def test_fingerprint_is_the_conversation(self, messages, others):
        """Requests have one fingerprint exactly when every message of theirs has the same digest, in the same order."""
        told = [message.digest for message in messages], [message.digest for message in others]

        same = request(*messages).fingerprint == request(*others).fingerprint

        assert same is (told[0] == told[1])

    @given(conversations, conversations)
    def test_every_beginning_can_be_continued(self, messages, more):
        """The chain holds the fingerprint of every beginning, so that a longer conversation continues a recorded one."""
        longer = request(*messages, *more)

        beginnings = [
            request(*longer.messages[:length]).fingerprint for length in range(len(longer.messages) + 1)
        ]

        assert list(longer.chain) == beginnings

    def test_setup_is_no_part_of_the_conversation(self):
        """A fallback model is asked the same conversation: the setup does not enter the fingerprint."""
        assert request(*QUESTION, setup="a").fingerprint == request(*QUESTION, setup="b").fingerprint

    @pytest.mark.parametrize(("recorded", "known"), [(0, 0), (1, 1), (3, 3), (4, 4), (5, 0)])
    def test_longest_recorded_beginning_is_found(self, recorded, known):
        """Only what is new since the longest recorded beginning is stored; a request never continues itself."""
        asked = request(*QUESTION)
        beginning = {request(*QUESTION[:recorded]).fingerprint}

        assert asked.longest_known(beginning) == known

    def test_longest_of_several_beginnings_wins(self):
        """Of several recorded beginnings the longest one is continued."""
        asked = request(*QUESTION)
        recorded = {request(*QUESTION[:length]).fingerprint for length in (1, 2, 4)}

        assert asked.longest_known(recorded) == 4


class TestShape:
    @pytest.mark.parametrize(
        "drifted",
        [
            pytest.param((system("be brief, please"), *QUESTION[1:]), id="system message"),
            pytest.param((*QUESTION[:3], tool("c-1", "another text"), QUESTION[4]), id="tool result text"),
            pytest.param(
                (*QUESTION[:2], assistant("", "c-1", "c-2", drift="metadata"), *QUESTION[3:]), id="our reply"
            ),
        ],
    )
    def test_drift_keeps_the_shape(self, drifted):
        """Other system text, tool-result text or decoration of our reply changes the conversation, not its shape."""
        recorded, asked = request(*QUESTION), request(*drifted)

        assert asked.fingerprint != recorded.fingerprint
        assert asked.shape(OURS) == recorded.shape(OURS)

    @pytest.mark.parametrize(
        "changed",
        [
            pytest.param((QUESTION[0], user("close the ticket"), *QUESTION[2:]), id="user message"),
            pytest.param((*QUESTION, user("and now?")), id="one more question"),
            pytest.param(QUESTION[:4], id="an answer less"),
            pytest.param((*QUESTION[:3], QUESTION[4], QUESTION[3]), id="answers in another order"),
            pytest.param((*QUESTION[:3], tool("c-3"), QUESTION[4]), id="answer to another call"),
            pytest.param((*QUESTION[:2], assistant("", "c-1"), *QUESTION[3:]), id="a call less"),
            pytest.param(
                (*QUESTION[:2], assistant("", "c-2", "c-1"), *QUESTION[3:]), id="calls in another order"
            ),
            pytest.param(
                (*QUESTION[:2], assistant("hm", "c-1", "c-2"), *QUESTION[3:]), id="a reply not ours"
            ),
            pytest.param((user("be brief"), *QUESTION[1:]), id="another role"),
            pytest.param(QUESTION[1:], id="no system message"),
        ],
    )
    def test_change_of_substance_changes_the_shape(self, changed):
        """Another question, other calls, other answers or another reply is another shape: nobody gets its reply."""
        assert request(*changed).shape(OURS) != request(*QUESTION).shape(OURS)

    def test_setup_is_no_part_of_the_shape(self):
        """Another model or other tools keep the shape; the setup is compared by itself."""
        assert request(*QUESTION, setup="a").shape(OURS) == request(*QUESTION, setup="b").shape(OURS)

    @given(conversations, conversations)
    @example(
        (Message(role="assistant", digest="", call_ids=("", "", "user"), reply="r"),),
        (Message(role="assistant", digest="", reply="r"), Message(role="user", digest="")),
    )
    def test_shapes_differ_with_any_part_of_the_shape(self, messages, others):
        """Two conversations have one shape only if roles, call ids, answers and questions agree message by message."""

        def parts(conversation):
            return [
                (
                    message.role,
                    message.call_ids,
                    message.answers or "",
                    message.digest
                    if message.role == "user"
                    else message.reply
                    if message.reply == "a"
                    else "",
                )
                for message in conversation
            ]

        same = request(*messages).shape({"a"}) == request(*others).shape({"a"})

        assert same is (parts(messages) == parts(others))


class TestStandings:
    def test_reply_with_its_answers(self):
        """A reply stands in the history with the positions of its calls that were answered."""
        asked = request(*QUESTION[:4])

        assert asked.standings == (Standing(QUESTION[2].reply, 1, frozenset({0})),)

    def test_answers_count_whatever_their_order(self):
        """Parallel tools answer in any order: each answer counts for the call that it names."""
        orders = itertools.permutations([tool("c-1"), tool("c-2"), tool("c-3")])

        answered = {
            request(assistant("", "c-1", "c-2", "c-3"), *answers).standings[0].answered for answers in orders
        }

        assert answered == {frozenset({0, 1, 2})}

    def test_reused_ids_belong_to_the_reply_before_them(self):
        """A provider that reuses ids is understood: an answer belongs to the last reply that asked for it."""
        one, two = assistant("one", "call_0"), assistant("two", "call_0")

        first_answered = request(one, tool("call_0"), two)
        second_answered = request(one, two, tool("call_0"))

        assert [standing.answered for standing in first_answered.standings] == [{0}, frozenset()]
        assert [standing.answered for standing in second_answered.standings] == [frozenset(), {0}]

    def test_reused_id_within_one_reply(self):
        """Two calls of one reply under one id have two answers, counted in order."""
        reply = assistant("", "call_0", "call_0")

        assert request(reply, tool("call_0")).standings[0].answered == {0}
        assert request(reply, tool("call_0"), tool("call_0")).standings[0].answered == {0, 1}

    def test_surplus_answer_is_nobodys(self):
        """More answers than calls answer no other call."""
        asked = request(assistant("", "a", "b"), tool("a"), tool("a"), tool("x"))

        assert asked.standings[0].answered == {0}

    def test_omitted_ids(self):
        """A provider that omits ids is understood: the k-th answer without an id is for the k-th call without one."""
        reply = assistant("", "", "named", "")

        assert request(reply, tool("")).standings[0].answered == {0}
        assert request(reply, tool(""), tool("named"), tool("")).standings[0].answered == {0, 1, 2}

    def test_equal_replies_are_counted(self):
        """A reply that stands k times witnesses the first k records of it: occurrences count from 1."""
        asked = request(assistant("yes"), user("sure?"), assistant("yes"), user("really?"), assistant("no"))

        standings = [(standing.reply, standing.occurrence) for standing in asked.standings]

        yes, no = assistant("yes").reply, assistant("no").reply
        assert standings == [(yes, 1), (yes, 2), (no, 1)]

    def test_talk_between_a_reply_and_its_answer(self):
        """An assistant message without calls does not come between a reply and the answers to it."""
        asked = request(assistant("", "c-1"), assistant("one moment"), tool("c-1"))

        assert asked.standings[0].answered == {0}

    def test_answer_before_its_call_is_none(self):
        """An answer that stands before the reply that asks for it answers nothing."""
        asked = request(tool("c-1"), assistant("", "c-1"))

        assert asked.standings[0].answered == frozenset()

    def test_message_that_is_no_reply_does_not_stand(self):
        """System, user and tool messages are no replies."""
        assert request(system(), user("hello"), tool("c-1")).standings == ()

    @given(conversations)
    def test_answered_positions_are_calls_of_the_reply(self, messages):
        """Whatever the history holds, only calls of the reply itself count as answered, each at most once."""
        asked = request(*messages)

        replies = [message for message in messages if message.reply is not None]

        assert [standing.reply for standing in asked.standings] == [message.reply for message in replies]
        assert all(
            standing.answered <= set(range(len(message.call_ids)))
            for standing, message in zip(asked.standings, replies, strict=True)
        )
