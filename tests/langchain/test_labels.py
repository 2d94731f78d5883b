"""Which replay label a tool has, and what happens to a tool that has none."""

import warnings

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, ModelRetryMiddleware
from langchain_core.messages import ToolMessage
from langchain_core.tools import tool
from langgraph.errors import GraphBubbleUp

from gnl_langchain import JournalMiddleware
from gnl_middleware import Done, UnlabelledToolError, keyed, never, safe
from tests.langchain.driving import WAYS, drive
from tests.langchain.scripted import ScriptedModel, calling, said, turns


def find(call):
    return Done("found")


@never(recover=find)
def labelled(order: int) -> str:
    """Refund an order."""
    return f"refunded {order}"


def unlabelled(order: int) -> str:
    """Look an order up."""
    return f"order {order}"


def another(order: int) -> str:
    """Cancel an order."""
    return f"cancelled {order}"


def asking_for(*names, tools, **options):
    """A model that calls these tools, and an agent that journals with these options."""
    model = ScriptedModel(script=turns(calling(*names, order=7), said()))
    return model, create_agent(model, tools, middleware=[JournalMiddleware(**options)])


def recorded_labels(journal):
    return {step.name: step.policy for step in journal.steps("run") if step.kind == "tool"}


@pytest.mark.parametrize(
    ("options", "label"),
    [
        ({}, "never"),
        ({"default_policy": safe}, "never"),
        ({"safe": ["labelled"]}, "safe"),
        ({"safe": [labelled], "default_policy": never}, "safe"),
        ({"keyed": [labelled]}, "keyed"),
        ({"policies": {"labelled": keyed}, "safe": [labelled]}, "keyed"),
        ({"policies": {"labelled": safe}, "default_policy": never}, "safe"),
        ({"policies": {"label*": safe}}, "safe"),
        ({"policies": {"label*": safe, "labelled": keyed}}, "keyed"),
        ({"policies": {"label*": keyed, "*": safe}}, "keyed"),
        ({"policies": {"label*": safe}, "keyed": [labelled]}, "keyed"),
    ],
)
def test_the_nearer_label_wins(journal, options, label):
    """Precedence: ``policies=``, then the lists, then the label on the tool, then the default; names before patterns."""
    _, agent = asking_for("labelled", tools=[labelled], **options)

    drive(journal, agent)

    assert recorded_labels(journal) == {"labelled": label}


def test_default_policy_is_for_those_without_a_label(journal):
    """``default_policy=`` labels what nobody labelled, and only that."""
    _, agent = asking_for(
        "labelled",
        "unlabelled",
        "another",
        tools=[labelled, unlabelled, another],
        default_policy=keyed,
        safe=["another"],
    )

    drive(journal, agent)

    assert recorded_labels(journal) == {"labelled": "never", "unlabelled": "keyed", "another": "safe"}


def test_a_list_that_repeats_a_label_keeps_its_options(journal):
    """``never=[tool]`` on a tool labelled ``never(recover=…)`` says the same again, and ``recover`` stays."""
    middleware = JournalMiddleware(never=[labelled])

    policy = middleware._labels.of_call("labelled", labelled)

    assert policy == never(recover=find)


@pytest.mark.parametrize("where", ["under", "over", "value"])
def test_a_tool_can_be_labelled_under_and_over_its_decorator(journal, where):
    """``@tool`` over ``@never``, ``@never`` over ``@tool`` and ``never(tool)`` label the same."""

    def refund(order: int) -> str:
        """Refund an order."""
        return f"refunded {order}"

    made = {
        "under": lambda: tool(never(refund)),
        "over": lambda: never(tool(refund)),
        "value": lambda: never(refund),
    }
    _, agent = asking_for("refund", tools=[made[where]()])

    drive(journal, agent)

    assert recorded_labels(journal) == {"refund": "never"}


def test_labelling_a_tool_leaves_the_tool_as_it_was():
    """``never(tool)`` gives a labelled copy; the tool itself stays unlabelled."""
    original = tool(unlabelled)
    before = original.model_dump()

    copy = never(original)

    assert original.model_dump() == before
    assert copy is not original
    assert copy.name == original.name


@pytest.mark.parametrize("way", WAYS)
class TestToolsWithoutALabel:
    def test_all_are_named_before_the_model_is_asked(self, journal, way):
        """The error names every tool without a label and shows a line to add; nothing was asked and nothing ran."""
        model, agent = asking_for("unlabelled", tools=[labelled, unlabelled, another])

        with pytest.raises(UnlabelledToolError) as caught:
            drive(journal, agent, way)

        assert caught.value.tools == ("another", "unlabelled")
        assert "JournalMiddleware(never=['another'])" in str(caught.value)
        assert isinstance(caught.value, GraphBubbleUp)
        assert model.asked == []
        assert journal.steps("run") == []

    def test_a_retry_around_does_not_hide_it(self, journal, way):
        """``ModelRetryMiddleware`` neither retries the refusal nor turns it into an answer."""
        model = ScriptedModel(script=turns(said()))
        retry = ModelRetryMiddleware(max_retries=2, initial_delay=0, on_failure="continue")
        agent = create_agent(model, [unlabelled], middleware=[retry, JournalMiddleware()])

        with pytest.raises(UnlabelledToolError):
            drive(journal, agent, way)

        assert model.asked == []

    @pytest.mark.parametrize("careful", [True, False], ids=["propagates", "swallowed"])
    def test_a_tool_that_is_added_later_is_refused_before_it_runs(self, journal, effects, way, careful):
        """A tool that another middleware adds when it is called has no label: its body does not begin, and nobody hides it."""

        def smuggled(order: int) -> str:
            """Refund an order."""
            effects.add("refund")
            return "refunded"

        def sorry(error, request):
            if careful:
                raise error
            return ToolMessage(f"sorry: {error}", tool_call_id=request.tool_call["id"])

        class Smuggler(AgentMiddleware):
            def wrap_tool_call(self, request, handler):
                try:
                    return handler(request.override(tool=tool(smuggled)))
                except Exception as error:  # noqa: BLE001
                    return sorry(error, request)

            async def awrap_tool_call(self, request, handler):
                try:
                    return await handler(request.override(tool=tool(smuggled)))
                except Exception as error:  # noqa: BLE001
                    return sorry(error, request)

        model = ScriptedModel(script=turns(calling("smuggled", order=7), said()))
        agent = create_agent(
            model, [unlabelled], middleware=[Smuggler(), JournalMiddleware(safe=["unlabelled"])]
        )

        with pytest.raises(UnlabelledToolError) as caught:
            drive(journal, agent, way)

        assert caught.value.tools == ("smuggled",)
        assert len(model.asked) == 1
        assert effects.lines() == []


