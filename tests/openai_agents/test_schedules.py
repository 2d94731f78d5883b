"""Orders of events that have broken drafts: calls and guardrails beside each other, circles, approvals, two runs in one."""

import asyncio
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from agents import (
    Agent,
    FunctionTool,
    GuardrailFunctionOutput,
    SQLiteSession,
    function_tool,
    input_guardrail,
)
from agents.testing import ModelStep, ScriptedModel

from gnl_middleware import Done, InterruptedCall, NotDone, current_run, current_step, never
from gnl_middleware.testing import EffectLog, crash_matrix
from gnl_openai_agents import DurableRunner
from tests.openai_agents import preloaded
from tests.openai_agents.scripted import QUIET, call, items, said

assert preloaded  # the workers are forked from here

Play = Callable[[DurableRunner, Any], Any]


@pytest.fixture
def log(tmp_path):
    return EffectLog(tmp_path / "effects.jsonl")


def answers(given: list[dict[str, Any]]) -> int:
    return len([item for item in given if item.get("type") == "function_call_output"])


def questions(given: list[dict[str, Any]]) -> list[str]:
    return [item["content"] for item in given if item.get("role") == "user"]


def slow_model(script: Callable[[list[dict[str, Any]]], Any], slow: float = 0.004) -> ScriptedModel:
    async def respond(asked: Any) -> Any:
        await asyncio.sleep(random.random() * slow)
        return script(items(asked))

    return ScriptedModel([ModelStep.respond(respond)] * 40)


