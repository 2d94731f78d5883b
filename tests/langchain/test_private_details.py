"""Details of LangChain and LangGraph that nobody promised us: one test for each, and what breaks when it changes."""

import inspect
from contextvars import ContextVar
from typing import Annotated, Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain.chat_models import init_chat_model
from langchain.tools import InjectedState
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, ToolMessage
from langchain_core.outputs import ChatGenerationChunk
from langchain_core.runnables import RunnableLambda
from langchain_core.runnables.config import var_child_runnable_config
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Send

from gnl_langchain import journaled_model, private
from gnl_middleware.adapter import decode, encode
from tests.langchain.driving import WAYS, drive_plain
from tests.langchain.scripted import QUESTION, ScriptedModel, calling, said, turns


class Noting(AgentMiddleware):
    """Notes what its handler is called, and whether it is the model itself."""

    def __init__(self) -> None:
        super().__init__()
        self.noted: set[tuple[str, bool]] = set()

    def note(self, handler: Any) -> None:
        self.noted.add((handler.__name__, private.is_innermost(handler)))

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        self.note(handler)
        return handler(request)

    async def awrap_model_call(self, request: Any, handler: Any) -> Any:
        self.note(handler)
        return await handler(request)


class Outer(Noting):
    """Another one, since an agent takes each class once."""


@pytest.mark.parametrize("way", WAYS)
def test_the_innermost_handler_is_known_by_its_name(way):
    """Else JournalMiddleware warns when it is last, or is silent when it is not and records what others then change."""
    outer, inner = Outer(), Noting()
    agent = create_agent(ScriptedModel(script=turns(said())), [], middleware=[outer, inner])

    drive_plain(agent, way)

    assert {innermost for _, innermost in inner.noted} == {True}
    assert {innermost for _, innermost in outer.noted} == {False}
    assert {name for name, _ in inner.noted} <= set(private._INNERMOST_HANDLERS)


@pytest.mark.parametrize("way", WAYS)
def test_the_configuration_of_what_runs_is_in_a_context_variable(way):
    """Else a run that is named in the configuration is not found by models and tools that run in another context."""
    seen = []

    @tool
    def look() -> str:
        """Look."""
        seen.append(private.running_configuration().get("gnl_run_id"))
        return "seen"

    def script(messages: Any) -> Any:
        seen.append(private.running_configuration().get("gnl_run_id"))
        return turns(calling("look"), said())(messages)

    agent = create_agent(ScriptedModel(script=script), [look])

    drive_plain(agent.with_config({"configurable": {"gnl_run_id": "order-7"}}), way)

    assert seen == ["order-7"] * 3
    assert var_child_runnable_config.get() is None


@pytest.mark.parametrize("way", WAYS)
def test_a_task_of_a_graph_is_told_to_callbacks(way):
    """Else nodes are not told apart, and a resume from the middle takes the record of another turn."""
    seen = []

    def node(state: Any) -> Any:
        seen.append(private.graph_task(private.running_metadata()))
        return {"messages": []}

    graph = StateGraph(MessagesState)
    for name in ("first", "second"):
        graph.add_node(name, node)
    graph.add_edge(START, "first")
    graph.add_conditional_edges("first", lambda state: [Send("second", state), Send("second", state)])

    drive_plain(graph.compile(), way)

    assert [(task.node, task.step) for task in seen] == [("first", 1), ("second", 2), ("second", 2)]
    first, *sent = [task.path[1] for task in seen]
    assert (first, sorted(sent)) == ("first", [0, 1])  # side by side, in any order
    assert len({task.name for task in seen}) == 3
    assert private.graph_task(private.running_metadata()) is None


@pytest.mark.parametrize("way", WAYS)
def test_the_callbacks_of_what_runs_name_it_as_the_parent(way):
    """Else nobody knows which nodes are around a call, and branches that were sent to one subgraph are taken for one."""
    seen = []

    def node(state: Any) -> Any:
        seen.append(getattr(private.running_callbacks(), "parent_run_id", None))
        RunnableLambda(
            lambda value: seen.append(getattr(private.running_callbacks(), "parent_run_id", None))
        ).invoke(1, {"metadata": {"mine": 1}})
        return {"messages": []}

    graph = StateGraph(MessagesState)
    graph.add_node("only", node)
    graph.add_edge(START, "only")

    drive_plain(graph.compile(), way)

    assert None not in seen
    assert len(set(seen)) == 2