def test_tools_that_the_provider_runs_need_no_label(journal):
    """A tool given as a dictionary runs at the provider: there is nothing here to label or to repeat."""
    model = ScriptedModel(script=turns(said()))
    agent = create_agent(model, [{"type": "web_search"}], middleware=[JournalMiddleware()])

    driven = drive(journal, agent)

    assert driven.reply == "Done."


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"safe": ["labelled"], "never": ["labelled"]}, "labelled both safe and never"),
        ({"keyed": [labelled], "safe": ["labelled"]}, "labelled both safe and keyed"),
    ],
    ids=["names", "function-and-name"],
)
def test_two_labels_in_the_lists_are_a_conflict(options, match):
    """A tool in two lists is refused when the middleware is made."""
    with pytest.raises(ValueError, match=match):
        JournalMiddleware(**options)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("options", [{"safe": ["labeled"]}, {"policies": {"labeled": safe}}], ids=str)
def test_a_label_for_no_tool_is_refused_before_a_tool_runs(journal, effects, options, way):
    """A misspelt name would leave a tool with another label than was meant: it is an error that lists the tools."""

    @never
    def labelled(order: int) -> str:
        """Refund an order."""
        effects.add("refunded")
        return "refunded"

    _, agent = asking_for("labelled", tools=[labelled], **options)

    with pytest.raises(
        ValueError, match=r"unknown tools \['labeled'\]; the agent's tools are \['labelled'\]"
    ):
        drive(journal, agent, way)

    assert effects.lines() == []


def test_a_pattern_for_no_tool_is_refused_before_a_tool_runs(journal):
    """The same holds for a misspelt pattern."""
    _, agent = asking_for("labelled", tools=[labelled], policies={"labeled_*": safe})

    with pytest.raises(ValueError, match=r"unknown tools \['labeled_\*'\]"):
        drive(journal, agent)


class Narrowing(AgentMiddleware):
    """Shows the model one tool in each round, as tool selectors do."""

    def narrowed(self, request):
        rounds = sum(message.type == "ai" for message in request.messages)
        return request.override(tools=[request.tools[rounds % len(request.tools)]])

    def wrap_model_call(self, request, handler):
        return handler(self.narrowed(request))

    async def awrap_model_call(self, request, handler):
        return await handler(self.narrowed(request))


@pytest.mark.parametrize("way", WAYS)
def test_a_tool_that_the_model_is_not_shown_now_is_no_unknown_tool(journal, way):
    """Where another middleware shows the model some tools at a time, the labels of the others are right all the same."""
    model = ScriptedModel(script=turns(calling("unlabelled", order=7), calling("another", order=7), said()))
    journaling = JournalMiddleware(safe=["unlabelled"], never=["another"])
    agent = create_agent(model, [unlabelled, another], middleware=[Narrowing(), journaling])

    drive(journal, agent, way)

    assert recorded_labels(journal) == {"unlabelled": "safe", "another": "never"}


def test_what_has_no_name_cannot_be_labelled():
    """A label for something that is neither a tool nor a function nor a name is a TypeError."""
    with pytest.raises(TypeError, match="neither a tool nor a function nor a name"):
        JournalMiddleware(safe=[object()])


class Outer(AgentMiddleware):
    """Another middleware around model calls."""

    def wrap_model_call(self, request, handler):
        return handler(request)

    async def awrap_model_call(self, request, handler):
        return await handler(request)


@pytest.mark.parametrize("way", WAYS)
def test_it_warns_once_when_it_is_not_last(journal, way):
    """A middleware after it changes what was recorded already: it says so, once, and works on."""
    model = ScriptedModel(script=turns(calling("labelled", order=7), said()))
    agent = create_agent(model, [labelled], middleware=[JournalMiddleware(), Outer()])

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        drive(journal, agent, way)

    assert [str(warning.message).partition(":")[0] for warning in caught] == [
        "JournalMiddleware is not the last of middleware=[...]"
    ]


@pytest.mark.parametrize("way", WAYS)
def test_it_is_silent_when_it_is_last(journal, way):
    """Put where it belongs it warns of nothing, whatever stands before it."""
    model = ScriptedModel(script=turns(calling("labelled", order=7), said()))
    agent = create_agent(model, [labelled], middleware=[Outer(), JournalMiddleware()])

    driven = drive(journal, agent, way)

    assert driven.reply.strip() == "Done."
