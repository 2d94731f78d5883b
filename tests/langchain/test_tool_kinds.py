"""Tools of every kind: unwrapped, recorded and replayed they give the agent the same, and a replay runs none."""

from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import ModelCallLimitMiddleware

from gnl_langchain import JournalMiddleware
from gnl_middleware import Done, Journal, NotDone, never, safe
from tests.langchain.driving import WAYS, drive, drive_plain
from tests.langchain.processes import in_process
from tests.langchain.scripted import ScriptedModel, calling, said, turns
from tests.langchain.tool_kinds import KINDS, Act, TicketState
from tests.worlds import Log

LABELS = {"never": never, "safe": safe}
CASES = [
    (kind, way) for kind, spec in KINDS.items() for way in WAYS if way.startswith("a") or not spec.only_async
]


def shown(state: dict[str, Any]) -> dict[str, Any]:
    """An agent's last state without the ids that LangGraph makes up for messages."""
    messages = [message.model_dump(exclude={"id"}) for message in state["messages"]]
    return {**state, "messages": messages}


def model_for(order: int = 7) -> ScriptedModel:
    return ScriptedModel(script=turns(calling("act", order=order), said()))


def agent_of(model: ScriptedModel, tool: Any, *middleware: Any) -> Any:
    return create_agent(model, [tool], middleware=list(middleware), state_schema=TicketState)


@pytest.mark.parametrize("label", LABELS)
@pytest.mark.parametrize(("kind", "way"), CASES)
def test_unwrapped_recorded_and_replayed_are_equal(journal, effects, kind, way, label):
    """Whatever a tool returns, the agent's state is the same without a journal, with one, and read back from it."""
    make = KINDS[kind].make
    model = model_for()
    agent = agent_of(model, make(effects), JournalMiddleware(policies={"act": LABELS[label]}))

    unwrapped = drive_plain(agent_of(model_for(), make(effects)), way)
    recorded = drive(journal, agent, way)
    asked = len(model.asked)
    replayed = drive(journal, agent, way)

    assert shown(recorded.state) == shown(unwrapped)
    assert shown(replayed.state) == shown(unwrapped)
    assert replayed.chunks == recorded.chunks
    assert effects.lines() == ["ran"] * 2
    assert (replayed.ran, len(model.asked)) == (0, asked)


@pytest.mark.parametrize(("kind", "way"), [("Command", "invoke"), ("content_and_artifact", "astream")])
def test_another_process_reads_the_same(tmp_path, effects, kind, way):
    """What was recorded here is read back as the same values in a process that was not there."""
    first = in_process(shown_in_process, tmp_path, kind, way)

    second = in_process(shown_in_process, tmp_path, kind, way)

    assert first.value[1] == 3
    assert second.value == [first.value[0], 0]
    assert effects.lines() == ["ran"]


def shown_in_process(folder, kind, way):
    """Runs in a process of its own."""
    tool = KINDS[kind].make(Log(folder / "effects"))
    with Journal(folder / "runs.db") as journal:
        driven = drive(journal, agent_of(model_for(), tool, JournalMiddleware(never=["act"])), way)
    return [repr(shown(driven.state)), driven.ran]


RECOVERED = {
    "function": "found",
    "structured": {"order": 7, "found": True},
    "content_and_artifact": ("found", {"raw": b"\x00"}),
    "BaseTool": "found",
    "content-blocks": [{"type": "text", "text": "found"}],
    "return_direct": "found",
}


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
@pytest.mark.parametrize("kind", RECOVERED)
def test_a_recovered_value_is_formatted_as_the_tools_result(tmp_path, effects, kind, way):
    """``Done(value)`` gives the raw value; the agent gets what it would have got had the tool returned it."""
    crashed = in_process(recovered_in_process, tmp_path, kind, way, crash_at="act:after_body")

    ended = in_process(recovered_in_process, tmp_path, kind, way)

    returned = agent_of(model_for(), returning(kind, RECOVERED[kind]))
    assert crashed.died
    assert ended.value == repr(shown(drive_plain(returned, way))), ended
    assert effects.lines() == ["ran"]


def recovered_in_process(folder, kind, way):
    """Runs in a process of its own."""
    tool = KINDS[kind].make(Log(folder / "effects"))
    policy = never(recover=lambda call: Done(RECOVERED[kind]))
    with Journal(folder / "runs.db") as journal:
        agent = agent_of(model_for(), tool, JournalMiddleware(policies={"act": policy}))
        return repr(shown(drive(journal, agent, way).state))


