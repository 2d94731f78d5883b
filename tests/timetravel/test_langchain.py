"""Forks of a LangChain agent: another future from a reply on, without a second effect in the world."""

import pytest
from langchain.agents import create_agent

from gnl_langchain import JournalCallbackHandler, JournalMiddleware, run_durable
from gnl_middleware import Done, Failed, ForkedEffectError, ForkRefusedError
from tests.langchain.scripted import QUESTION, ScriptedModel, calling, said, texts
from tests.timetravel.stored import payload_bytes

ON_BOTH = {"test_an_edited_outcome_leads_elsewhere", "test_payloads_are_shared"}


def support_agent(effects, script, model_name="scripted"):
    """Looks a customer up, charges, and mails."""

    def lookup(order: int) -> str:
        """Look up."""
        effects.add("lookup")
        return "standard"

    def charge(order: int) -> str:
        """Charge the card."""
        effects.add("charge")
        return "charged"

    def mail(order: int) -> str:
        """Mail the customer."""
        effects.add("mail")
        return "mailed"

    model = ScriptedModel(script=script, model_name=model_name)
    middleware = JournalMiddleware(safe=[lookup], never=[charge, mail])
    return create_agent(model, [lookup, charge, mail], middleware=[middleware]), model


def by_customer(messages):
    """Mails a gold customer only; says what the tools said."""
    told = texts(messages[1:])
    if len(messages) == 1:
        return calling("lookup", order=7)
    if len(messages) == 3:
        return calling("charge", order=7)
    if len(messages) == 5 and "gold" in told:
        return calling("mail", order=7)
    return said(" ".join(text for text in told if text))


def first_run(journal, effects):
    agent, model = support_agent(effects, by_customer)
    result = run_durable(agent, QUESTION, run_id="order-7", journal=journal)
    return result, model


def go_on(journal, effects, run_id, script=by_customer, **options):
    agent, model = support_agent(effects, script)
    return run_durable(agent, QUESTION, run_id=run_id, journal=journal, **options), model


def test_only_what_is_behind_the_cut_is_asked(journal, effects):
    """A fork goes on from its cut: what is before it is read back, and the source stays as it is."""
    first_run(journal, effects)
    source = journal.steps("order-7")
    journal.fork("order-7", "order-7-b", before="charge", effects=True)

    result, model = go_on(journal, effects, "order-7-b", lambda messages: said(f"stopped at {len(messages)}"))

    assert [step.number for step in source] == [1, 2, 3, 4, 5]
    assert result["messages"][-1].text == "stopped at 3"
    assert len(model.asked) == 1
    assert effects.lines() == ["lookup", "charge"]
    assert [(step.number, step.kind, step.name) for step in journal.steps("order-7-b")] == [
        (1, "model", "scripted"),
        (2, "tool", "lookup"),
        (3, "model", "scripted"),
    ]
    assert journal.steps("order-7") == source


def test_an_edited_outcome_leads_elsewhere(journal, effects):
    """What if the customer had been gold: the model sees the edited outcome as the tool's, and no effect happens twice."""
    first_run(journal, effects)
    fork = journal.fork(
        "order-7", "what-if", before=3, edits={"lookup": Done("gold")}, by="ada", note="trial"
    )

    with pytest.raises(ForkedEffectError) as caught:
        go_on(journal, effects, "what-if")

    assert (fork.forked_from, fork.effects, fork.status) == ("order-7", False, "interrupted")
    assert caught.value.tool == "charge"
    assert caught.value.arguments == {"order": 7}
    assert effects.lines() == ["lookup", "charge"]
    journal.resolve("what-if", caught.value.step_key, Done("charged in mind"), by="ada")
    with pytest.raises(ForkedEffectError, match="mail"):
        go_on(journal, effects, "what-if")
    journal.resolve("what-if", "mail", Done("mailed in mind"), by="ada")

    result, model = go_on(journal, effects, "what-if")

    assert result["messages"][-1].text == "gold charged in mind mailed in mind"
    assert len(model.asked) == 1
    assert effects.lines() == ["lookup", "charge"]
    (mailed,) = [
        message for message in result["messages"] if message.type == "tool" and "mail" in message.name
    ]
    assert (mailed.content, mailed.tool_call_id, mailed.status) == (
        "mailed in mind",
        "call_0_mail",
        "success",
    )


