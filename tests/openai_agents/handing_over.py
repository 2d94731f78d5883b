"""An agent of several turns that is killed at every point of them, and resumed in both ways from copies of one journal."""

import asyncio
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agents import Agent, RunConfig, Usage, function_tool
from agents.testing import ModelStep, ScriptedModel

from gnl_middleware import Done, GnlError, InterruptedCall, Journal, NotDone, current_step, never, safe
from gnl_openai_agents import DurableRunner
from tests.openai_agents.scripted import QUESTION, call, items, said
from tests.resumed import counted, row_of

_USAGE = Usage(requests=1, input_tokens=10, output_tokens=3, total_tokens=13)

REPLIES = (
    [said("First I look."), call("look", "call_1a", at="order 7"), call("charge", "call_1b", order=7)],
    [call("look", "call_2", at="order 8")],
    [call("charge", "call_3a", order=7), call("charge", "call_3b", order=7)],
    [call("describe", "call_4", order=7)],
    [said("All done.")],
)


class KilledError(BaseException):
    """The process dies here."""


@dataclass
class World:
    """What happened outside of the agent, and where it is killed.

    Attributes:
        kill_at: The point at which the process dies.
        points: All points that were come to.
        effects: What the tools did.
        recovers: Whether the tool can tell if an interrupted call happened.
        fails: Whether a tool fails, so that the model is told.
    """

    kill_at: str | None = None
    points: list[str] = field(default_factory=list)
    effects: list[str] = field(default_factory=list)
    recovers: bool = True
    fails: bool = False

    def reach(self, point: str) -> None:
        """Come to a point: the n-th time, it is another one."""
        name = f"{point}#{sum(each.startswith(f'{point}#') for each in self.points)}"
        self.points.append(name)
        if name == self.kill_at:
            raise KilledError

    def find_charge(self, call: InterruptedCall) -> Any:
        """Whether the charge happened."""
        return Done("charged") if call.idempotency_key in self.effects else NotDone()


def agent_in(world: World, **options: Any) -> tuple[ScriptedModel, Agent[Any]]:
    """The model and the agent, whose tools act in this world."""

    def respond(asked: Any) -> Any:
        given = items(asked)
        answered = sum(item.get("type") == "function_call_output" for item in given)
        turn = [0, 2, 3, 5, 6].index(answered)
        world.reach(f"model {turn}")
        return ModelStep(output=REPLIES[turn], usage=_USAGE, response_id=f"resp_{turn}")

    @function_tool
    async def look(at: str) -> str:
        world.reach("look")
        if world.fails and at == "order 8":
            raise ValueError("it is dark")
        return f"{at} is fine"

    @function_tool
    async def charge(order: int) -> str:
        world.reach("before charge")
        step = current_step()
        world.effects.append(step.idempotency_key if step else "")
        world.reach("after charge")
        return f"charged {order}"

    @function_tool
    async def describe(order: int) -> dict[str, Any]:
        world.reach("describe")
        return {"order": order, "lines": [1, 2.0, None]}

    model = ScriptedModel([ModelStep.respond(respond)] * 30)
    return model, Agent(**{"name": "A", "model": model, "tools": [look, charge, describe], **options})


@dataclass(frozen=True)
class Ended:
    """How an attempt ended.

    Attributes:
        result: What the caller got, or the error.
        asked: What the model was asked live.
        effects: What has happened so far.
        points: Where it came to.
        steps: The record.
        counted: Steps that ran and were read back, and the tokens that were not spent.
    """

    result: Any
    asked: list[Any]
    effects: list[str]
    points: list[str]
    steps: list[Any]
    counted: Any


_OF_THE_AGENT = ("instructions", "name", "tools", "model_settings", "reset_tool_choice")


def attempt(path: Path, world: World, *, resume: str, synchronous: bool = False, **options: Any) -> Ended:
    """One attempt on the journal at this path; options of the agent are for it, the rest for the runner."""
    of_agent = {name: options.pop(name) for name in _OF_THE_AGENT if name in options}
    model, agent = agent_in(world, **of_agent)
    hook = never(recover=world.find_charge) if world.recovers else never
    with Journal(path, redact=options.pop("redact", None)) as journal:
        runner = DurableRunner(journal, policies={"look": safe, "describe": safe, "charge": hook})
        given: Any = {"run_id": "order-7", "run_config": RunConfig(tracing_disabled=True), **options}
        try:
            if synchronous:
                # The SDK leaves the event loop of a thread open between runs.
                with asyncio.Runner() as loop:
                    asyncio.set_event_loop(loop.get_loop())
                    ended = runner.run_sync(agent, QUESTION, resume=resume, **given)
                asyncio.set_event_loop(None)
            else:
                ended = asyncio.run(runner.run(agent, QUESTION, resume=resume, **given))
            result: Any = told(ended)
        except KilledError:
            result = "killed"
        except (GnlError, Exception) as error:  # noqa: BLE001 - compared
            said_so = f"{type(error).__name__}: {error}".replace(path.name, "runs.db")
            result = re.sub(r"it began at \S+ \S+", "it began", said_so)
        rows = sorted(journal._database().load("order-7", 0.0), key=lambda row: row.key)
        last = journal.attempts("order-7")[-1]
    asked = [(each.system_instructions, items(each), each.model_settings) for each in model.calls]
    return Ended(
        result,
        asked,
        sorted(world.effects),
        sorted(world.points),
        [row_of(row) for row in rows],
        counted(last),
    )


def told(ended: Any) -> Any:
    """All that a result tells."""
    return {
        "output": ended.final_output,
        "input": ended.input,
        "items": [
            (type(item).__name__, item.agent.name, _plain(item.raw_item), _of(item))
            for item in ended.new_items
        ],
        "responses": [(_plain(each.output), each.usage, each.response_id) for each in ended.raw_responses],
        "list": ended.to_input_list(),
        "usage": ended.context_wrapper.usage,
        "agent": ended.last_agent.name,
        "turns": (ended._current_turn, ended.max_turns),
        "state": {
            name: value
            for name, value in ended.to_state().to_json().items()
            if name not in ("trace", "$schemaVersion")
        },
    }


def _of(item: Any) -> Any:
    return {
        name: getattr(item, name, None)
        for name in ("output", "tool_origin", "description", "title", "custom_data")
    }


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return value if isinstance(value, dict) else value.model_dump()


def points_of(folder: Path) -> list[str]:
    """Every point of a whole run."""
    world = World()
    attempt(folder / "whole.db", world, resume="replay")
    return world.points
