"""A model call in a conversation that a server keeps, cut off: the command line shows and decides it."""

import dataclasses

import pytest

from gnl_middleware import Journal, SideEffectRetryBlockedError, never
from gnl_middleware.adapter import perform, session_for
from tests.functions.asking import model_call


class Killed(BaseException):
    """Ends the attempt in the middle of the call."""


def die():
    raise Killed


def ask(journal_path, reply):
    call = dataclasses.replace(model_call("hello", []), policy=never)
    with Journal(journal_path) as journal, journal.run("chat-7"):
        return perform(session_for(name="model"), call, reply)


def test_it_is_decided_from_the_command_line(gnl, journal_path):
    """What is shown are the decisions that there are: ask again, or give it up; the reply itself is lost."""
    with pytest.raises(Killed):
        ask(journal_path, die)
    with pytest.raises(SideEffectRetryBlockedError) as raised:
        ask(journal_path, lambda: "again")
    shown = gnl("show", "chat-7").output
    refused = gnl("resolve", "chat-7", "1", "--happened", "--by", "ada", exit_code=1).output
    gnl("resolve", "chat-7", "1", "--did-not-happen", "--by", "ada")

    reply = ask(journal_path, lambda: "again")

    assert "--did-not-happen" in shown
    assert "--failed" in shown
    for text in (shown, str(raised.value)):
        assert "--happened" not in text
    assert "reply" in refused
    assert reply == "again"
