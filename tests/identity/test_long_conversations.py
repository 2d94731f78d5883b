"""A conversation that goes on from an earlier one costs what is new in it, and is the same as one worked out from its beginning."""

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnl_middleware import Journal, never
from gnl_middleware.conversation import Request
from gnl_middleware.identity import Message
from tests.storage.conversations import Conversation

NAMES = st.sampled_from("abc")
MESSAGES = st.one_of(
    st.builds(Message, st.sampled_from(["user", "system"]), NAMES),
    st.builds(Message, st.just("tool"), NAMES, answers=NAMES),
    st.builds(
        Message, st.just("assistant"), NAMES, call_ids=st.lists(NAMES, max_size=3).map(tuple), reply=NAMES
    ),
)
OURS = st.sets(NAMES)


def worked_out(request, ours):
    """All that is asked of a request."""
    return request.chain, request.fingerprint, request.standings, request.shape(ours)


@given(
    st.lists(MESSAGES, max_size=12),
    st.lists(st.tuples(st.integers(0, 12), st.lists(MESSAGES, max_size=4), OURS), max_size=4),
)
def test_following_changes_no_answer(first, turns):
    """Whatever a request takes over from the one before it, going on from it or not, each answer is that of a new request."""
    messages, ours = first, set()
    before = Request(tuple(messages), "setup")
    worked_out(before, ours)
    for kept, added, given_meanwhile in turns:
        messages, ours = [*messages[:kept], *added], ours | given_meanwhile
        request = Request(tuple(messages), "setup")

        request.follow(before)

        assert worked_out(request, ours) == worked_out(Request(tuple(messages), "setup"), ours)
        before = request


def test_what_nothing_can_change_is_the_same_object():
    """What was found out about the beginning of a conversation is taken over as it is, and known again as that."""
    asking = Message("assistant", "a", call_ids=("1",), reply="a")
    messages = (Message("user", "q"), asking, Message("tool", "t", answers="1"), asking)
    earlier = Request(messages, "")
    later = Request((*messages, Message("tool", "u", answers="1")), "")
    _ = earlier.standings

    later.follow(earlier)

    assert later.standings[0] is earlier.standings[0]
    assert [standing.answered for standing in later.standings] == [frozenset({0}), frozenset({0})]


def calls_of(work):
    """How many calls of Python functions some work takes."""
    number = 0

    def note(_frame, event, _argument):
        nonlocal number
        number += event == "call"

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return number


@pytest.mark.parametrize(
    "turn", [lambda talk: talk.turns(1), lambda talk: talk.act(never)], ids=["question", "tool"]
)
def test_turn_of_a_long_run_takes_as_many_steps_as_one_of_a_short_run(tmp_path, turn):
    """What a turn costs does not grow with the turns before it: live, and read back."""
    with Journal(tmp_path / "runs.db") as journal:
        for _attempt in ("live", "read back"):
            with journal.run("order-7"):
                conversation = Conversation(size=64)
                conversation.say("please begin")
                for _ in range(20):
                    turn(conversation)
                early = calls_of(lambda: turn(conversation))  # noqa: B023 - called at once
                for _ in range(200):
                    turn(conversation)
                late = calls_of(lambda: turn(conversation))  # noqa: B023 - as above

            assert late < 1.5 * early
