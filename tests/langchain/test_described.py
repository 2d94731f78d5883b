"""A model call describes only what is new in its history, and never takes what was changed in place for what it was."""

import gc
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import tools_condition
from langgraph.types import Command

from gnl_langchain import JournalCallbackHandler, JournalMiddleware, described, journaled_model, tools
from gnl_langchain.requests import identified, normalised
from gnl_langgraph import JournalToolNode
from gnl_middleware import DivergenceError, Journal, never
from gnl_middleware.adapter import Session
from tests.langchain.scripted import ScriptedModel, said

TURNS = 12
QUESTION = {"messages": [("user", "count to twelve")]}
LIMIT = {"recursion_limit": 10 * TURNS}


def count(number: int) -> str:
    """Say a number."""
    return f"number {number}"


def count_on(number: int) -> Any:
    """Say a number, by a command that updates the state of the graph."""
    answer = ToolMessage(f"number {number}", tool_call_id=f"call_{number}")
    return Command(update={"messages": [answer]})


def counting(messages: Any, name: str = "count") -> AIMessage:
    """The next call of the tool, or the end."""
    number = sum(isinstance(message, AIMessage) for message in messages)
    if number == TURNS:
        return said()
    call = {"name": name, "args": {"number": number}, "id": f"call_{number}", "type": "tool_call"}
    return AIMessage("", tool_calls=[call])


def invoked(agent: Any) -> int:
    """Run an agent to its end: how many messages its model was told the last time."""
    return len(agent.invoke(QUESTION, LIMIT)["messages"]) - 1


def created() -> int:
    return invoked(
        create_agent(ScriptedModel(script=counting), [count], middleware=[JournalMiddleware(never=["count"])])
    )


def graph() -> int:
    model = journaled_model(ScriptedModel(script=counting)).bind_tools([count])
    built = StateGraph(MessagesState)
    built.add_node("ask", lambda state: {"messages": [model.invoke(state["messages"])]})
    built.add_node("tools", JournalToolNode([count], never=["count"]))
    built.add_edge(START, "ask")
    built.add_conditional_edges("ask", tools_condition)
    built.add_edge("tools", "ask")
    return invoked(built.compile())


def loop() -> int:
    model, messages = journaled_model(ScriptedModel(script=counting)), [HumanMessage("count")]
    while not messages[1:] or messages[-2].tool_calls:
        reply = model.invoke(messages)
        messages += [reply, ToolMessage("number", tool_call_id=f"call_{len(messages) // 2}")]
    return len(messages) - 2


def made_anew() -> int:
    """A loop that reads its history anew for each request, as from a database."""
    model, messages = journaled_model(ScriptedModel(script=counting)), [HumanMessage("count")]
    while not messages[1:] or messages[-2].tool_calls:
        reply = model.invoke([message.model_copy(deep=True) for message in messages])
        messages += [reply, ToolMessage("number", tool_call_id=f"call_{len(messages) // 2}")]
    return len(messages) - 2


LOOPS: dict[str, Callable[[], int]] = {
    "create_agent": created,
    "LangGraph": graph,
    "journaled_model": loop,
    "made anew": made_anew,
}


@pytest.fixture
def descriptions(monkeypatch):
    """Counts how many messages are described."""
    described_so_far: list[BaseMessage] = []

    def counted(message: BaseMessage) -> dict[str, Any]:
        described_so_far.append(message)
        return normalised(message)

    monkeypatch.setattr(described, "normalised", counted)
    monkeypatch.setattr(tools, "normalised", counted)
    return described_so_far


@pytest.mark.parametrize("way", LOOPS)
def test_each_message_of_a_run_is_described_once(journal, descriptions, way):
    """However often a model is told a message, it is described once: live, and once more when the run is read back."""
    for attempt in ("live", "read back"):
        with journal.run("run") as run:
            messages = LOOPS[way]()

        assert messages == 2 * TURNS + 1
        assert len(descriptions) == messages, attempt
        assert bool(run.steps_ran) is (attempt == "live")
        descriptions.clear()


