"""The programs of the reported troubles that need a process to die."""

import asyncio
from collections.abc import Sequence

from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage

from gnl_langchain import JournalMiddleware, arun_durable
from gnl_middleware import InterruptedCall, NotDone, current_step, keyed, never, safe
from tests.schedules.scripted_model import answers, calls, scripted
from tests.schedules.stage import RUN_ID, Stage, program

REQUEST = {"messages": [("user", "please")]}


@program
def one_charge(stage: Stage) -> str:
    """One charge, under the label that the schedule gives it."""

    def charge(amount: int) -> str:
        """Charge an amount."""
        step = current_step()
        return stage.world.act(f"charge {amount} {step.idempotency_key if step else ''}", f"charged {amount}")

    def script(messages: Sequence[BaseMessage], asked: int) -> AIMessage:
        if done := answers(messages):
            return AIMessage(f"done: {done[0]}")
        return calls(("charge", {"amount": 42}, f"call_{asked}"))

    policies = {
        "safe": safe,
        "keyed": keyed,
        "never": never,
        "recover": stage.never,
        "tell_model": never(on_interrupted="tell_model"),
    }
    agent = create_agent(
        scripted(script, stage.world),
        [charge],
        middleware=[JournalMiddleware(policies={"charge": policies[stage.option("policy", "safe")]})],
        checkpointer=stage.saver,
    )
    return stage.durable(agent, REQUEST)


@program
def two_equal_calls(stage: Stage) -> str:
    """The same item added twice, both times meant, in one reply or in two turns; the answers say which was which."""
    in_one_reply = stage.option("turns") == "1"

    def add_item(sku: int) -> str:
        """Add an item to the basket."""
        step = current_step()
        place = int(step.key.split("/")[-2]) if step else 0  # the place of the call in its reply
        nth = place + 1 if in_one_reply else sum(stage.world.effects.values()) + 1
        return stage.world.act(f"add {sku}", f"item {nth}")

    def script(messages: Sequence[BaseMessage], asked: int) -> AIMessage:
        done = answers(messages)
        if len(done) == 2:
            return AIMessage("done: " + " | ".join(done))
        names = {"fresh": (f"a{asked}", f"b{asked}"), "reused": ("call_0", "call_0")}[stage.option("ids")]
        both = [("add_item", {"sku": 1}, name) for name in names]
        return calls(*both) if in_one_reply else calls(both[len(done)])

    agent = create_agent(
        scripted(script, stage.world),
        [add_item],
        middleware=[JournalMiddleware(policies={"add_item": stage.never})],
    )
    return stage.durable(agent, REQUEST)


@program
def synchronous_inside_a_loop(stage: Stage) -> str:
    """The synchronous interface, called where an event loop is running: a notebook cell."""

    async def settled(call: InterruptedCall) -> NotDone:
        await asyncio.sleep(0)
        return NotDone()

    def charge(amount: int) -> str:
        """Charge an amount."""
        return stage.world.act(f"charge {amount}", "charged")

    def script(messages: Sequence[BaseMessage], asked: int) -> AIMessage:
        return AIMessage("done") if answers(messages) else calls(("charge", {"amount": 42}, f"call_{asked}"))

    agent = create_agent(
        scripted(script, stage.world),
        [charge],
        middleware=[JournalMiddleware(policies={"charge": never(recover=settled)})],
    )

    async def cell() -> str:
        reply = stage.durable(agent, REQUEST)
        assert stage.journal.runs()[0].status == "completed"
        state = await arun_durable(agent, REQUEST, run_id=RUN_ID, journal=stage.journal, offline=True)
        assert state["messages"][-1].text == reply
        return reply

    return asyncio.run(cell())