class NativeEvents(ScriptedModel):
    """A model with an event stream of its own, as providers may have."""

    def _stream_chat_model_events(self, *args: Any, **options: Any) -> Any:
        raise AssertionError("the provider's own event stream was asked")

    async def _astream_chat_model_events(self, *args: Any, **options: Any) -> Any:
        raise AssertionError("the provider's own event stream was asked")
        yield


def test_native_event_streams_are_found_by_name_and_can_be_taken_away():
    """Else the newest event stream goes to the provider past ``_stream``, and nothing of it is recorded."""
    model = NativeEvents(script=turns(said()))
    source = inspect.getsource(inspect.getmodule(BaseChatModel))

    journaled = journaled_model(model, on_no_run="passthrough")

    for name in private.NATIVE_STREAMS:
        assert f'"{name}"' in source
        assert getattr(model, name) is not None
        assert getattr(journaled, name) is None


def test_native_event_streams_come_before_the_models_own_stream():
    """Else (as above): with the hook the events bypass ``_stream``, and without it they are made from it."""
    model = NativeEvents(script=turns(said("one two")))

    with pytest.raises(AssertionError, match="own event stream"):
        list(model.stream_events("refund 7", version="v3"))
    list(journaled_model(model, on_no_run="passthrough").stream_events("refund 7", version="v3"))

    assert len(model.asked) == 1


def test_default_methods_are_those_of_the_base_class():
    """Else a model is given methods that it does not have, or loses those that it has: it streams differently."""
    overridden = {
        kind.__name__: [
            method
            for method in ("_generate", "_agenerate", "_stream", "_astream")
            if private.overrides(kind, method)
        ]
        for kind in (ScriptedModel, ChatOpenAI)
    }

    assert overridden == {
        "ScriptedModel": ["_generate", "_stream"],
        "ChatOpenAI": ["_generate", "_agenerate", "_stream", "_astream"],
    }


def test_a_copy_as_a_subclass_is_equal_field_by_field():
    """Else a journalled model loses a client, a private attribute or a setting of the original."""
    original = ChatOpenAI(model="gpt-4o-mini", api_key="test", temperature=0.5, max_retries=0)
    kind = type("Copied", (ChatOpenAI,), {})

    copy = private.copied_as(original, kind)

    assert type(copy) is kind
    assert vars(copy) == vars(original)
    assert vars(copy) is not vars(original)
    assert copy.__pydantic_fields_set__ == original.__pydantic_fields_set__
    assert copy.__pydantic_fields_set__ is not original.__pydantic_fields_set__
    assert copy.__pydantic_private__ == original.__pydantic_private__
    assert copy.__pydantic_extra__ == original.__pydantic_extra__
    assert {name for name in original.__slots__ if name.startswith("__pydantic")} == {
        "__pydantic_fields_set__",
        "__pydantic_extra__",
        "__pydantic_private__",
    }


RAW = ["text", {"order": 7}, [1, 2], None, 4.5, [{"type": "text", "text": "found"}], b"\x00"]


@pytest.mark.parametrize("raw", RAW, ids=repr)
def test_a_raw_value_is_formatted_as_a_tools_result(raw):
    """Else what ``recover`` or a person gives reaches the model in another form than the tool's own result."""

    @tool
    def act() -> Any:
        """Act."""
        return raw

    call = {"name": "act", "args": {}, "id": "call_1", "type": "tool_call"}

    formatted = private.tool_result(raw, call_id="call_1", name="act", with_artifact=False)

    assert formatted == act.invoke(call)


def test_a_raw_pair_is_content_and_artifact():
    """Else the artifact of a recovered call is lost, or shown to the model."""
    pair = private.tool_result(("found", [7]), call_id="call_1", name="act", with_artifact=True)
    alone = private.tool_result("found", call_id="call_1", name="act", with_artifact=True)
    no_id = private.tool_result("found", call_id=None, name="act", with_artifact=False)

    assert (pair.content, pair.artifact) == ("found", [7])
    assert (alone.content, alone.artifact) == ("found", None)
    assert no_id == ToolMessage("found", tool_call_id="", name="act")