class Programs:
    """The programs of the schedules; each returns its reply."""

    def __init__(self, log: EffectLog, folder: Path) -> None:
        self.log, self.folder = log, folder

    def refund(self, name: str = "refund", **options: Any) -> FunctionTool:
        async def body(order: str) -> str:
            await asyncio.sleep(random.random() * 0.004)
            self.log.note(f"{name} {order}", key=current_step().idempotency_key)
            await asyncio.sleep(random.random() * 0.004)
            return "ok"

        return function_tool(body, name_override=name, **options)

    def recover(self, interrupted: InterruptedCall) -> Done | NotDone:
        name = f"{interrupted.tool} {interrupted.arguments['order']}"
        return Done("ok") if self.log.has(name, key=interrupted.idempotency_key) else NotDone()

    async def circle(self, runner: DurableRunner, ask: Any) -> str:
        """A and B hand off to each other, and each refunds in between."""

        def script(me: str, other: str) -> Any:
            def reply(given: Any) -> Any:
                number = answers(given)
                if number >= 7:
                    return [said("done")]
                if number % 2:
                    return [call(f"transfer_to_{other}", f"c{number}")]
                return [call("refund", f"c{number}", order=f"{me}{number}")]

            return reply

        a = Agent(name="a", model=slow_model(script("A", "b")), tools=[self.refund()])
        b = Agent(name="b", model=slow_model(script("B", "a")), tools=[self.refund()], handoffs=[a])
        a.handoffs = [b]
        return await ask(a, "go")

    async def family(self, runner: DurableRunner, ask: Any, second: str = "") -> str:
        """Agents as tools, two levels deep, in parallel, with equal prompts."""

        def inner(given: Any) -> Any:
            number = answers(given)
            order = questions(given)[0] + str(number)
            return [call("refund", f"i{number}", order=order)] if number < 2 else [said("in")]

        def middle(given: Any) -> Any:
            task = questions(given)[0]
            both = [
                call("inner", "n0", input=f"x{task}"),
                call("inner", "n1", input=f"{second or 'x'}{task}"),
            ]
            mine = call("refund", "n3", order=f"mid{task}")
            return [said("mid")] if answers(given) else [*both, mine]

        def top(given: Any) -> Any:
            both = [call("mid", "m0", input="t"), call("mid", "m1", input=second or "t")]
            return [said("done")] if answers(given) else [*both, call("refund", "m3", order="top")]

        lowest = Agent(name="inner", model=slow_model(inner), tools=[self.refund()])
        as_inner = runner.wrap(lowest).as_tool("inner", "d")
        between = Agent(name="mid", model=slow_model(middle), tools=[as_inner, self.refund()])
        as_middle = runner.wrap(between).as_tool("mid", "d")
        return await ask(Agent(name="top", model=slow_model(top), tools=[as_middle, self.refund()]), "go")

    async def family_apart(self, runner: DurableRunner, ask: Any) -> str:
        """The same, with prompts of their own."""
        return await self.family(runner, ask, second="u")

    async def guarded(self, runner: DurableRunner, ask: Any, slow: float = 0.03, asks: str = "") -> str:
        """A guardrail that asks a model of its own runs beside the agent, with the same input."""
        checking = Agent(name="guard", model=slow_model(lambda given: [said("fine")], slow))

        @input_guardrail
        async def check(context: Any, agent: Any, given: Any) -> GuardrailFunctionOutput:
            result = await runner.run(checking, f"{asks}{given}", run_config=QUIET)
            assert result.final_output == "fine"
            return GuardrailFunctionOutput(output_info=None, tripwire_triggered=False)

        return await ask(self.twice(input_guardrails=[check]), "go")

    async def guarded_at_once(self, runner: DurableRunner, ask: Any) -> str:
        """The same, with a guardrail that is as fast as the agent."""
        return await self.guarded(runner, ask, slow=0.0)

    async def guarded_otherwise(self, runner: DurableRunner, ask: Any) -> str:
        """The same, with a question of the guardrail's own."""
        return await self.guarded(runner, ask, asks="check ")

    def twice(self, **options: Any) -> Agent[Any]:
        def script(given: Any) -> Any:
            number = answers(given)
            return [call("refund", f"c{number}", order=str(number))] if number < 2 else [said("done")]

        return Agent(name="A", model=slow_model(script), tools=[self.refund()], **options)

    async def approved(self, runner: DurableRunner, ask: Any) -> str:
        """Stops at an approval between parallel calls, and goes on from the saved state; started anew each time."""
        return await self.approving(runner, ask, None)

    async def approved_as_saved(self, runner: DurableRunner, ask: Any) -> str:
        """The same; once the state is saved, each restart goes on from there."""
        return await self.approving(runner, ask, self.folder / f"{_run_id()}.state")

    async def approving(self, runner: DurableRunner, ask: Any, saved: Path | None) -> str:
        def script(given: Any) -> Any:
            number = answers(given)
            if number == 0:
                return [call("refund", "c0", order="a")]
            three = [
                call("refund", "c1", order="b"),
                call("danger", "c2", order="d"),
                call("refund", "c3", order="c"),
            ]
            return three if number == 1 else [said("done")]

        tools = [self.refund(), self.refund("danger", needs_approval=True)]
        agent = Agent(name="A", model=slow_model(script), tools=tools)
        if (text := _kept(saved)) is None:
            text = (await runner.run(agent, "go", run_config=QUIET)).to_state().to_string()
            _keep(saved, text)
        state = await runner.load_state(agent, text)
        for item in state.get_interruptions():
            state.approve(item)
        return await ask(agent, state)

    async def conversed(self, runner: DurableRunner, ask: Any) -> str:
        """Two agents' runs in one run of the journal, on one session."""

        def script(given: Any) -> Any:
            number, asked = answers(given), len(questions(given))
            if given[-1].get("role") == "user" or number < 2 * asked:
                return [call("refund", f"c{asked}-{number}", order=f"{asked}-{number}")]
            return [said(f"done {asked}")]

        session = SQLiteSession("s", self.folder / f"{_run_id()}.session")
        first = await ask(
            Agent(name="A", model=slow_model(script), tools=[self.refund()]), "first", session=session
        )
        second = await ask(
            Agent(name="A", model=slow_model(script), tools=[self.refund()]), "second", session=session
        )
        held = [item.get("type") or item["role"] for item in await session.get_items()]
        session.close()
        return f"{first} {second} {held}"

    def run(self, way: str, replay: str) -> Callable[..., Any]:
        """Runs a program inside a run of the journal; the reply tells of records that were served to other requests."""

        async def run(name: str, run_id: str, journal: Any) -> str:
            runner = DurableRunner(journal, default_policy=never(recover=self.recover))

            async def ask(agent: Agent[Any], given: Any, **options: Any) -> str:
                if way == "run":
                    return (await runner.run(agent, given, run_config=QUIET, **options)).final_output
                stream = runner.run_streamed(agent, given, run_config=QUIET, **options)
                async for _ in stream.stream_events():
                    pass
                return stream.final_output

            async with journal.run(run_id, replay=replay):
                reply = await getattr(self, name)(runner, ask)
            drifted = sum(step.drifted for step in journal.steps(run_id))
            return f"{reply} drifted {drifted}"

        return run


