"""Details of LangChain and LangGraph that are not promised to anybody, and that this adapter relies on.

Each has a contract test (``tests/langchain/test_private_details.py``) that says what breaks when it changes.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import FunctionType, MethodType
from typing import Any, TypeVar, cast

from langchain.agents.middleware import AgentMiddleware
from langchain.chat_models.base import _ConfigurableModel  # pyright: ignore[reportPrivateUsage]
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.outputs import ChatResult
from langchain_core.runnables.config import var_child_runnable_config
from langchain_core.tools import BaseTool, StructuredTool, Tool
from langchain_core.tools.base import _format_output  # pyright: ignore[reportPrivateUsage]
from langgraph.graph.state import CompiledStateGraph  # pyright: ignore[reportMissingTypeStubs]
from pydantic import BaseModel

_INNERMOST_HANDLERS = ("_execute_model_sync", "_execute_model_async")
_SENT = "__pregel_push"
_RUN_IN_THREAD: tuple[Any, ...] = (BaseTool, StructuredTool, Tool)
_M = TypeVar("_M", bound=BaseModel)
MessageText: type[str] = type(AIMessage("").text)
"""What ``message.text`` is: a string of a class of its own, which no module exports."""
NATIVE_STREAMS = ("_stream_chat_model_events", "_astream_chat_model_events")
"""Hooks by which a provider streams events past ``_stream``; a journalled model must not have them."""


def is_innermost(handler: Callable[..., Any]) -> bool:
    """Whether a ``wrap_model_call`` handler is the model itself and not another middleware."""
    return getattr(handler, "__name__", "") in _INNERMOST_HANDLERS


def is_created_agent(agent: Any) -> bool:
    """Whether an agent is one that ``create_agent`` has made, as it is: without bindings, retries or fallbacks around it."""
    return (
        isinstance(agent, CompiledStateGraph)
        and described_by(agent).get("ls_integration") == "langchain_create_agent"
    )


def described_by(agent: Any) -> Mapping[str, Any]:
    """What an agent says of itself in its metadata: ``lc_agent_name`` is what it calls itself in its replies."""
    config: dict[str, Any] = agent.config or {}
    return config.get("metadata") or {}


def state_of(agent: Any) -> set[str]:
    """What the state of an agent holds, by name."""
    return {name for name in agent.channels if not name.startswith(("__", "branch:"))}


def middlewares_around(agent: Any) -> list[AgentMiddleware[Any, Any]]:
    """The middlewares that stand around the model calls or tool calls of an agent of ``create_agent``."""
    found: list[AgentMiddleware[Any, Any]] = []
    seen: set[int] = set()
    nodes = [agent.nodes[name].bound for name in ("model", "tools") if name in agent.nodes]
    names = ("func", "afunc", "_wrap_tool_call", "_awrap_tool_call")
    left = [getattr(node, name, None) for node in nodes for name in names]
    while left:
        function: Any = left.pop()
        if function is None or id(function) in seen:
            continue
        seen.add(id(function))
        owner = getattr(function, "__self__", None)
        if isinstance(owner, AgentMiddleware) and owner not in found:
            found.append(owner)  # pyright: ignore[reportUnknownArgumentType]
        cells = getattr(function, "__closure__", None) or ()
        inner = [getattr(function, "__wrapped__", None), *(cell.cell_contents for cell in cells)]
        left += [each for each in inner if isinstance(each, FunctionType | MethodType)]
    return found


def recursion_limit() -> int:
    """How many rounds the graph may take whose node is running here."""
    return (var_child_runnable_config.get() or {}).get("recursion_limit") or 0


def generated(model: BaseChatModel) -> ChatResult:
    """What LangChain makes of a provider's answer: with its metadata, in the form that the model is set to."""
    return model._generate_with_cache([])  # pyright: ignore[reportPrivateUsage]


def running_configuration() -> Mapping[str, Any]:
    """The ``configurable`` part of the configuration of the runnable that is running here."""
    config = var_child_runnable_config.get()
    return (config or {}).get("configurable") or {}


def running_callbacks() -> Any:
    """The callbacks of the runnable that is running here: a manager, whose parent is that runnable."""
    return (var_child_runnable_config.get() or {}).get("callbacks")


def running_metadata() -> Mapping[str, Any]:
    """The metadata of the runnable that is running here."""
    return (var_child_runnable_config.get() or {}).get("metadata") or {}


@dataclass(frozen=True, slots=True)
class GraphTask:
    """What LangGraph says about a task in the metadata of everything that runs inside of it.

    Attributes:
        name: Another one for each task; the same when a task is retried, or resumed from a checkpoint.
        node: The node's name, or that of a function of the functional API.
        path: ``(pull, node)`` for a node; ``(push, index, …)`` for one that something was sent to, by its place among what was
            sent in that step; ``(push, path of the caller, index, …)`` for a function that was called.
        step: The graph's superstep.
    """

    name: str
    node: str
    path: tuple[Any, ...]
    step: int