def test_whoever_calls_stream_reports_the_tokens():
    """Else callbacks hear each token of a journalled model twice, or not at all: its ``_stream`` gets no run manager."""
    given = []

    class Curious(ScriptedModel):
        def _stream(self, messages: Any, stop: Any = None, run_manager: Any = None, **options: Any) -> Any:
            given.append(run_manager)
            yield ChatGenerationChunk(message=AIMessageChunk("Done.", chunk_position="last"))

    chunks = list(Curious(script=turns(said())).stream(QUESTION["messages"]))

    assert given == [None]
    assert chunks[0].text == "Done."


@pytest.mark.parametrize("way", WAYS)
def test_a_model_begins_in_the_context_in_which_it_is_told_to_callbacks(way):
    """Else nobody can say in a model call's metadata that it was read back, and tracers count its tokens twice."""
    seen = []

    class Telling(BaseCallbackHandler):
        run_inline = True

        def on_chat_model_start(self, *_: Any, metadata: Any = None, **__: Any) -> None:
            told.set(metadata)

    told: ContextVar[Any] = ContextVar("told", default=None)

    def script(messages: Any) -> Any:
        seen.append(told.get())
        return said()

    model = ScriptedModel(script=script, metadata={"mine": 1})
    agent = create_agent(model, []).with_config(callbacks=[Telling()])

    drive_plain(agent, way)

    assert [metadata["mine"] for metadata in seen] == [1]


def test_injected_arguments_are_taken_out():
    """Else a tool that code calls itself is recorded with the state that an agent injects."""

    @tool
    def look(order: int, state: Annotated[dict[str, Any], InjectedState]) -> str:
        """Look."""
        return "seen"

    assert private.shown_arguments(look, {"order": 7, "state": {"messages": []}}) == {"order": 7}
    assert private.shown_arguments(look, "text") == "text"


def test_the_text_of_a_message_is_a_string_of_its_own_class():
    """Else a tool that returns ``message.text`` has a result that cannot be journalled, or that comes back as another type."""
    text = AIMessageChunk(content="hello").text

    assert isinstance(text, private.MessageText)
    assert private.MessageText is not str
    back = decode(encode([text]))[0]
    assert (type(back), back) == (private.MessageText, "hello")


def counting(saver: Any) -> Any:
    """A graph of three nodes on a thread."""
    graph = StateGraph(MessagesState)
    for name, after in (("a", START), ("b", "a"), ("c", "b")):
        graph.add_node(name, lambda state: {"messages": []})
        graph.add_edge(after, name)
    return graph.compile(checkpointer=saver)


def test_going_on_from_a_checkpoint_saves_a_fork_of_it_first():
    """Else tasks that are resumed by a checkpoint's id are taken for those of another round, and nothing is read back."""
    graph, rounds = counting(InMemorySaver()), []
    thread: Any = {"configurable": {"thread_id": "t"}}
    graph.invoke(QUESTION, thread, durability="sync")
    older = next(state for state in graph.get_state_history(thread) if state.next == ("b",))
    last = graph.get_state(thread).metadata["step"]

    class Telling(BaseCallbackHandler):
        run_inline = True

        def on_chain_start(self, *_: Any, metadata: Any = None, **__: Any) -> None:
            if (task := private.graph_task(metadata)) is not None:
                rounds.append((task.node, task.step))

    graph.invoke(None, {**older.config, "callbacks": [Telling()]}, durability="sync")

    again = list(graph.get_state_history(thread))
    forks = [state for state in again if state.metadata["source"] == "fork"]
    assert [state.metadata["step"] for state in forks] == [older.metadata["step"] + 1]
    assert sorted(set(rounds)) == [("b", last), ("c", last + 1)]


def test_an_update_of_the_state_takes_a_round():
    """Else what a person did to a thread shifts its tasks by another number of rounds, and a resume finds other records."""
    graph = counting(InMemorySaver())
    thread: Any = {"configurable": {"thread_id": "t"}}
    graph.invoke(QUESTION, thread, interrupt_before=["c"])
    before = graph.get_state(thread).metadata

    graph.update_state(thread, {"messages": []}, as_node="b")

    after = graph.get_state(thread)
    assert (after.metadata["source"], after.metadata["step"]) == ("update", before["step"] + 1)
    assert graph.get_state(after.parent_config).metadata["step"] == before["step"]