def test_each_message_that_is_watched_is_described_once(journal, descriptions):
    """The callback handler, too, describes only what is new, when it records and when it verifies."""
    for verify in (False, True):
        handler = JournalCallbackHandler(journal, run_id="run", safe=["count"], verify=verify)
        state = create_agent(ScriptedModel(script=counting), [count]).invoke(
            QUESTION, {**LIMIT, "callbacks": [handler]}
        )

        assert len(descriptions) == len(state["messages"]) - 1 == 2 * TURNS + 1
        descriptions.clear()


def test_command_of_a_tool_is_found_in_the_history_without_describing_it(journal, descriptions):
    """A tool that returns a command has each message of its own described, and not the history that it may be part of."""
    model = ScriptedModel(script=lambda messages: counting(messages, "count_on"))
    agent = create_agent(model, [count_on], middleware=[JournalMiddleware(never=["count_on"])])

    with journal.run("run"):
        messages = invoked(agent)

    assert len(descriptions) <= messages + TURNS


def history() -> list[BaseMessage]:
    """A conversation with something of each kind to change."""
    arguments = {"order": 1, "lines": [{"item": "cup", "price": 2.0}], "express": None}
    call = {"name": "refund", "args": arguments, "id": "call_1", "type": "tool_call"}
    return [
        SystemMessage("Be brief."),
        HumanMessage(
            [{"type": "text", "text": "Refund"}, {"type": "image", "url": "cup.png", "detail": {"zoom": 1}}]
        ),
        AIMessage("I refund it.", tool_calls=[call]),
        ToolMessage("refunded", tool_call_id="call_1", name="refund"),
    ]


def changed_argument(value: Any) -> Callable[[list[Any]], None]:
    return lambda messages: messages[2].tool_calls[0]["args"].update(order=value)


CHANGES: dict[str, Callable[[list[Any]], None]] = {
    "the text of a message": lambda messages: setattr(messages[0], "content", "Be verbose."),
    "the text of a block": lambda messages: messages[1].content[0].update(text="Do not refund"),
    "a block more": lambda messages: messages[1].content.append({"type": "text", "text": " now"}),
    "a block less": lambda messages: messages[1].content.pop(),
    "something inside of a block": lambda messages: messages[1].content[1]["detail"].update(zoom=2),
    "a text instead of blocks": lambda messages: setattr(messages[1], "content", "Refund"),
    "an argument": changed_argument(2),
    "an argument, true instead of 1": changed_argument(True),
    "an argument, 1.0 instead of 1": changed_argument(1.0),
    "an argument, text instead of 1": changed_argument("1"),
    "an argument, none instead of 1": changed_argument(None),
    "an argument more": lambda messages: messages[2].tool_calls[0]["args"].update(note="x"),
    "an argument less": lambda messages: messages[2].tool_calls[0]["args"].pop("express"),
    "another name for an argument": lambda messages: (
        messages[2].tool_calls[0]["args"].update(speed=messages[2].tool_calls[0]["args"].pop("express"))
    ),
    "inside of an argument": lambda messages: (
        messages[2].tool_calls[0]["args"]["lines"][0].update(item="mug")
    ),
    "the sign of a zero": lambda messages: messages[2].tool_calls[0]["args"]["lines"][0].update(price=-0.0),
    "what moves from one list to the next": lambda messages: (
        messages[2].tool_calls[0]["args"].update(lines=[], express=messages[2].tool_calls[0]["args"]["lines"])
    ),
    "the name of a tool": lambda messages: messages[2].tool_calls[0].update(name="pay"),
    "a call more": lambda messages: messages[2].tool_calls.append(
        {"name": "pay", "args": {}, "id": "call_2", "type": "tool_call"}
    ),
    "a call that could not be read": lambda messages: messages[2].invalid_tool_calls.append(
        {"name": "pay", "args": "{", "id": "call_2", "error": None, "type": "invalid_tool_call"}
    ),
    "the text of an answer": lambda messages: setattr(messages[3], "content", "refused"),
    "the status of an answer": lambda messages: setattr(messages[3], "status", "error"),
    "what is answered": lambda messages: setattr(messages[3], "tool_call_id", "call_2"),
    "the name of an answer": lambda messages: setattr(messages[3], "name", "pay"),
    "the role of a message": lambda messages: setattr(messages[1], "role", "developer"),
    "another message": lambda messages: messages.__setitem__(1, HumanMessage("Refund")),
    "another kind of message": lambda messages: messages.__setitem__(0, HumanMessage("Be brief.")),
    "a message less": lambda messages: messages.pop(0),
    "a message more": lambda messages: messages.insert(1, SystemMessage("Be kind.")),
}


