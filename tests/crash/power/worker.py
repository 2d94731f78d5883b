"""Agents whose every file operation is recorded: python -m tests.crash.power.worker SCENARIO FOLDER.

The outside world is a file of lines in the same folder, so that its place in the order of all that happens is known.
"""

import asyncio
import json
import os
import random
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from gnl_middleware import Done, InterruptedCall, Journal, NotDone, current_step, keyed, never, safe
from gnl_middleware.adapter import (
    Message,
    ModelCall,
    Reply,
    ReplyCall,
    Session,
    ToolCall,
    current_session,
    digest,
    perform,
    perform_async,
    request_of,
)

WORLD = "world"
TOOLS = ("never", "keyed", "safe", "blocking")
"""The tools that each reply asks for: by label, and a ``never`` one without ``recover``."""

SCENARIOS = {
    "alone": {"order-0": 4},
    "together": {f"order-{number}": 2 for number in range(6)},
    "reopened": {f"order-{number}": 1 for number in range(3)},
    "checkpointed": {"order-0": 8},
    "steady": {"order-0": 50},
}
"""The runs of each scenario, and how many turns each takes."""

_LARGE = 200_000


class Shop:
    """The agents of a scenario, and what they do to the world.

    Args:
        folder: Where the journal and the world are.
        scenario: One of ``SCENARIOS``.
    """

    def __init__(self, folder: Path, scenario: str) -> None:
        self.folder, self.scenario = folder, scenario
        self.policies = {
            "never": never(recover=self._recover),
            "keyed": keyed,
            "safe": safe,
            "blocking": never,
        }

    def note(self, **entry: Any) -> None:
        """Let something happen in the world."""
        file = os.open(self.folder / WORLD, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.write(file, json.dumps(entry).encode() + b"\n")
        os.close(file)

    def happened(self, key: str) -> bool:
        """Whether the effect of an idempotency key is there to be seen."""
        path = self.folder / WORLD
        lines = path.read_bytes().splitlines() if path.exists() else []
        return any(entry.get("key") == key for entry in map(json.loads, lines))

    def result(self, name: str) -> str:
        """What a call returns; large where the journal must be made to write its log back."""
        large = random.Random(name).randbytes(_LARGE).hex() if self.scenario == "checkpointed" else ""
        return f"{name} is done {large}"

    def _recover(self, call: InterruptedCall) -> Done | NotDone:
        return Done(self.result(call.tool)) if self.happened(call.idempotency_key) else NotDone()

    def act(self, run_id: str, name: str, label: str) -> str:
        """A tool's body."""
        if self.scenario == "steady":
            time.sleep(0.02)  # the work itself: so much time passes in which nobody waits for the disk
        if label != "safe":
            self.note(effect=name, run=run_id, key=current_step().idempotency_key, label=label)
        return self.result(name)

    def play(self, session: Session, turns: int) -> str:
        """Work on a run to its end."""
        agent = _Agent(self, session.run_id, turns)
        for call in agent.calls():
            value = perform(session, call, lambda call=call: agent.body(call))
            agent.given(call, value)
        return agent.reply

    async def play_async(self, session: Session, turns: int) -> str:
        """The same, with the calls of a reply at once."""
        agent = _Agent(self, session.run_id, turns)
        for calls in agent.rounds():
            values = [
                perform_async(session, call, lambda call=call: agent.body_async(call)) for call in calls
            ]
            for call, value in zip(calls, await asyncio.gather(*values), strict=True):
                agent.given(call, value)
        return agent.reply


class _Agent:
    """How far an agent has come: the history of one conversation."""

    def __init__(self, shop: Shop, run_id: str, turns: int) -> None:
        self._shop, self._run_id, self._turns = shop, run_id, turns
        self._tools = ("safe",) if shop.scenario == "steady" else TOOLS
        self._history: list[tuple[str, str, str]] = [("user", "please settle my order", "")]
        self.reply = ""

    def rounds(self) -> Iterator[Sequence[ModelCall | ToolCall]]:
        """The model's call and the calls of its reply, turn by turn; each is due when the ones before were given."""
        for turn in range(self._turns + 1):
            names = [f"{label}-{turn}" for label in self._tools] if turn < self._turns else []
            yield [self._model_call(turn, names)]
            self._history.append(("assistant", self.reply, " ".join(names)))
            if names:
                yield [self._tool_call(name) for name in names]

    def calls(self) -> Iterator[ModelCall | ToolCall]:
        """All calls, one after another."""
        for calls in self.rounds():
            yield from calls

    def body(self, call: ModelCall | ToolCall) -> str:
        """What the call does if it runs."""
        label = call.name.partition("-")[0]
        return call.name if isinstance(call, ModelCall) else self._shop.act(self._run_id, call.name, label)

    async def body_async(self, call: ModelCall | ToolCall) -> str:
        """What the call does if it runs."""
        await asyncio.sleep(0)
        return self.body(call)

    def given(self, call: ModelCall | ToolCall, value: str) -> None:
        """The caller has the outcome."""
        self._shop.note(given=call.name, run=self._run_id)
        if isinstance(call, ModelCall):
            self.reply = value
        else:
            self._history.append(("tool", digest(value), call.call_id))

    def _model_call(self, turn: int, names: Sequence[str]) -> ModelCall:
        history = tuple(self._history)
        asked = tuple(ReplyCall(name, name, digest({"of": name})) for name in names)
        return ModelCall(
            name=f"model-{turn}",
            request=request_of(history, tuple(_message(*said) for said in history), "setup"),
            messages=tuple([list(said) for said in history]),
            describe=lambda text: Reply(digest=digest(text), calls=asked),
        )

    def _tool_call(self, name: str) -> ToolCall:
        policy = self._shop.policies[name.partition("-")[0]]
        return ToolCall(
            name=name, policy=policy, arguments={"of": name}, call_id=name, carrier=digest(self.reply)
        )


def _message(role: str, text: str, about: str) -> Message:
    return Message(
        role,
        digest([role, text, about]),
        call_ids=tuple(about.split()) if role == "assistant" else (),
        answers=about if role == "tool" else None,
        reply=digest(text) if role == "assistant" else None,
    )


def work(shop: Shop) -> None:
    """Play the scenario's runs: one after another, all at once, or each with the journal opened anew."""
    runs, path = SCENARIOS[shop.scenario], shop.folder / "runs.db"
    if shop.scenario == "together":
        with Journal(path) as journal:
            asyncio.run(_work_together(shop, journal, runs))
    elif shop.scenario == "reopened":
        for run_id, turns in runs.items():
            with Journal(path) as journal:
                finish(shop, journal, run_id, turns)
    else:
        with Journal(path) as journal:
            for run_id, turns in runs.items():
                finish(shop, journal, run_id, turns)


def finish(shop: Shop, journal: Journal, run_id: str, turns: int) -> str:
    """Play one run; the world hears when it was left."""
    with journal.run(run_id) as run:
        reply = shop.play(run.session, turns)
    shop.note(left=run_id)
    return reply


async def _work_together(shop: Shop, journal: Journal, runs: dict[str, int]) -> None:
    async def one(run_id: str, turns: int) -> None:
        async with journal.run(run_id) as run:
            assert current_session() is run.session
            await shop.play_async(run.session, turns)
        shop.note(left=run_id)

    await asyncio.gather(*(one(run_id, turns) for run_id, turns in runs.items()))


if __name__ == "__main__":
    work(Shop(Path(sys.argv[2]), sys.argv[1]))