@pytest.mark.parametrize("way", WAYS)
def test_all_handlers_are_given_one_mapping(way):
    """Else only our own handler sees in a model call's metadata that it was read back, and no tracer does."""
    given: list[tuple[Any, Any]] = []

    class Telling(BaseCallbackHandler):
        run_inline = True

        def on_chat_model_start(self, *_: Any, run_id: Any, metadata: Any = None, **__: Any) -> None:
            given.append((run_id, metadata))

    model = ScriptedModel(script=turns(said(), said()))
    agent = create_agent(model, []).with_config(callbacks=[Telling(), Telling()])

    drive_plain(agent, way)
    drive_plain(agent, way)

    (first, one), (again, same), (second, other), _ = given
    assert (first == again, one is same) == (True, True)
    assert (first == second, one is other) == (False, False)


def test_a_model_that_is_chosen_when_it_is_asked_queues_what_it_is_told():
    """Else a configurable model of `init_chat_model` is told its tools twice, or its choice goes past the journal."""
    chosen = init_chat_model("gpt-4o-mini", configurable_fields=("model",), api_key="test")
    told: Any = chosen.bind_tools([{"type": "function", "function": {"name": "look"}}], tool_choice="any")

    copy = private.configurable_copy(told, lambda model: model.model_copy(update={"temperature": 0.5}))
    made = copy._model({"configurable": {"model": "gpt-4.1", "gnl_run_id": "run"}})

    assert [name for name, _, _ in told._queued_declarative_operations] == ["bind_tools"]
    assert vars(copy) == vars(told)
    assert (made.bound.model_name, made.bound.temperature) == ("gpt-4.1", 0.5)
    assert len(made.kwargs["tools"]) == 1
    assert private.is_configurable(copy.with_config(tags=["quoted"]))
    assert not private.is_configurable(made)


class Wrapping(AgentMiddleware):
    """Stands around models and tools."""

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        return handler(request)

    def wrap_tool_call(self, request: Any, handler: Any) -> Any:
        return handler(request)


class WrappingTools(AgentMiddleware):
    """Stands around tools alone."""

    def wrap_tool_call(self, request: Any, handler: Any) -> Any:
        return handler(request)


class WrappingAsync(AgentMiddleware):
    """Stands around models that are asked asynchronously."""

    async def awrap_model_call(self, request: Any, handler: Any) -> Any:
        return await handler(request)


@pytest.mark.parametrize(
    "given",
    [[Wrapping()], [Wrapping(), Outer()], [WrappingTools(), Wrapping()], [WrappingAsync(), Wrapping()]],
)
def test_the_middlewares_of_an_agent_are_found(given):
    """Else an agent whose other middlewares must see each turn would be handed over, or none at all."""
    agent = create_agent(ScriptedModel(script=turns(said())), [], middleware=given)

    found = private.middlewares_around(agent)

    assert {id(each) for each in found} == {id(each) for each in given}


def test_an_agent_of_create_agent_is_known_by_what_it_says_of_itself():
    """Else no agent would be handed over, or graphs of other shapes would be."""
    agent = create_agent(ScriptedModel(script=turns(said())), [], name="bob")
    graph = (
        StateGraph(MessagesState).add_node("model", lambda state: state).add_edge(START, "model").compile()
    )

    assert private.is_created_agent(agent)
    assert private.described_by(agent)["lc_agent_name"] == "bob"
    assert not private.is_created_agent(graph)
    assert not private.is_created_agent(agent.with_retry())


def test_the_state_of_an_agent_is_known_by_its_channels():
    """Else an agent with a state of its own would be handed over without it."""
    agent = create_agent(ScriptedModel(script=turns(said())), [])

    assert private.state_of(agent) == {"messages", "jump_to", "structured_response"}


def test_the_limit_of_a_graph_is_known_inside_of_its_nodes():
    """Else a loop that came to its limit would go on when it is handed over."""
    noted: list[int] = []
    graph = StateGraph(MessagesState)
    graph.add_node("model", lambda state: noted.append(private.recursion_limit()))
    graph.add_edge(START, "model").compile().invoke(QUESTION, {"recursion_limit": 17})

    assert noted == [17]


@pytest.mark.parametrize("options", [{}, {"output_version": "v1"}])
def test_what_langchain_makes_of_an_answer(options):
    """Else a reply that is handed over would differ from the same reply when it is replayed."""
    reply = AIMessage("Hello", usage_metadata={"input_tokens": 1, "output_tokens": 1, "total_tokens": 2})
    model = ScriptedModel(script=lambda messages: reply.model_copy(deep=True), **options)

    invoked, made = model.invoke("?"), private.generated(model).generations[0].message

    assert made.model_dump() == {**invoked.model_dump(), "id": None}