def anew(messages: list[BaseMessage]) -> tuple[Any, Any]:
    """The messages described without anything that was described before."""
    told = tuple(normalised(message) for message in messages)
    return told, tuple(identified(message, each) for message, each in zip(messages, told, strict=True))


def exactly(found: tuple[Any, Any]) -> str:
    """What was described, type by type: for Python, True and 1.0 equal 1."""
    return repr(found)


@pytest.mark.parametrize("change", CHANGES)
def test_what_is_changed_in_place_is_described_anew(journal, change):
    """Whatever somebody changes in a message between two requests, the second is described as it is then."""
    messages = history()
    with journal.run("run") as run:
        before = described.described(run.session, messages)
        CHANGES[change](messages)

        after = described.described(run.session, messages)

    assert exactly(after) == exactly(anew(messages))
    assert after != before or exactly(after) != exactly(before)


@pytest.mark.parametrize("change", CHANGES)
def test_a_strict_replay_notices_what_is_changed_in_place(journal, change):
    """A history that is changed in place between two requests of a strict replay differs from its record."""
    model = journaled_model(ScriptedModel(script=lambda _: said()))

    def asked(edit: Callable[[list[Any]], None] | None, **options: Any) -> None:
        messages = history()
        with journal.run("run", **options):
            model.invoke(messages)
            if edit is not None:
                edit(messages)
            model.invoke([*messages, HumanMessage("and now?")])

    asked(None)

    with pytest.raises(DivergenceError):
        asked(CHANGES[change], replay="strict")


def test_what_no_description_reads_need_not_be_described_anew(journal, descriptions):
    """An id, metadata or usage that LangChain adds to a message later costs nothing."""
    messages = history()
    with journal.run("run") as run:
        described.described(run.session, messages)
        for message in messages:
            message.id = "new"
            message.response_metadata["model_name"] = "gpt"

        described.described(run.session, messages)

    assert len(descriptions) == len(messages)


class Own(HumanMessage):
    """A message of a class that says its own."""

    @property
    def role(self) -> str:
        return roles.pop(0)


roles: list[str] = []


def test_messages_of_other_classes_are_described_each_time(journal):
    """What a class of the user's says of itself may be another thing each time, so it is asked each time."""
    roles[:] = ["user"] * 2 + ["developer"] * 2
    messages: list[BaseMessage] = [Own("Hello")]
    with journal.run("run") as run:
        first, second = (described.described(run.session, messages)[0][0] for _ in range(2))

    assert (first["role"], second["role"]) == ("user", "developer")


def test_runs_and_threads_side_by_side_are_told_apart(tmp_path):
    """Eight threads in one run and eight runs at once, all with their own histories: each request is its own."""
    model = journaled_model(ScriptedModel(script=lambda _: said()))

    def talk(name: str, session: Session | None) -> None:
        messages: list[BaseMessage] = []
        for turn in range(20):
            messages.append(HumanMessage([{"type": "text", "text": f"{name} {turn}"}]))
            if session is not None:
                assert exactly(described.described(session, messages)) == exactly(anew(messages))
            else:
                messages.append(model.invoke(messages))

    def own_run(number: int) -> None:
        with journal.run(f"run-{number}"):
            talk(str(number), None)

    with Journal(tmp_path / "runs.db") as journal, ThreadPoolExecutor(8) as pool:
        with journal.run("shared") as shared:
            list(pool.map(lambda number: talk(str(number), shared.session), range(8)))
        list(pool.map(own_run, range(8)))
        for number in range(8):
            with journal.run(f"run-{number}", replay="strict", offline=True):
                talk(str(number), None)


def test_nothing_outlives_a_run(journal):
    """What was described of a run goes with it, though agent and journal are kept."""
    agent = create_agent(
        ScriptedModel(script=counting), [count], middleware=[JournalMiddleware(policies={"count": never})]
    )
    with journal.run("run") as run:
        agent.invoke(QUESTION, LIMIT)
    session = weakref.ref(run.session)
    del run

    gc.collect()

    assert session() is None
