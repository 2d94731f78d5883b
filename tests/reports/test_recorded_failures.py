"""A failure was kept as if it were a result; here what killed the run is tried again, the rest is raised again."""

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import AIMessage, ToolMessage

from gnl_langchain import JournalMiddleware, run_durable
from gnl_middleware import journaled, never, safe
from tests.schedules.scripted_model import answers, calls, scripted
from tests.schedules.world import World

REQUEST = {"messages": [("user", "look")]}


class DeskError(Exception):
    """An error of the tool's own."""


class Telling(AgentMiddleware):
    """Tells the model what went wrong, and keeps what it caught."""

    def __init__(self):
        super().__init__()
        self.caught = []

    def wrap_tool_call(self, request, handler):
        try:
            return handler(request)
        except Exception as error:  # noqa: BLE001
            self.caught.append((type(error).__name__, str(error)))
            return ToolMessage(f"failed: {error}", tool_call_id=request.tool_call["id"], status="error")


def looking_agent(world, error, *, policy, middleware=()):
    """Looks until it works; the first look fails."""

    def look() -> str:
        """Look."""
        world.act("look", "")
        if world.effects["look"] == 1:
            raise error
        return "found"

    def script(messages, asked):
        done = answers(messages)
        if done and done[-1] == "found":
            return AIMessage("done: " + " | ".join(done))
        return calls(("look", {}, f"call_{asked}"))

    return create_agent(
        scripted(script, world),
        [look],
        middleware=[*middleware, JournalMiddleware(policies={"look": policy})],
    )


@pytest.mark.parametrize("error", [TimeoutError("late"), DeskError("closed")], ids=["built in", "own"])
@pytest.mark.parametrize(
    "policy", [safe, never(not_performed=(TimeoutError, DeskError))], ids=["safe", "never"]
)
def test_a_failure_that_killed_the_run(world, journal, error, policy):
    """The next attempt runs the tool again; from then on its result is what is read back."""
    agent = looking_agent(world, error, policy=policy)
    arguments = {"run_id": "job", "journal": journal}

    with pytest.raises(type(error), match=str(error)):
        run_durable(agent, REQUEST, **arguments)
    resumed = run_durable(agent, REQUEST, **arguments)
    read_back = run_durable(agent, REQUEST, offline=True, **arguments)

    assert resumed["messages"][-1].text == read_back["messages"][-1].text == "done: found"
    assert (world.effects, world.model_calls) == ({"look": 2}, 2)


@pytest.mark.parametrize("label", [safe, never], ids=["safe", "never"])
@pytest.mark.parametrize(
    ("error", "options", "raised"),
    [
        pytest.param(TimeoutError("late"), {}, ("TimeoutError", "late"), id="built in"),
        pytest.param(DeskError("closed"), {"errors": (DeskError,)}, ("DeskError", "closed"), id="listed"),
        pytest.param(DeskError("closed"), {"errors": ()}, ("RecordedError", "closed"), id="not listed"),
    ],
)
def test_a_failure_that_the_agent_went_on_from(tmp_path, error, options, raised, label):
    """A replay raises it again at the same place, by its type where that is known, then gives the recorded result."""
    world, policy = World(tmp_path / "world"), label(**options) if options else label
    telling = Telling()
    agent = looking_agent(world, error, policy=policy, middleware=[telling])
    arguments = {"run_id": "job", "journal": tmp_path / "journal.db"}

    live = run_durable(agent, REQUEST, **arguments)
    read_back = run_durable(agent, REQUEST, offline=True, replay="strict", **arguments)

    assert live["messages"][-1].text == f"done: failed: {error} | found"
    assert read_back["messages"][-1].text == live["messages"][-1].text
    assert telling.caught == [(type(error).__name__, str(error)), raised]
    assert (world.effects, world.model_calls) == ({"look": 2}, 3)


def test_failures_of_plain_functions(world, journal):
    """The same two rules without an agent: a caught failure is raised again, one that ended the run is tried again."""

    @journaled(replay=safe)
    def look(place: str) -> str:
        world.act(f"look {place}", "")
        if place == "desk" or world.effects[f"look {place}"] == 1:
            raise TimeoutError(f"late at the {place}")
        return "found"

    def job():
        with journal.run("job"):
            with pytest.raises(TimeoutError, match="late at the desk"):
                look("desk")
            return look("shelf")

    with pytest.raises(TimeoutError, match="late at the shelf"):
        job()
    found = [job(), job()]

    assert found == ["found", "found"]
    assert world.effects == {"look desk": 1, "look shelf": 2}