def test_an_edited_failure_is_the_tools_error(journal, effects):
    """What if the tool had failed: its error handling sees the edited error, each time that the fork is read back."""
    first_run(journal, effects)
    journal.fork("order-7", "what-if", before=3, edits={2: Failed("no such customer")})

    for _ in range(2):
        with pytest.raises(Exception, match="no such customer"):
            go_on(journal, effects, "what-if")

    assert effects.lines() == ["lookup", "charge"]


def test_a_reply_and_what_a_reply_follows_from_stay(journal, effects):
    """A reply cannot be edited, nor an outcome that a kept reply has seen; the error says where to cut instead."""
    first_run(journal, effects)

    with pytest.raises(ForkRefusedError, match="is a model reply"):
        journal.fork("order-7", "b", before="charge", edits={1: Done("hello")})
    with pytest.raises(ForkRefusedError, match=r"the reply in step 3 follows .* \(before=3\)"):
        journal.fork("order-7", "b", edits={"lookup": Done("gold")})
    with pytest.raises(ForkRefusedError, match="is not kept"):
        journal.fork("order-7", "b", before=3, edits={"charge": Done("charged")})
    assert [run.run_id for run in journal.runs()] == ["order-7"]

    assert journal.fork("order-7", "b", before=3, edits={"lookup": Done("gold")}).run_id == "b"


def test_with_effects_the_future_happens(journal, effects):
    """With effects=True the fork is a run like any other: what is behind the cut happens, once."""
    first_run(journal, effects)
    journal.fork("order-7", "live", before=3, edits={"lookup": Done("gold")}, effects=True)

    for _ in range(2):
        result, _ = go_on(journal, effects, "live")

    assert result["messages"][-1].text == "gold charged mailed"
    assert effects.lines() == ["lookup", "charge", "charge", "mail"]


def test_a_fork_of_a_stopped_fork_can_act(journal, effects):
    """The command in the error does what it says: a fork of the fork with effects goes on from the call that was withheld."""
    first_run(journal, effects)
    journal.fork("order-7", "what-if", before=3)
    with pytest.raises(ForkedEffectError, match=r"gnl fork what-if what-if-live .*--effects"):
        go_on(journal, effects, "what-if")
    journal.fork("what-if", "what-if-live", effects=True)

    result, model = go_on(journal, effects, "what-if-live")

    assert result["messages"][-1].text == "standard charged"
    assert (len(model.asked), effects.lines()) == (1, ["lookup", "charge", "charge"])
    assert journal.diff("what-if", "what-if-live").what == "outcome"


def test_an_observer_refuses_a_fork(journal, effects):
    """A callback handler can serve nothing of what a fork keeps, so it does not begin to record over it."""
    first_run(journal, effects)
    journal.fork("order-7", "b", before="charge")
    agent, model = support_agent(effects, by_customer)
    handler = JournalCallbackHandler(journal, run_id="b")

    with pytest.raises(ValueError, match="run 'b' has a record"):
        agent.invoke(QUESTION, config={"callbacks": [handler]})

    assert (model.asked, effects.lines()) == ([], ["lookup", "charge"])


def test_payloads_are_shared(journal, effects):
    """A fork copies no payload, also a fork of a fork; an edit adds its value and keeps its arguments."""
    first_run(journal, effects)
    before = payload_bytes(journal)

    journal.fork("order-7", "b", before="charge")
    journal.fork("b", "c")

    assert payload_bytes(journal) == before
    journal.fork("c", "d", edits={"lookup": Done("gold")})
    assert payload_bytes(journal) == before + len('{"order":7}"gold"')
    assert [step.value for step in journal.steps("c")] == [
        step.value for step in journal.steps("order-7")[:2]
    ]


def test_another_input_is_refused(journal, effects):
    """A fork is of the same job: another input than the source's raises, as for the source."""
    first_run(journal, effects)
    journal.fork("order-7", "b", before="charge")
    agent, _ = support_agent(effects, by_customer)

    with pytest.raises(Exception, match="started with another input"):
        run_durable(agent, {"messages": [("user", "something else")]}, run_id="b", journal=journal)


def test_a_fork_is_replayed_strictly_and_offline(journal, effects):
    """A whole fork reads back in strict mode with everything switched off, as its source does."""
    result, _ = first_run(journal, effects)
    journal.fork("order-7", "b")

    again, model = go_on(journal, effects, "b", replay="strict", offline=True)

    assert again["messages"][-1].text == result["messages"][-1].text
    assert (model.asked, effects.lines()) == ([], ["lookup", "charge"])