class Returning(Act):
    value: Any

    def _run(self, order: int) -> Any:
        return self.value

    async def _arun(self, order: int) -> Any:
        return self.value


def returning(kind: str, value: Any) -> Any:
    """The kind of tool, returning this value."""
    if kind == "BaseTool":
        return Returning(effects=None, value=value)
    if kind == "function":

        def act(order: int) -> Any:
            """Act."""
            return value

        return act
    return KINDS[kind].make(Log).model_copy(update={"func": lambda order: value})


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
def test_a_call_that_did_not_happen_runs_once(tmp_path, effects, way):
    """``NotDone()`` runs the tool: once, since the process had died before its body."""
    crashed = in_process(not_done_in_process, tmp_path, way, crash_at="act:before_body")

    ended = in_process(not_done_in_process, tmp_path, way)

    assert crashed.died
    assert ended.value == ["plain 7", "Done."], ended
    assert effects.lines() == ["ran"]


def not_done_in_process(folder, way):
    """Runs in a process of its own."""
    tool = KINDS["function"].make(Log(folder / "effects"))
    policy = never(recover=lambda call: NotDone())
    with Journal(folder / "runs.db") as journal:
        agent = agent_of(model_for(), tool, JournalMiddleware(policies={"act": policy}))
        return [str(message.content) for message in drive(journal, agent, way).state["messages"][2:]]


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
@pytest.mark.parametrize("kind", ["function", "content_and_artifact", "Command"])
def test_the_model_can_be_told_that_a_call_may_have_happened(tmp_path, effects, kind, way):
    """``tell_model``: the interrupted call's answer says what is unknown and what to do, whatever kind of tool it is."""
    crashed = in_process(told_in_process, tmp_path, kind, way, crash_at="act:after_body")

    ended = in_process(told_in_process, tmp_path, kind, way)

    assert crashed.died
    assert len(ended.value) == 1, ended
    assert "This call of act was interrupted" in ended.value[0]
    assert "may or may not have happened" in ended.value[0]
    assert effects.lines() == ["ran"]


def told_in_process(folder, kind, way):
    """Runs in a process of its own."""
    tool = KINDS[kind].make(Log(folder / "effects"))
    model = model_for()
    with Journal(folder / "runs.db") as journal:
        agent = agent_of(model, tool, JournalMiddleware(never=["act"]))
        drive(journal, agent, way, on_interrupted="tell_model")
    return [str(message.content) for message in model.asked[-1] if message.type == "tool"]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", ["structured", "BaseTool", "content_and_artifact"])
def test_tools_models_and_middlewares_of_the_user_stay_as_they_were(journal, effects, kind, way):
    """Nothing that the user made is changed: not the model, not the tool, not the other middlewares."""
    model, tool, limit = model_for(), KINDS[kind].make(effects), ModelCallLimitMiddleware(run_limit=9)
    before = [fields_of(model), fields_of(tool), dict(vars(limit))]

    drive(journal, agent_of(model, tool, limit, JournalMiddleware(never=["act"])), way)

    assert [fields_of(model), fields_of(tool), vars(limit)] == before
    assert type(model) is ScriptedModel


def fields_of(made: Any) -> dict[str, Any]:
    """The fields that a user can set; what LangChain caches beside them is its own."""
    return {name: getattr(made, name) for name in type(made).model_fields if name != "asked"}


def test_an_answer_that_cannot_be_journalled_is_done_and_never_runs_again(journal, effects):
    """The effect happened, so it is not repeated; its value is lost, now and on every replay."""

    def act(order: int) -> Any:
        """Act."""
        effects.add("ran")
        return "content", object()

    tool = KINDS["content_and_artifact"].make(effects).model_copy(update={"func": act})
    agent = agent_of(model_for(), tool, JournalMiddleware(never=["act"]))

    found = []
    for _ in range(2):
        with pytest.raises(Exception, match="cannot be journalled without loss") as caught:
            drive(journal, agent)
        found.append((caught.type.__name__, caught.value.path, caught.value.type_name))

    assert found == [("UnserializableValueError", "$.artifact", "object")] * 2
    assert effects.lines() == ["ran"]
