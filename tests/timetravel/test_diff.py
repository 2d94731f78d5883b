"""Where two runs part."""

import contextvars
import random
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from gnl_middleware import Done, RunNotFoundError, keyed, never, safe
from gnl_middleware.adapter import Message, ModelCall, Reply, ReplyCall, ToolCall, digest, perform, request_of
from tests.timetravel.acting import World

ON_BOTH = {"test_branches_in_any_order", "test_call_ids_and_arrival_are_no_difference"}


def program(journal, run_id, *, looked="Ann", amount=7, mailed="sent", skip=(), replay="lenient"):
    """Look up, charge, mail."""
    world = World()
    with journal.run(run_id, replay=replay) as run:
        run.now(), run.uuid4(), run.random()
        world.act("look_up", safe, value=looked)
        if "charge" not in skip:
            world.act("charge", never, amount)
        world.act("mail", keyed, value=mailed)


@pytest.mark.parametrize(
    ("changed", "what", "steps", "equal", "shown"),
    [
        ({}, None, (None, None), 6, ""),
        ({"looked": "Bob"}, "outcome", ("look_up", "look_up"), 3, "@@ outcome @@\n-Ann\n+Bob"),
        ({"amount": 8}, "arguments", ("charge", "charge"), 4, "@@ arguments.given[0] @@\n-7\n+8"),
        ({"mailed": "lost"}, "outcome", ("mail", "mail"), 5, "@@ outcome @@\n-sent\n+lost"),
        ({"skip": ("charge",)}, "name", ("charge", "mail"), 4, "@@ name @@\n-tool charge\n+tool mail"),
    ],
    ids=["equal", "value", "arguments", "last", "missing"],
)
def test_the_first_difference(journal, changed, what, steps, equal, shown):  # noqa: PLR0917 - one table
    """The first step that differs, what differs in it, and how many are equal before; times and random values do not count."""
    program(journal, "a")
    program(journal, "b", **changed)

    found = journal.diff("a", "b")

    assert (found.a, found.b, found.what, found.equal_steps) == ("a", "b", what, equal)
    assert tuple(step and step.name for step in (found.step_a, found.step_b)) == steps
    assert shown in found.difference


def test_a_run_that_ended_earlier(journal):
    """Where one run just goes on, the first step that only it has is named, on its side."""
    program(journal, "a")
    journal.fork("a", "b", before="charge")

    longer, shorter = journal.diff("a", "b"), journal.diff("b", "a")

    assert (longer.what, longer.step_a.name, longer.step_b, longer.equal_steps) == (
        "only_in_a",
        "charge",
        None,
        4,
    )
    assert (shorter.what, shorter.step_a, shorter.step_b.name) == ("only_in_b", None, "charge")


def test_an_edited_time_is_a_difference(journal):
    """What ``run.now()`` gave is new in each run, and no difference; but what a person has put there is one."""
    program(journal, "a")
    journal.fork("a", "b", before="look_up", edits={"now": Done("2030")})

    assert (journal.diff("a", "b").what, journal.diff("a", "b").step_b.value) == ("outcome", "2030")


def test_an_unknown_run(journal):
    """A run that there is not is an error that names it, not an empty difference."""
    program(journal, "a")

    with pytest.raises(RunNotFoundError, match="'c'"):
        journal.diff("a", "c")


def test_branches_in_any_order(journal):
    """Branches of their own are compared by name: which one was faster is no difference."""

    def branches(run_id, order):
        turns = {name: threading.Event() for name in (*order, "end")}
        turns[order[0]].set()
        following = dict(zip(order, (*order[1:], "end"), strict=True))

        def branch(name):
            with run.scope(name):
                for place in range(3):
                    turns[name].wait(30)
                    World().act("look_up", safe, name, place)
                turns[following[name]].set()

        with journal.run(run_id) as run, ThreadPoolExecutor() as threads:
            for done in [threads.submit(contextvars.copy_context().run, branch, name) for name in order]:
                done.result()
            World().act("mail", never)

    branches("a", ["eu", "uk", "us"])
    branches("b", ["us", "eu", "uk"])

    assert (journal.diff("a", "b").what, journal.diff("a", "b").equal_steps) == (None, 10)


def talk(journal, run_id, *, ids, order=(0, 1), text="Done.", prompt="refund 7"):
    """One model that asks for two calls, and says something; a provider makes the ids of calls up."""

    def asked(reply):
        described = Reply(
            digest(reply), tuple(ReplyCall(each, "refund", digest("")) for each in reply["ids"])
        )
        call = ModelCall(
            name="gpt",
            request=request_of(tuple(told), tuple(history), {"model": "gpt"}),
            messages=tuple(told),
            describe=lambda value: described,
        )
        perform(run.session, call, lambda: reply | {"created_at": random.random()})

    def refund(place):
        call = ToolCall(
            name="refund",
            policy=never,
            arguments={"place": place},
            call_id=ids[place],
            carrier=digest(first),
            place=place,
        )
        perform(run.session, call, lambda: f"refunded {place}")

    told, first = [{"role": "user", "text": prompt}], {"text": "", "ids": list(ids)}
    history = [Message("user", digest(told[0]))]
    with journal.run(run_id) as run:
        asked(first)
        for place in order:
            refund(place)
        told += [first, *({"role": "tool", "answers": each, "text": "refunded"} for each in ids)]
        history.append(Message("assistant", digest(first), ids, reply=digest(first)))
        history += [Message("tool", digest(each), answers=each["answers"]) for each in told[2:]]
        asked({"text": text, "ids": []})


def test_call_ids_and_arrival_are_no_difference(journal):
    """Two runs of one conversation are equal, whatever ids the provider made up and in which order parallel calls came."""
    talk(journal, "a", ids=("call_1", "call_2"))
    talk(journal, "b", ids=("call_x", "call_y"), order=(1, 0))

    found = journal.diff("a", "b")

    assert (found.what, found.equal_steps) == (None, 4)


@pytest.mark.parametrize(
    ("changed", "what", "equal", "shown"),
    [
        ({"text": "Sorry."}, "reply", 3, "@@ reply.text @@\n-Done.\n+Sorry."),
        ({"prompt": "refund 8"}, "messages", 0, "@@ messages[0].text @@\n-refund 7\n+refund 8"),
    ],
    ids=["reply", "messages"],
)
def test_models(journal, changed, what, equal, shown):
    """Another reply, and another request, are told apart, and shown without what providers put around a reply."""
    talk(journal, "a", ids=("call_1", "call_2"))
    talk(journal, "b", ids=("call_x", "call_y"), **changed)

    found = journal.diff("a", "b")

    assert (found.what, found.equal_steps) == (what, equal)
    assert shown in found.difference
    assert "created_at" not in found.difference
    assert "call_x" not in found.difference
