"""Forks inside of an agent that is a tool of another one, and beside it."""

import threading
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, ToolMessage

from gnl_langchain import JournalMiddleware, run_durable
from gnl_middleware import Done, ForkedEffectError, ForkRefusedError
from tests.langchain.scripted import QUESTION, ScriptedModel, said, turns

ON_BOTH = {"test_a_cut_inside_of_an_agent"}


def asks(*calls: tuple[str, dict[str, Any]]) -> AIMessage:
    """A reply that asks for these calls."""
    made = [
        {"name": name, "args": given, "id": f"call_{place}", "type": "tool_call"}
        for place, (name, given) in enumerate(calls)
    ]
    return AIMessage("", tool_calls=made)


class Family:
    """An agent that mails, and hands two tasks to an agent that looks up and charges, all at once.

    Attributes:
        inner: The inner agent's model.
        outer: The outer agent's model.
    """

    def __init__(self, effects: Any, *, first: str = "") -> None:
        self.effects = effects
        self.inner = ScriptedModel(script=self.reply, model_name="inner")
        both = asks(("delegate", {"task": "a"}), ("mail", {"to": "ann"}), ("delegate", {"task": "b"}))
        self.outer = ScriptedModel(script=turns(both, said("all done")), model_name="outer")
        # Who waits for the other one: the order in which parallel calls begin is nobody's promise.
        self.turn, self.first = threading.Event(), first

    def reply(self, messages: Any) -> AIMessage:
        """Looks up, charges what was found, and says what became of it."""
        told = [str(message.text) for message in messages if isinstance(message, ToolMessage)]
        task = str(messages[0].text)
        if not told:
            return asks(("look_up", {"task": task}))
        return asks(("charge", {"amount": told[0]})) if len(told) == 1 else said(f"{task}: {told[-1]}")

    def agent(self) -> Any:
        """The outer agent."""

        def look_up(task: str) -> str:
            """Look up."""
            self.effects.add(f"look_up {task}")
            return f"{task}5"

        def charge(amount: str) -> str:
            """Charge the card."""
            self.effects.add(f"charge {amount}")
            return f"charged {amount}"

        def mail(to: str) -> str:
            """Mail."""
            self.effects.add(f"mail {to}")
            return "mailed"

        middleware = JournalMiddleware(safe=[look_up], never=[charge])
        inner = create_agent(self.inner, [look_up, charge], middleware=[middleware])

        def delegate(task: str) -> str:
            """Hand a task on."""
            if self.first and task != self.first:
                self.turn.wait(30)
            result = inner.invoke({"messages": [("user", task)]})["messages"][-1].text
            self.turn.set()
            return result

        outer = JournalMiddleware(safe=[delegate], never=[mail])
        return create_agent(self.outer, [delegate, mail], middleware=[outer])


def run(journal, family, run_id, **options):
    return run_durable(family.agent(), QUESTION, run_id=run_id, journal=journal, **options)


def told(result):
    """What the outer agent's tools said, in the order of the reply."""
    return [message.text for message in result["messages"] if isinstance(message, ToolMessage)]


def charge_of(journal, run_id, amount):
    (step,) = [
        step
        for step in journal.steps(run_id)
        if step.name == "charge" and step.arguments == {"amount": amount}
    ]
    return step


@pytest.mark.parametrize("first", ["a", "b"])
def test_a_cut_inside_of_an_agent(journal, effects, first):
    """Cut before an inner agent's charge: it goes on from there, and what ran beside it is read back, whoever was first."""
    given = run(journal, Family(effects, first=first), "order-7")
    done = sorted(effects.lines())
    journal.fork("order-7", "b", before=charge_of(journal, "order-7", "a5").key)
    family = Family(effects)

    with pytest.raises(ForkedEffectError) as caught:
        run(journal, family, "b")

    assert (caught.value.tool, caught.value.arguments) == ("charge", {"amount": "a5"})
    assert (len(family.outer.asked), [texts[0].text for texts in family.inner.asked]) == (0, ["a"])
    journal.resolve("b", caught.value.step_key, Done("charged in mind"), by="ada")
    family = Family(effects)

    result = run(journal, family, "b")

    assert told(given) == ["a: charged a5", "mailed", "b: charged b5"]
    assert told(result) == ["a: charged in mind", "mailed", "b: charged b5"]
    assert (len(family.outer.asked), [texts[0].text for texts in family.inner.asked]) == (1, ["a"])
    assert sorted(effects.lines()) == done
    assert [step.name for step in journal.steps("b")].count("delegate") == 2


def test_an_edit_inside_of_an_agent(journal, effects):
    """An inner tool's outcome is edited: the agent around it is entered again, and sees it."""
    run(journal, Family(effects, first="a"), "order-7")
    inner = charge_of(journal, "order-7", "a5")
    (looked,) = [s for s in journal.steps("order-7") if s.name == "look_up" and s.arguments == {"task": "a"}]
    journal.fork("order-7", "b", before=inner.key, edits={looked.key: Done("a9")}, effects=True)

    result = run(journal, Family(effects), "b")

    assert told(result) == ["a: charged a9", "mailed", "b: charged b5"]
    assert sorted(effects.lines()) == [
        *("charge a5", "charge a9", "charge b5", "look_up a", "look_up b", "mail ann"),
    ]


def test_what_happened_inside_of_a_kept_step_stays(journal, effects):
    """An edit inside of an agent whose outcome is kept would change nothing, so it is refused; the error says what to edit."""
    run(journal, Family(effects, first="a"), "order-7")
    last = charge_of(journal, "order-7", "b5")

    with pytest.raises(ForkRefusedError, match=r"inside of step \d+ \(delegate\), whose outcome is kept"):
        journal.fork("order-7", "b", edits={last.key: Done("charged 9")})


def test_where_nested_runs_part(journal, effects):
    """The difference is told where it began, inside of the agent, whatever order the parallel calls came in."""
    run(journal, Family(effects, first="a"), "order-7")
    run(journal, Family(effects, first="b"), "order-8")
    charge = charge_of(journal, "order-7", "a5")
    journal.fork("order-7", "b", before=charge.key, effects=True)
    family = Family(effects)
    family.inner.script = lambda messages: said("nothing to charge")
    run(journal, family, "b")

    same, apart = journal.diff("order-7", "order-8"), journal.diff("order-7", "b")

    assert (same.what, same.equal_steps) == (None, 15)
    assert (apart.what, apart.step_a.name, apart.equal_steps) == ("reply", "inner", 3)
    assert apart.step_a.key == charge.key.rsplit("/", 2)[0]
    assert "nothing to charge" in apart.difference
