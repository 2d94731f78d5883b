"""How steps are named: readable keys of one alphabet, and no two steps under one key."""

import itertools
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gnl_middleware import journaled, safe
from gnl_middleware.identity import (
    branch_scope,
    call_key,
    digest_of,
    idempotency_key,
    inner_scope,
    key_part,
    model_key,
    tool_key,
)

KEY = re.compile(r"[A-Za-z0-9_.:/-]+")
any_text = st.text(st.characters(exclude_categories=[]), max_size=20)
digests = st.text("0123456789abcdef", min_size=64, max_size=64)
counts = st.integers(min_value=1, max_value=10**9)

# Names that people give to tools, branches and functions, which only characters outside the alphabet tell apart.
CONFUSABLE = [
    ("東京", "大阪"),
    ("send email", "send_email"),
    ("größe", "gr__e"),
    ("a/b", "a_b"),
    ("a:b", "a_b"),
    ("é", "e\u0301"),
    ("", "_"),
]


@given(name=any_text, call_id=any_text, branch=any_text, digest=digests, count=counts)
def test_keys_keep_to_their_alphabet(name, call_id, branch, digest, count):
    """Whatever names and call ids hold, a key is made of ASCII letters, digits and `_.:/-` only."""
    scope = branch_scope(inner_scope(call_key("", name, digest, count)), branch)
    reply = model_key(scope, digest, count)

    keys = [
        reply,
        tool_key(reply, count, call_id),
        call_key(scope, name, digest, count),
        call_key(scope, name, digest, count, call_id=call_id),
    ]

    assert all(KEY.fullmatch(key) for key in keys)


@given(any_text)
@example("")
@example("..")
def test_part_of_a_key_is_one_part(name):
    """A name never opens another level of a key, and is never empty."""
    part = key_part(name)

    assert part
    assert "/" not in part


@given(st.from_regex(r"[A-Za-z0-9_.-]{1,40}", fullmatch=True))
def test_plain_name_is_kept(name):
    """A name of plain characters stands in the key as it is, so that people recognise it."""
    assert key_part(name) == name


@given(any_text, any_text)
@example("東京", "大阪")
def test_different_names_have_different_parts(name, other):
    """Two names never share a part of a key: the record of one would be served to the other."""
    assert (key_part(name) == key_part(other)) is (name == other)


@pytest.mark.parametrize(("name", "other"), CONFUSABLE, ids=ascii)
def test_confusable_functions_have_records_of_their_own(journal, name, other):
    """Functions whose names differ in any character are never served each other's record, in any order."""
    first = journaled(lambda: "first", replay=safe, name=name)
    second = journaled(lambda: "second", replay=safe, name=other)
    with journal.run("order-7"):
        recorded = first(), second()

    with journal.run("order-7") as run:
        replayed = second(), first()

    assert (recorded, replayed, run.steps_ran) == (("first", "second"), ("second", "first"), 0)


@pytest.mark.parametrize(("name", "other"), CONFUSABLE, ids=ascii)
def test_confusable_branches_have_records_of_their_own(journal, name, other):
    """Branches whose names differ in any character are never served each other's record, in any order."""
    with journal.run("order-7") as run:
        recorded = {branch: drawn_in(run, branch) for branch in (name, other)}

    with journal.run("order-7") as run:
        replayed = {branch: drawn_in(run, branch) for branch in (other, name)}

    assert replayed == recorded


def drawn_in(run, branch):
    """A random number, drawn in a branch."""
    with run.scope(branch):
        return run.random()


def test_keys_of_a_journal_keep_to_their_alphabet(journal):
    """The keys that a journal lists can be pasted into a shell and a URL."""
    function = journaled(lambda: None, replay=safe, name="mail; rm -rf / 'ä' $(x)")
    with journal.run("order-7") as run, run.scope("branch 1/ä"):
        function()
        run.value("a value", lambda: 1)

    keys = [step.key for step in journal.steps("order-7")]

    assert len(keys) == len(set(keys)) == 2
    assert all(KEY.fullmatch(key) for key in keys)


def test_keys_are_the_same_in_every_process():
    """A key is computed from what is asked alone, so a second process finds the step that the first one recorded."""
    digest = digest_of("order-7")

    keys = call_key("", "charge", digest, 1), model_key("a/", digest, 2), tool_key("m", 0, "call_1")

    assert keys == (
        f"charge/{digest[:16]}/1",
        f"a/model/{digest[:16]}/2",
        "m/0/call_1",
    )


@given(st.lists(any_text, max_size=4), st.lists(any_text, max_size=4))
@example(["ab", "c"], ["a", "bc"])
@example(["", ""], [""])
@example(["1:a"], ["a"])
@example(["\ud800"], ["?"])
def test_digest_tells_every_list_of_texts_apart(texts, others):
    """Texts cannot run into each other in a digest: only equal lists have equal digests."""
    assert (digest_of(*texts) == digest_of(*others)) is (texts == others)


def test_idempotency_key_names_run_and_step():
    """An idempotency key is the same on every attempt and different for every run and every step."""
    pairs = [*itertools.product(["order-7", "order-71", "a"], ["s", "1s"]), ("ab", "s"), ("a", "bs")]

    keys = {pair: idempotency_key(*pair) for pair in pairs}

    assert len(set(keys.values())) == len(set(pairs))
    assert keys["order-7", "s"] == idempotency_key("order-7", "s")
    assert all(re.fullmatch(r"[0-9a-f]{32}", key) for key in keys.values())