def _run_id() -> str:
    return current_run().run_id


def _kept(path: Path | None) -> str | None:
    return path.read_text(encoding="utf-8") if path is not None and path.exists() else None


def _keep(path: Path | None, text: str) -> None:
    if path is not None:
        path.write_text(text, encoding="utf-8")


def once(*orders: str) -> dict[str, int]:
    return {f"refund {order}": 1 for order in orders}


EFFECTS = {
    "circle": once("A0", "B2", "A4", "B6"),
    "family": {"refund xt0": 4, "refund xt1": 4, "refund midt": 2, "refund top": 1},
    "family_apart": once(
        "top", "midt", "midu", *(f"{one}{two}{n}" for one in "xu" for two in "tu" for n in "01")
    ),
    "guarded": once("0", "1"),
    "guarded_otherwise": once("0", "1"),
    "guarded_at_once": once("0", "1"),
    "approved": once("a", "b", "c") | {"danger d": 1},
    "approved_as_saved": once("a", "b", "c") | {"danger d": 1},
    "conversed": once("1-0", "1-1", "2-2", "2-3"),
}


ALIKE = ("family_apart", "guarded_otherwise")
"""Programs so like another one that the whole campaign alone plays them."""


def check(matrix: Any, name: str) -> None:
    """Every job ended as the undisturbed one, with its effects, and no record was served to another request."""
    matrix.assert_safe()
    assert matrix.clean.effects == EFFECTS[name]
    assert matrix.clean.reply.endswith("drifted 0")
    assert {cell.ending for cell in matrix.cells} == {"finished"}
    assert all(cell.reply_equal for cell in matrix.cells), [
        (cell.step.number, cell.point, cell.error) for cell in matrix.cells if not cell.reply_equal
    ]


@pytest.mark.parametrize("name", [name for name in EFFECTS if name not in ALIKE])
def test_some_deaths_of_each_schedule(log, tmp_path, name):
    """A slice: each kind of program dies after the body of each side effect, in strict mode, and ends as if it had not."""
    programs = Programs(log, tmp_path)
    steps = ["danger"] if "approved" in name else ["inner"] if "family" in name else ["refund"]
    point = "after_outcome" if "family" in name else "before_outcome"

    matrix = crash_matrix(lambda: name, programs.run("run", "strict"), log, points=[point], steps=steps)

    check(matrix, name)


@pytest.mark.long
@pytest.mark.parametrize("replay", ["lenient", "strict"])
@pytest.mark.parametrize("way", ["run", "run_streamed"])
@pytest.mark.parametrize("name", EFFECTS)
def test_all_deaths_of_each_schedule(log, tmp_path, name, way, replay):
    """Each program, run and streamed, lenient and strict, dies at each point of each step."""
    programs = Programs(log, tmp_path)

    matrix = crash_matrix(lambda: name, programs.run(way, replay), log)

    check(matrix, name)
