"""``journaled_tools``: labels for tools of others, and a journal around those that code calls itself."""

import asyncio

import pytest
from langchain.agents import create_agent
from langchain_core.tools import StructuredTool
from langgraph.prebuilt import ToolNode

from gnl_langchain import JournalMiddleware, journaled_model, journaled_tools
from gnl_middleware import (
    Done,
    NoActiveRunError,
    SideEffectRetryBlockedError,
    UnlabelledToolError,
    keyed,
    never,
    safe,
)
from gnl_middleware.adapter import label_of
from tests.langchain.driving import drive
from tests.langchain.scripted import ScriptedModel, calling, said, turns
from tests.langchain.troubles import Killed
from tests.langgraph.programs import agent_graph


def tool_named(name, effects=None, **metadata):
    def act(order: int) -> str:
        """Act."""
        if effects is not None:
            effects.add(f"{name} {order}")
        return f"{name} {order}"

    return StructuredTool.from_function(act, name=name, metadata=metadata or None)


def labels(tools):
    return {tool.name: label_of(tool).label for tool in tools}


def test_names_count_before_patterns_and_patterns_before_labels():
    """The first rule that fits decides, from the most special one."""
    tools = [
        tool_named("search_web"),
        tool_named("search_paid"),
        never(tool_named("search_own")),
        keyed(tool_named("pay")),
    ]

    found = journaled_tools(tools, policies={"search_paid": never, "search_*": safe})

    assert labels(found) == {
        "search_web": "safe",
        "search_paid": "never",
        "search_own": "safe",
        "pay": "keyed",
    }


def test_what_an_mcp_server_says_of_its_tools():
    """Believed only on request: readOnlyHint is safe, idempotentHint keyed, and anything else never."""
    tools = [
        tool_named("read", readOnlyHint=True),
        tool_named("put", idempotentHint=True),
        tool_named("nested", annotations={"readOnlyHint": True}),
        tool_named("send", destructiveHint=True),
        tool_named("silent"),
    ]

    assert labels(journaled_tools(tools, trust_mcp_annotations=True)) == {
        "read": "safe",
        "put": "keyed",
        "nested": "safe",
        "send": "never",
        "silent": "never",
    }
    with pytest.raises(UnlabelledToolError, match=r"nested.*put.*read.*send.*silent"):
        journaled_tools(tools)


def test_a_word_that_fits_no_tool_is_refused():
    """A typing error must not leave a tool with another label than was meant."""
    with pytest.raises(ValueError, match="serch"):
        journaled_tools([tool_named("search")], policies={"serch_*": safe}, default_policy=never)


def test_the_tools_stay_as_they_are(effects):
    """The given tools are neither labelled nor journalled afterwards."""
    tool = tool_named("act", effects)

    journaled_tools([tool], policies={"act": never})

    assert label_of(tool) is None
    assert tool.invoke({"order": 7}) == "act 7"


@pytest.mark.parametrize("how", ["arguments", "tool call"])
@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
def test_a_tool_that_code_calls_itself(journal, effects, how, way):
    """Called without any agent, it runs once, and a second attempt reads its result back."""
    (tool,) = journaled_tools([tool_named("act", effects)], policies={"act": never})
    call = {"name": "act", "args": {"order": 7}, "id": "c1", "type": "tool_call"}
    given = call if how == "tool call" else {"order": 7}

    def called():
        with journal.run("run") as run:
            found = tool.invoke(given) if way == "invoke" else asyncio.run(tool.ainvoke(given))
        return getattr(found, "content", found), run.steps_ran

    assert [called(), called()] == [("act 7", 1), ("act 7", 0)]
    assert effects.lines() == ["act 7"]
    with pytest.raises(NoActiveRunError):
        tool.invoke(given)


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
def test_under_the_middleware_a_call_is_journalled_once(journal, effects, way):
    """The agent's boundary has the step; the tool inside it adds none."""
    tools = journaled_tools([tool_named("act", effects)], policies={"act": never})
    agent = create_agent(
        ScriptedModel(script=turns(calling("act", order=7), said())), tools, middleware=[JournalMiddleware()]
    )

    drive(journal, agent, way)

    assert [step.kind for step in journal.steps("run")] == ["model", "tool", "model"]
    assert drive(journal, agent, way, offline=True).ran == 0


