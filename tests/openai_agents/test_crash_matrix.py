"""The crash matrix over every shape of agents: no effect is doubled, no finished model call is repeated."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from agents import Agent, function_tool

from gnl_middleware import Done, InterruptedCall, NotDone, Policy, current_step, never
from gnl_middleware.testing import POINTS, EffectLog, crash_matrix
from gnl_openai_agents import DurableRunner
from tests.openai_agents import preloaded
from tests.openai_agents.mcp import desk_server
from tests.openai_agents.scripted import QUIET, agent, call, said, turns

Build = Callable[[DurableRunner], Agent[Any]]
SLICE = ["after_body"]

assert preloaded  # the workers are forked from here


@pytest.fixture
def log(tmp_path):
    return EffectLog(tmp_path / "effects.jsonl")


class Desk:
    """The tools of a refund desk, and whether a call of one has happened."""

    def __init__(self, log: EffectLog) -> None:
        self.log = log

    def tool(self, name: str, **options: Any) -> Any:
        def body(order: str) -> str:
            self.log.note(name, key=current_step().idempotency_key)
            return f"{name} ok {order}"

        async def body_async(order: str) -> str:
            return body(order)

        return function_tool(body if name == "mail" else body_async, name_override=name, **options)

    def recover(self, interrupted: InterruptedCall) -> Done | NotDone:
        key = interrupted.idempotency_key
        known = self.log.has(interrupted.tool, key=key)
        return Done(f"{interrupted.tool} ok {interrupted.arguments['order']}") if known else NotDone()

    def policies(self, asks: bool) -> dict[str, Policy]:
        policy = never(recover=self.recover) if asks else never
        return {"refund": policy, "mail": policy}


def single(desk: Desk) -> Build:
    script = turns([call("refund", order="7")], [call("mail", order="7")], [said()])
    return lambda runner: agent(script, desk.tool("refund"), desk.tool("mail"))


def parallel(desk: Desk) -> Build:
    script = turns([call("refund", order="7"), call("mail", order="7")], [said()])
    return lambda runner: agent(script, desk.tool("refund"), desk.tool("mail"))


def handoffs(desk: Desk) -> Build:
    """A hands off to B, B refunds and hands back, A mails."""

    def build(runner: DurableRunner) -> Agent[Any]:
        first = turns(
            [call("transfer_to_b", "h1")], [call("x")], [call("x")], [call("mail", order="7")], [said()]
        )
        second = turns([call("x")], [call("refund", order="7")], [call("transfer_to_a", "h2")])
        a, b = agent(first, desk.tool("mail"), name="A"), agent(second, desk.tool("refund"), name="B")
        a.handoffs, b.handoffs = [b], [a]
        return a

    return build


def nested(desk: Desk) -> Build:
    """An agent as a tool of an agent that is a tool."""

    def build(runner: DurableRunner) -> Agent[Any]:
        inner = agent(turns([call("refund", order="7")], [said("inner")]), desk.tool("refund"), name="Inner")
        middle = agent(
            turns([call("inner", input="go"), call("mail", order="7")], [said("middle")]),
            runner.wrap(inner).as_tool("inner", "Acts."),
            desk.tool("mail"),
            name="Middle",
        )
        return agent(
            turns([call("middle", input="go")], [said()]), runner.wrap(middle).as_tool("middle", "Asks.")
        )

    return build


SHAPES = {"single": single, "parallel": parallel, "handoffs": handoffs, "nested": nested}


async def answered(runner: DurableRunner, way: str, given: Any, asked: Any, run_id: str) -> Any:
    """The result of a run, streamed or not."""
    if way == "run":
        return await runner.run(given, asked, run_id=run_id, run_config=QUIET)
    stream = runner.run_streamed(given, asked, run_id=run_id, run_config=QUIET)
    async for _ in stream.stream_events():
        pass
    return stream


def running(desk: Desk, asks: bool, way: str) -> Callable[..., Any]:
    async def run(build: Build, run_id: str, journal: Any) -> str:
        runner = DurableRunner(journal, policies=desk.policies(asks))
        return (await answered(runner, way, build(runner), "go", run_id)).final_output

    return run


def check(matrix: Any, points: list[str], effects: dict[str, int]) -> None:
    """Nothing doubled or lost, nothing finished asked again, in each of the cells."""
    matrix.assert_safe()
    assert matrix.clean.effects == effects
    assert len(matrix.cells) >= max(1, len(points) * len(matrix.clean.steps))
    assert all(cell.model_calls_repeated == 0 for cell in matrix.cells)


CASES = [
    ("single", "run_streamed", True),
    ("parallel", "run", True),
    ("parallel", "run", False),
    ("handoffs", "run", True),
    ("nested", "run", True),
]


@pytest.mark.parametrize(("shape", "way", "asks"), CASES)
def test_death_at_some_points_of_every_step(log, shape, way, asks):
    """A slice of the points: wherever the worker dies, each effect happens at most once, and the job ends or waits."""
    desk = Desk(log)

    matrix = crash_matrix(lambda: SHAPES[shape](desk), running(desk, asks, way), log, points=SLICE)

    check(matrix, SLICE, {"refund": 1, "mail": 1})
    endings = {cell.ending for cell in matrix.cells}
    assert endings == ({"finished"} if asks else {"finished", "blocked"})


@pytest.mark.long
@pytest.mark.parametrize("asks", [True, False])
@pytest.mark.parametrize("way", ["run", "run_streamed"])
@pytest.mark.parametrize("shape", SHAPES)
def test_death_at_every_point_of_every_step(log, shape, way, asks):
    """All points of all steps of all shapes, run and streamed, with and without ``recover``."""
    desk = Desk(log)

    matrix = crash_matrix(lambda: SHAPES[shape](desk), running(desk, asks, way), log)

    check(matrix, list(POINTS), {"refund": 1, "mail": 1})


def approving(desk: Desk, folder: Path, way: str) -> Callable[..., Any]:
    """Runs until it stops at the approval, saves the state, loads it as another process would, approves, goes on."""

    async def run(build: Build, run_id: str, journal: Any) -> str:
        runner = DurableRunner(journal, policies=desk.policies(asks=True))
        given, saved = build(runner), folder / f"{run_id}.json"
        if not saved.exists():
            result = await answered(runner, way, given, "go", run_id)
            draft = folder / f"{run_id}.draft"
            draft.write_text(result.to_state().to_string(), encoding="utf-8")
            draft.rename(saved)
        state = await runner.load_state(given, saved.read_text(encoding="utf-8"))
        for item in state.get_interruptions():
            state.approve(item)
        return (await answered(runner, way, given, state, run_id)).final_output

    return run


def own_approval(desk: Desk) -> Build:
    """An agent asks for an approval between two effects."""
    script = turns([call("mail", order="7")], [call("refund", order="7")], [said()])
    return lambda runner: agent(script, desk.tool("mail"), desk.tool("refund", needs_approval=True))


def nested_approval(desk: Desk) -> Build:
    """An agent that is a tool asks for an approval, beside another call."""

    def build(runner: DurableRunner) -> Agent[Any]:
        acting = turns([call("refund", order="7")], [said("inner")])
        inner = agent(acting, desk.tool("refund", needs_approval=True), name="Inner")
        asking = turns([call("mail", order="7")], [call("inner", input="go")], [said()])
        return agent(asking, runner.wrap(inner).as_tool("inner", "Acts."), desk.tool("mail"))

    return build


APPROVALS = {"own": own_approval, "nested": nested_approval}


def check_approvals(matrix: Any, points: list[str]) -> None:
    check(matrix, points, {"refund": 1, "mail": 1})
    assert {cell.ending for cell in matrix.cells} == {"finished"}


def test_some_deaths_around_an_approval(log, tmp_path):
    """Before the approval, between its saving and its loading, and after: the state goes on with one effect each."""
    desk = Desk(log)

    matrix = crash_matrix(lambda: own_approval(desk), approving(desk, tmp_path, "run"), log, points=SLICE)

    check_approvals(matrix, SLICE)


@pytest.mark.long
@pytest.mark.parametrize("way", ["run", "run_streamed"])
@pytest.mark.parametrize("shape", APPROVALS)
def test_every_death_around_an_approval(log, tmp_path, shape, way):
    """The same at every point, run and streamed, also where an agent as a tool asks for the approval."""
    desk = Desk(log)

    matrix = crash_matrix(lambda: APPROVALS[shape](desk), approving(desk, tmp_path, way), log)

    check_approvals(matrix, list(POINTS))


def through_mcp(log: EffectLog, folder: Path, way: str, *, asks: bool) -> Callable[..., Any]:
    """Runs an agent whose tool is that of a real MCP server."""

    def recover(interrupted: InterruptedCall) -> Done | NotDone:
        done = log(interrupted.run_id).get("refund")
        return Done(f"refund ok {interrupted.arguments['order']}") if done else NotDone()

    async def run(build: Build, run_id: str, journal: Any) -> str:
        runner = DurableRunner(journal, policies={"refund": never(recover=recover) if asks else never})
        line = json.dumps({"run_id": run_id, "tool": "refund", "key": None})
        async with desk_server(folder / f"{run_id}.py", log.path, line) as server:
            given = build(runner).clone(mcp_servers=[server])
            return (await answered(runner, way, given, "go", run_id)).final_output

    return run


def refunding() -> Build:
    return lambda runner: agent(turns([call("refund", order="7")], [said()]))


def check_mcp(matrix: Any, asks: bool) -> None:
    check(matrix, [], {"refund": 1})
    cut_off = [cell for cell in matrix.cells if cell.step.name == "refund" and cell.point == "after_body"]
    assert {cell.ending for cell in cut_off} == {"finished" if asks else "blocked"}


def test_some_deaths_around_a_tool_of_an_mcp_server(log, tmp_path):
    """A real MCP server does the work: a call that may have happened is not made a second time."""
    run = through_mcp(log, tmp_path, "run", asks=False)

    matrix = crash_matrix(refunding, run, log, points=SLICE, steps=["refund"])

    check_mcp(matrix, asks=False)


@pytest.mark.long
@pytest.mark.parametrize("asks", [True, False])
@pytest.mark.parametrize("way", ["run", "run_streamed"])
def test_every_death_around_a_tool_of_an_mcp_server(log, tmp_path, way, asks):
    """The same at every point of every step, run and streamed, with and without ``recover``."""
    matrix = crash_matrix(refunding, through_mcp(log, tmp_path, way, asks=asks), log)

    check_mcp(matrix, asks)