def graph_task(metadata: Mapping[str, Any] | None) -> GraphTask | None:
    """The task of a graph that metadata tells of, or None."""
    found = metadata or {}
    name, step = found.get("langgraph_checkpoint_ns"), found.get("langgraph_step")
    if not name or not isinstance(step, int):
        return None
    path: Any = found.get("langgraph_path") or ()
    return GraphTask(str(name), str(found.get("langgraph_node")), tuple(path), step)


def running_place() -> int | None:
    """Which of the calls that an agent has sent out together is running here, from 0; None elsewhere."""
    match running_metadata().get("langgraph_path"):
        case (kind, int(place), *_) if kind == _SENT:
            return place
        case _:
            return None


def runs_in_thread(tool: Any) -> bool:
    """Whether an asynchronous agent runs the tool in a thread, since it has no coroutine of its own."""
    if getattr(tool, "coroutine", None) is not None:
        return False
    own: Any = cast("Any", type(tool))
    return getattr(own, "_arun", None) in [kind._arun for kind in _RUN_IN_THREAD]


def overrides(kind: type[BaseChatModel], method: str) -> bool:
    """Whether a model class has its own version of a method."""
    return getattr(kind, method) is not getattr(BaseChatModel, method)


def copied_as(model: _M, kind: type[_M]) -> _M:
    """A shallow copy of a pydantic model as another class, without running its constructor or validators."""
    copy = kind.__new__(kind)
    object.__setattr__(copy, "__dict__", dict(model.__dict__))
    object.__setattr__(copy, "__pydantic_fields_set__", set(model.__pydantic_fields_set__))
    object.__setattr__(copy, "__pydantic_extra__", model.__pydantic_extra__)
    object.__setattr__(copy, "__pydantic_private__", model.__pydantic_private__)
    return copy


def shown_arguments(tool: BaseTool, arguments: Any) -> Any:
    """Arguments without what an agent injects: the model is not shown those."""
    return tool._filter_injected_args(arguments) if isinstance(arguments, dict) else arguments  # pyright: ignore[reportPrivateUsage, reportUnknownArgumentType, reportUnknownVariableType]


def tool_result(value: Any, *, call_id: str | None, name: str, with_artifact: bool) -> Any:
    """What a tool's raw return value becomes on its way to the agent."""
    # What a person decided, or the model is told instead of a result, may be the content alone.
    content, artifact = value if with_artifact and _is_pair(value) else (value, None)
    result = _format_output(content, artifact, call_id, name, "success")
    # A call without an id gets no message from LangChain; the agent needs one all the same.
    return result if call_id is not None else ToolMessage(content=str(content), tool_call_id="", name=name)


def _is_pair(value: Any) -> bool:
    return isinstance(value, tuple) and len(cast("tuple[Any, ...]", value)) == len(("content", "artifact"))


RUN_ID = "gnl_run_id"
"""Key in ``config["configurable"]`` that names a run held open in this process."""


def is_configurable(thing: Any) -> bool:
    """Whether this is a model of ``init_chat_model`` that is chosen when it is called."""
    return isinstance(thing, _ConfigurableModel)


def configurable_copy(model: Any, replace: Callable[[BaseChatModel], Any]) -> Any:
    """A copy of such a model, in which whatever is chosen is replaced before tools and formats are bound to it."""
    kind = type("_ConfigurableModel", (_Replacing,), {"gnl_replace": staticmethod(replace)})
    return _with_fields(kind, model.__dict__)


def _with_fields(kind: Any, fields: Mapping[str, Any]) -> Any:
    made: Any = object.__new__(kind)
    made.__dict__.update(fields)
    return made


class _Replacing(_ConfigurableModel):
    """Its class attribute holds what replaces: the instance keeps what the original has, and nothing else."""

    gnl_replace: Callable[[BaseChatModel], Any]

    def _model(self, config: Any = None) -> Any:
        bare = _with_fields(_ConfigurableModel, {**vars(self), "_queued_declarative_operations": []})
        given: dict[str, Any] = config or {}
        choice: dict[str, Any] = given.get("configurable") or {}
        # The choice may be any key of the configuration; which run this is, is none.
        configurable = {name: value for name, value in choice.items() if name != RUN_ID}
        model: Any = self.gnl_replace(bare._model({**given, "configurable": configurable}))
        for name, arguments, options in self._queued_declarative_operations:
            model = getattr(model, name)(*arguments, **options)
        return model

    def __getattr__(self, name: str) -> Any:
        found: Any = super().__getattr__(name)
        if name not in _DECLARED:
            return found

        def declare(*arguments: Any, **options: Any) -> Any:
            return configurable_copy(found(*arguments, **options), self.gnl_replace)

        return declare

    def with_config(self, config: Any = None, **options: Any) -> Any:
        return configurable_copy(super().with_config(config, **options), self.gnl_replace)


_DECLARED = ("bind_tools", "with_structured_output")
"""What is told to such a model before it is chosen."""
