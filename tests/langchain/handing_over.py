"""An agent of several turns that is killed at every point of them, and resumed in both ways from copies of one journal."""

import asyncio
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.tools import ToolException, tool

from gnl_langchain import JournalMiddleware, arun_durable, run_durable
from gnl_middleware import Done, GnlError, InterruptedCall, Journal, NotDone, current_step, never
from tests.langchain.scripted import QUESTION, ScriptedModel
from tests.resumed import counted, row_of

_MADE_UP = re.compile(r"^(lc_run-.*|[0-9a-f]{8}-[0-9a-f]{4}-.*)$")
_OF_THE_AGENT = ("system_prompt", "name", "model_type")
_USAGE = {"input_tokens": 10, "output_tokens": 3, "total_tokens": 13}


class KilledError(BaseException):
    """The process dies here."""


def _call(place: str, name: str, **arguments: Any) -> dict[str, Any]:
    return {"name": name, "args": arguments, "id": f"call_{place}", "type": "tool_call"}


REPLIES = (
    AIMessage(
        "First I look.",
        tool_calls=[_call("1a", "look", at="order 7"), _call("1b", "charge", order=7)],
        usage_metadata=_USAGE,
        id="msg_1",
    ),
    AIMessage("", tool_calls=[_call("2", "fail", why="once")], usage_metadata=_USAGE),
    # Equal calls under one id, as some providers give them.
    AIMessage("Again.", tool_calls=[_call("3", "charge", order=7), _call("3", "charge", order=7)]),
    AIMessage("", tool_calls=[_call("4", "look", at="order 7")], response_metadata={"finish_reason": "tool"}),
    AIMessage("All done.", usage_metadata=_USAGE, id="msg_5"),
)


@dataclass
class World:
    """What happened outside of the agent, and where it is killed.

    Attributes:
        kill_at: The point at which the process dies.
        points: All points that were come to, in order.
        effects: What the tools did.
        recovers: Whether the tool can tell if an interrupted call happened.
    """

    kill_at: str | None = None
    points: list[str] = field(default_factory=list)
    effects: list[str] = field(default_factory=list)
    recovers: bool = True

    def reach(self, point: str) -> None:
        """Come to a point: the n-th time, it is another one."""
        name = f"{point}#{sum(each.startswith(f'{point}#') for each in self.points)}"
        self.points.append(name)
        if name == self.kill_at:
            raise KilledError

    def find_charge(self, call: InterruptedCall) -> Any:
        """Whether the charge happened."""
        return Done("charged") if call.idempotency_key in self.effects else NotDone()


def agent_in(
    world: World, *, model_type: type[ScriptedModel] = ScriptedModel, **options: Any
) -> tuple[ScriptedModel, Any]:
    """The model and the agent, whose tools act in this world."""

    def script(messages: Any) -> AIMessage:
        turn = sum(isinstance(message, AIMessage) for message in messages)
        world.reach(f"model {turn}")
        return REPLIES[turn].model_copy(deep=True)

    @tool
    def look(at: str) -> str:
        """Look at something."""
        world.reach("look")
        return f"{at} is fine"

    @tool(response_format="content_and_artifact")
    def charge(order: int) -> tuple[str, dict[str, int]]:
        """Charge an order."""
        world.reach("before charge")
        step = current_step()
        world.effects.append(step.idempotency_key if step else "")
        world.reach("after charge")
        return f"charged {order}", {"order": order}

    @tool
    def fail(why: str) -> str:
        """Fail."""
        world.reach("fail")
        raise ToolException(f"failed {why}")

    fail.handle_tool_error = True
    hook = never(recover=world.find_charge) if world.recovers else never
    model = model_type(script=script)
    labels = JournalMiddleware(safe=["look", "fail"], policies={"charge": hook})
    agent = create_agent(model, [look, charge, fail], middleware=[labels], **options)
    return model, agent


@dataclass(frozen=True)
class Ended:
    """How an attempt ended.

    Attributes:
        result: What the caller got: messages, or the error.
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


def attempt(path: Path, world: World, *, resume: str, asynchronous: bool = False, **options: Any) -> Ended:
    """One attempt on the journal at this path; options of ``create_agent`` are for the agent, the rest for the run."""
    of_agent = {name: options.pop(name) for name in _OF_THE_AGENT if name in options}
    model, agent = agent_in(world, **of_agent)
    with Journal(path, redact=options.pop("redact", None)) as journal:
        given: Any = {"run_id": "order-7", "journal": journal, "resume": resume, **options}
        try:
            if asynchronous:
                state = asyncio.run(arun_durable(agent, QUESTION, **given))
            else:
                state = run_durable(agent, QUESTION, **given)
            result: Any = [plain(message) for message in state["messages"]]
        except KilledError:
            result = "killed"
        except GnlError as error:
            told = f"{type(error).__name__}: {error}".replace(path.name, "runs.db")
            result = re.sub(r"it began at \S+ \S+", "it began", told)
        rows = sorted(journal._database().load("order-7", 0.0), key=lambda row: row.key)
        last = journal.attempts("order-7")[-1]
    asked = [[plain(message) for message in messages] for messages in model.asked]
    return Ended(
        result,
        asked,
        sorted(world.effects),
        sorted(world.points),
        [row_of(row) for row in rows],
        counted(last),
    )


def plain(message: BaseMessage) -> Any:
    """A message with its id, unless that is made up anew each time."""
    fields = message.model_dump()
    if fields["id"] is not None and _MADE_UP.match(fields["id"]):
        fields["id"] = fields["id"][:3] if fields["id"].startswith("lc_") else "made up"
    return type(message).__name__, fields


def points_of(folder: Path) -> list[str]:
    """Every point of a whole run."""
    world = World()
    attempt(folder / "whole.db", world, resume="replay")
    return world.points
