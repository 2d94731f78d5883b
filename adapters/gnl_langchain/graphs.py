"""Which nodes of which graphs are around the code that is running: the chain from which scopes are made.

LangGraph tells a node where it is, but not where the graphs around it are: two branches that were sent to one subgraph see
the same inside. What starts inside what is told to callbacks, so a handler that only listens follows it. It is
installed by LangChain's own hook for handlers of everything (``register_configure_hook``). It changes nothing.
"""

from contextvars import ContextVar
from typing import Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import BaseMessage
from langchain_core.tracers.context import register_configure_hook

from gnl_middleware.adapter import Place, call_part, find_places_with, node_part

from .private import GraphTask, graph_task, running_callbacks, running_metadata

Chain = tuple[Place, ...]
REPLAYED = "gnl_replayed"
"""Key in the metadata of a model call that was read back: tracers see it when the call ends, and need not count its tokens."""

_asked: ContextVar[dict[str, Any] | None] = ContextVar("gnl_langchain_asked", default=None)


# Shared by every handler of the class, so that a chain that one began is followed by the next.
_chains: dict[UUID, Chain] = {}


class GraphChain(BaseCallbackHandler):
    """Follows which runnables start inside which, and keeps for each that runs the nodes around it."""

    run_inline = True
    raise_error = True

    def on_chain_start(
        self,
        serialized: dict[str, Any],
        inputs: dict[str, Any],
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        metadata: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """A runnable begins: maybe a node."""
        self._follow(run_id, parent_run_id, metadata)

    def on_tool_start(
        self,
        serialized: dict[str, Any],
        input_str: str,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        metadata: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """A tool begins: what it calls is inside of the same nodes."""
        self._follow(run_id, parent_run_id, metadata)

    def on_chat_model_start(
        self,
        serialized: dict[str, Any],
        messages: list[list[BaseMessage]],
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        metadata: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """A model is about to be asked, in this context: whether it is read back is told in this metadata."""
        _asked.set(metadata)

    def on_chain_end(self, outputs: Any, *, run_id: UUID, **kwargs: Any) -> None:
        """It is over."""
        _chains.pop(run_id, None)

    def on_chain_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """It is over."""
        _chains.pop(run_id, None)

    def on_tool_end(self, output: Any, *, run_id: UUID, **kwargs: Any) -> None:
        """It is over."""
        _chains.pop(run_id, None)

    def on_tool_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """It is over."""
        _chains.pop(run_id, None)

    def _follow(self, run_id: UUID, parent_run_id: UUID | None, metadata: dict[str, Any] | None) -> None:
        around = chain_around(parent_run_id) or ()
        _chains[run_id] = _further(around, graph_task(metadata), entry=str(run_id))


def _further(around: Chain, task: GraphTask | None, *, entry: str) -> Chain:
    """The chain of what begins with this metadata; what a node calls inherits it, and is in the same node."""
    if task is None or (around and around[-1].task == task.name):
        return around
    match task.path:
        case (_, str(), *_):
            part = node_part(task.node)
        case (_, int(index), *_):
            part = node_part(task.node, index)
        case (_, _, int(index), *_):
            part = call_part(task.node, index)
        case _:
            part = node_part(task.node)
    return (*around, Place(part, task.name, entry, task.step))


_FOLLOWING = GraphChain()
_listening: ContextVar[Any] = ContextVar("gnl_langchain_listening", default=_FOLLOWING)


def chain_around(run_id: UUID | None) -> Chain | None:
    """The nodes around what this runnable calls, the outermost first; None for one that nobody told of."""
    return None if run_id is None else _chains.get(run_id)


def places() -> Chain:
    """The nodes of graphs around the code that is running here, the outermost first."""
    found = chain_around(getattr(running_callbacks(), "parent_run_id", None))
    return _further((), graph_task(running_metadata()), entry="") if found is None else found


def places_of(run_manager: Any) -> Chain | None:
    """The nodes around a model that is called with this manager of callbacks; None if it does not say."""
    return chain_around(getattr(run_manager, "parent_run_id", None))


def mark_replayed() -> None:
    """Say in the metadata of the model call that is running here that it is read back.

    All handlers were given this very mapping when the call began; each invocation has its own.
    """
    metadata = _asked.get()
    if metadata is not None:
        metadata[REPLAYED] = True


# One handler follows, however many kinds of it there are: LangChain adds it only where none of its class listens.
register_configure_hook(_listening, inheritable=True, handle_class=GraphChain)
find_places_with(places)
