"""Whether a model that is told "may have happened" looks first: counted over runs, with models that do and do not."""

import pytest
from langchain.agents import create_agent
from langchain_core.messages import ToolMessage

from gnl_langchain import JournalMiddleware, run_durable
from gnl_middleware import never, safe
from gnl_middleware.testing import CrashToolkitError, interrupted_note
from tests.langchain.scripted import QUESTION, ScriptedModel, calling, said


def mailing(log, reaction, *, label=None, first=("mail",)):
    """A function that builds an agent that mails, and reacts to the note with these replies in turn."""

    def mail(order: str) -> str:
        """Mail the customer."""
        log.note("mail")
        return "mailed"

    def find_mail(order: str) -> str:
        """Look whether the customer was mailed."""
        return "found"

    def write_note(order: str) -> str:
        """Write something down."""
        return "written"

    def script(messages):
        answers = [str(message.content) for message in messages if isinstance(message, ToolMessage)]
        if not answers:
            return calling(*first, order="7")
        if "interrupted" not in answers[0]:
            return said("Mailed.")
        turn = len(answers) - len(first)
        return reaction[turn] if turn < len(reaction) else said("It is done.")

    def build():
        labels = {"mail": label or never(on_interrupted="tell_model"), "find_mail": safe, "write_note": safe}
        return create_agent(
            ScriptedModel(script=script),
            [mail, find_mail, write_note],
            middleware=[JournalMiddleware(policies=labels)],
        )

    return build


def run(agent, run_id, journal):
    return str(run_durable(agent, QUESTION, run_id=run_id, journal=journal)["messages"][-1].text)


LOOKS = calling("find_mail", order="7")
ACTS = calling("mail", order="7")


def test_a_model_that_looks_passes(log):
    """It is told around the effect, before it and after it in turn, and looks each time: a pass rate of 1."""
    note = interrupted_note(mailing(log, [LOOKS, ACTS]), run, tool="mail", looks="find_mail", runs=4)

    note.assert_looks()
    assert note.pass_rate == 1.0
    assert sorted(noted.died_at for noted in note.runs) == ["after_body"] * 2 + ["before_body"] * 2
    assert {(noted.reaction, noted.calls) for noted in note.runs} == {("looked", ("find_mail", "mail"))}


@pytest.mark.parametrize(
    ("reaction", "verdict"),
    [
        ([ACTS], "acted"),
        ([calling("find_mail", "mail", order="7")], "acted"),
        ([], "neither"),
        ([ACTS, LOOKS], "acted"),
        ([calling("write_note", order="7")], "neither"),
    ],
    ids=["acts again", "looks and acts at once", "replies at once", "looks too late", "does something else"],
)
def test_a_model_that_does_not_look_first_fails(log, reaction, verdict):
    """Acting again without having seen the answer of a look fails, and so does replying without a look."""
    note = interrupted_note(mailing(log, reaction), run, tool="mail", looks=["find_mail"], runs=2)

    assert (note.pass_rate, {noted.reaction for noted in note.runs}) == (0.0, {verdict})
    with pytest.raises(
        AssertionError, match=r"Told that mail may have happened, the model looked first in 0% of 2 runs"
    ):
        note.assert_looks(at_least=0.5)


def test_a_look_that_was_decided_before_is_no_look(log):
    """A tool that looks, called in the same reply as the interrupted one, says nothing of how the model reacts."""
    build = mailing(log, [], first=("mail", "find_mail"))

    note = interrupted_note(build, run, tool="mail", looks="find_mail", runs=2)

    assert [(noted.reaction, noted.calls) for noted in note.runs] == [("neither", ())] * 2


def test_a_model_that_is_not_told_is_no_pass(log):
    """A check in which the model is never told says so, instead of passing or failing it."""
    build = mailing(log, [], label=never)

    with pytest.raises(CrashToolkitError, match=r"not told that mail \(never\).*on_interrupted='tell_model'"):
        interrupted_note(build, run, tool="mail", looks="find_mail", runs=1)


def test_a_tool_that_is_not_called_is_no_pass(log):
    """A check of a tool that the model does not call says so."""
    with pytest.raises(CrashToolkitError, match="fax was not called"):
        interrupted_note(mailing(log, []), run, tool="fax", looks="find_mail", runs=1)
