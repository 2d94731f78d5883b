"""Agents of ``create_agent`` and hand-written graphs: as they are, with each checkpointer, and through this library."""

from abc import abstractmethod
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from langchain.agents import create_agent
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode

from gnl_langchain import JournalMiddleware, journaled_model, run_durable
from gnl_langgraph import JournalToolNode
from gnl_middleware import Journal

from .chat_model import InstantModel, asked, effect, limits
from .savers import DURABILITIES, Durability, PostgresCheckpoints, Saver, SqliteCheckpoints
from .subject import Database, Place, Subject, Work, database_size, file_size


def _agent(saver: Any = None, middleware: tuple[Any, ...] = ()) -> Any:
    return create_agent(InstantModel(), [effect], middleware=middleware, checkpointer=saver)


def _journaled_agent() -> Any:
    return _agent(middleware=(JournalMiddleware(never=[effect]),))


def _graph(saver: Any = None, model: Any = None, tools: Any = None) -> Any:
    bound = (model or InstantModel()).bind_tools([effect])

    def ask(state: MessagesState) -> dict[str, Any]:
        return {"messages": [bound.invoke(state["messages"])]}

    def route(state: MessagesState) -> str:
        return "tools" if state["messages"][-1].tool_calls else END

    graph = StateGraph(MessagesState)
    graph.add_node("ask", ask)
    graph.add_node("tools", tools or ToolNode([effect]))
    graph.add_edge(START, "ask")
    graph.add_conditional_edges("ask", route, ["tools", END])
    graph.add_edge("tools", "ask")
    return graph.compile(checkpointer=saver)


def _journaled_graph() -> Any:
    return _graph(model=journaled_model(InstantModel()), tools=JournalToolNode([effect], never=[effect]))


_BUILDERS = {"create_agent": (_agent, _journaled_agent), "LangGraph": (_graph, _journaled_graph)}


class _Invoked(Subject):
    """An agent that is invoked once, for all the steps of its run."""

    def __init__(self, framework: str) -> None:
        self.framework = framework

    @contextmanager
    def open(self, run_id: str, size: int) -> Generator[Work]:
        """Nothing is open before the agent is invoked."""
        yield lambda steps: self.invoke(run_id, steps, size)

    @abstractmethod
    def invoke(self, run_id: str, steps: int, size: int) -> None:
        """Let the agent take so many steps."""


class Undurable(_Invoked):
    """The agent as it is: a crash loses everything."""

    database: Database = "none"

    def __init__(self, framework: str) -> None:
        super().__init__(framework)
        self.name = f"{framework}, nothing kept"

    def prepare(self, place: Place) -> None:
        """Make the agent."""
        self._made = _BUILDERS[self.framework][0]()

    def invoke(self, run_id: str, steps: int, size: int) -> None:
        """Let it take so many steps."""
        self._made.invoke(asked(steps, size), limits(steps))


class Checkpointed(_Invoked):
    """The agent with one of LangGraph's checkpointers."""

    def __init__(self, framework: str, saver: Saver, durability: Durability) -> None:
        super().__init__(framework)
        self._saver, self._durability = saver, durability
        self.database = saver.database
        self.name = f"{framework}, {saver.title} {durability}"

    def prepare(self, place: Place) -> None:
        """Make the database and the agent."""
        self._saver.prepare(place)
        self._made = _BUILDERS[self.framework][0](self._saver.saver)

    def invoke(self, run_id: str, steps: int, size: int) -> None:
        """Let it take so many steps, on a thread of its own."""
        config = {**limits(steps), "configurable": {"thread_id": run_id}}
        self._made.invoke(asked(steps, size), config, durability=self._durability)

    def stored(self) -> int:
        """Bytes of the checkpoints."""
        return self._saver.stored()

    def close(self) -> None:
        """Close the database."""
        self._saver.close()


class Journaled(_Invoked):
    """The agent through this library."""

    resumes = True

    def __init__(self, framework: str, database: Database) -> None:
        super().__init__(framework)
        self.database = database
        self.name = f"gnl, {framework}, {'SQLite' if database == 'sqlite' else 'PostgreSQL'}"

    def prepare(self, place: Place) -> None:
        """Name the journal, and make the agent."""
        self._path = place.file() if self.database == "sqlite" else None
        self._url = "" if self._path else place.database()
        self.journal = Journal(self._path or self._url)
        self._made = _BUILDERS[self.framework][1]()

    @contextmanager
    def open(self, run_id: str, size: int) -> Generator[Work]:
        """Open the run."""
        with self.journal.run(run_id):
            yield lambda steps: self.invoke(run_id, steps, size)

    def invoke(self, run_id: str, steps: int, size: int) -> None:
        """Let it take so many steps."""
        self._made.invoke(asked(steps, size), limits(steps))

    def stored(self) -> int:
        """Bytes of the journal."""
        return file_size(self._path) if self._path else database_size(self._url)

    def close(self) -> None:
        """Close the journal."""
        self.journal.close()


class HandedOver(Journaled):
    """The same; a recorded run is not replayed: what is over is handed to the agent."""

    def __init__(self, framework: str, database: Database) -> None:
        super().__init__(framework, database)
        self.name = f"{self.name}, handed over"

    @contextmanager
    def open(self, run_id: str, size: int) -> Generator[Work]:
        """Nothing is open before the agent is invoked, which opens the run."""
        yield lambda steps: self._resume(run_id, steps, size)

    def _resume(self, run_id: str, steps: int, size: int) -> None:
        options: dict[str, Any] = {"resume": "handover", "config": limits(steps)}
        run_durable(self._made, asked(steps, size), run_id=run_id, journal=self.journal, **options)


def subjects(framework: str) -> list[Subject]:
    """The agent of a framework (``create_agent`` or ``LangGraph``) in all the ways."""
    savers = [SqliteCheckpoints, PostgresCheckpoints]
    return [
        Undurable(framework),
        Journaled(framework, "sqlite"),
        Journaled(framework, "postgres"),
        *[Checkpointed(framework, saver(), durability) for saver in savers for durability in DURABILITIES],
    ]