@pytest.mark.parametrize("beside", ["alone", "beside a namesake"])
@pytest.mark.parametrize("first", [True, False], ids=["before its sibling", "behind its sibling"])
def test_a_sibling_that_runs_first_leaves_it_to_its_own_hook(journal, effects, beside, first):
    """Two calls of one reply, one interrupted, one not begun: the one is settled, the other runs, whichever comes first."""
    names = [f"{word}_{beside.replace(' ', '_')}_{first}" for word in ("cut", "new")]
    killed = []

    def cut(order: int) -> str:
        """Act."""
        effects.add("cut")
        killed.append(1)
        raise Killed

    def new(order: int) -> str:
        """Act."""
        effects.add("new")
        return "new"

    theirs = [
        StructuredTool.from_function(body, name=name) for body, name in zip((cut, new), names, strict=True)
    ]
    policies = {names[0]: never(recover=lambda call: Done("found")), names[1]: never}
    others = journaled_tools(theirs[:1], policies={names[0]: never}) if beside != "alone" else []
    model = ScriptedModel(script=turns(calling(*(names if first else names[::-1]), order=7), said()))

    copies = [journaled_tools([tool], policies={tool.name: policies[tool.name]})[0] for tool in theirs]
    tools = {copy.name: copy for copy in copies}

    def one_by_one(state):
        """As a node of one's own would: the interrupted one alone in the first attempt, then both in their order."""
        made = state["messages"][-1].tool_calls
        asked = made if killed else [call for call in made if call["name"] == names[0]]
        return {"messages": [tools[call["name"]].invoke({**call, "type": "tool_call"}) for call in asked]}

    graph = agent_graph(journaled_model(model), one_by_one)
    with pytest.raises(Killed):
        drive(journal, graph)

    assert drive(journal, graph).reply == "Done."
    assert effects.lines() == ["cut", "new"]
    assert len(others) < 2  # kept alive until here


@pytest.mark.parametrize("beside", ["alone", "beside a namesake"])
@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
def test_its_hook_is_known_before_the_tool_is_called_again(journal, effects, way, beside):
    """After a crash the interrupted call is settled before anything else: by its own hook, whoever else has such a name."""
    name = f"act_{beside.replace(' ', '_')}_{way}"

    def act(order: int) -> str:
        """Act."""
        effects.add(f"act {order}")
        raise Killed

    async def act_async(order: int) -> str:
        return act(order)

    theirs = StructuredTool.from_function(act, act_async, name=name)
    policies = {name: never(recover=lambda call: Done("found"))}
    model = ScriptedModel(script=turns(calling(name, order=7), said()))
    others = journaled_tools([theirs], policies={name: never}) if beside != "alone" else []

    def graph():
        tools = ToolNode(journaled_tools([theirs], policies=policies))
        return agent_graph(journaled_model(model), tools)

    with pytest.raises(Killed):
        drive(journal, graph(), way)

    assert drive(journal, graph(), way).reply == "Done."
    assert effects.lines() == ["act 7"]
    assert len(others) < 2  # kept alive until here


def test_a_namesake_hides_no_call_that_nobody_can_settle(journal, effects):
    """Nothing tells whether the call happened: the run stops when it comes to it, and the model is not asked."""

    def act(order: int) -> str:
        """Act."""
        effects.add(f"act {order}")
        raise Killed

    theirs = StructuredTool.from_function(act, name="act_unclear")
    model = ScriptedModel(script=turns(calling("act_unclear", order=7), said()))
    graph = agent_graph(
        journaled_model(model), ToolNode(journaled_tools([theirs], policies={"act_unclear": never}))
    )
    others = journaled_tools([theirs], policies={"act_unclear": never(recover=lambda call: Done("found"))})
    with pytest.raises(Killed):
        drive(journal, graph)

    with pytest.raises(SideEffectRetryBlockedError):
        drive(journal, graph)
    assert (effects.lines(), len(model.asked), len(others)) == (["act 7"], 1, 1)
