"""Tools of an agent that are cut off while they run: by a timeout, a cancellation, a reader that walks away (DESIGN 3.1)."""

import asyncio
import threading

import pytest
from langchain.agents.middleware import AgentMiddleware

from gnl_middleware import Done, NotDone, SideEffectRetryBlockedError, Unknown, keyed, never, safe
from tests.langchain.scripted import QUESTION
from tests.once.agents import FIVE, agent_with, answers, asking_for
from tests.once.refunds import run_status, started_thread, wait_for
from tests.once.world import PATIENCE


class Impatient(AgentMiddleware):
    """Cancels a tool that takes too long, and calls it again, as timeouts in agents are written.

    Args:
        slow: What the tool does; it is let go once it was called again.
        times: How often it is called at most.
    """

    def __init__(self, slow, times=2):
        super().__init__()
        self.slow, self.times, self.called = slow, times, 0

    async def awrap_tool_call(self, request, handler):
        """Call the tool."""
        for _ in range(self.times - 1):
            call = asyncio.ensure_future(handler(request))
            await asyncio.to_thread(wait_for, self.slow.inside)
            call.cancel()
            await asyncio.wait([call])
        again = asyncio.ensure_future(handler(request))
        await asyncio.sleep(0.2)
        self.slow.waited = not again.done()
        self.slow.go.set()
        return await again


class Slow:
    """A refund that stays in its body until it is let go.

    Attributes:
        inside: Set when a body has begun.
        go: Lets the body end.
        waited: Whether a call that was made again was waiting before the body was let go.
    """

    def __init__(self, effects):
        self.effects, self.inside, self.go = effects, threading.Event(), threading.Event()
        self.waited = None

    def function(self):
        """As a synchronous tool: its thread cannot be stopped."""

        def refund(order: str) -> str:
            """Refund an order."""
            self.effects.add(order)
            self.inside.set()
            wait_for(self.go)
            return f"refunded {order}"

        return refund

    def coroutine(self):
        """As a coroutine: it can be cancelled where it awaits."""

        async def refund(order: str) -> str:
            """Refund an order."""
            self.effects.add(order)
            self.inside.set()
            while not self.go.is_set():  # noqa: ASYNC110 - an event of asyncio belongs to one loop
                await asyncio.sleep(0.01)
            return f"refunded {order}"

        return refund


def run(coroutine):
    """Run to the end; what hangs fails its test."""
    return asyncio.run(asyncio.wait_for(coroutine, PATIENCE))


def refund_step(journal):
    """The one step of the refund."""
    (step,) = [step for step in journal.steps("run") if step.name == "refund"]
    return step


@pytest.fixture
def slow(effects):
    """A slow refund; whatever is still in it is let go after the test."""
    slow = Slow(effects)
    yield slow
    slow.go.set()


async def _give_up(journal, agent, slow):
    """An attempt that is cancelled while the tool is in its body, and killed with it."""

    async def attempt():
        async with journal.run("run"):
            await agent.ainvoke(QUESTION)

    call = asyncio.ensure_future(attempt())
    await asyncio.to_thread(wait_for, slow.inside)
    call.cancel()
    await asyncio.wait([call])
    assert call.cancelled()


async def _call(journal, agent):
    """An attempt that goes to its end; gives the agent's state."""
    async with journal.run("run"):
        return await agent.ainvoke(QUESTION)


both_times = pytest.mark.parametrize("again", ["same attempt", "next attempt"])


class TestCancelledCoroutines:
    """A coroutine tool ends where it was cancelled: nobody knows whether it had its effect."""

    def cut_off_and_again(self, journal, slow, policy, *call_ids, again="next attempt"):
        """An agent whose refund is cancelled in its body and asked for again; gives what the model is told."""
        reply = asking_for(*(call_ids or ("call_1",)))
        if again == "same attempt":
            agent, asked = agent_with([slow.coroutine()], policy, reply, middleware=[Impatient(slow)])
            run(_call(journal, agent))
        else:
            agent, asked = agent_with([slow.coroutine()], policy, reply)
            run(_give_up(journal, agent, slow))
            slow.go.set()
            run(_call(journal, agent))
        return answers(asked[1])

    @both_times
    def test_never_blocks(self, journal, slow, effects, again):
        """A `never` tool that was cancelled in its body may have had its effect: asked for again, it does not run."""
        with pytest.raises(SideEffectRetryBlockedError):
            self.cut_off_and_again(journal, slow, never, again=again)

        assert (effects.lines(), refund_step(journal).status) == (["o-7"], "started")
        assert run_status(journal) == "blocked"

    @both_times
    def test_never_is_settled(self, journal, slow, effects, again):
        """`recover` tells what became of it."""
        policy = never(recover=lambda call: Done("found"))

        heard = self.cut_off_and_again(journal, slow, policy, again=again)

        assert (heard, effects.lines()) == ([("call_1", "found")], ["o-7"])

    @both_times
    @pytest.mark.parametrize("policy", [safe, keyed], ids=lambda policy: policy.label)
    def test_others_run_again(self, journal, slow, effects, policy, again):
        """What may run twice runs again."""
        heard = self.cut_off_and_again(journal, slow, policy, again=again)

        assert (heard, effects.lines()) == ([("call_1", "refunded o-7")], ["o-7", "o-7"])

    def test_all_five_that_share_a_key(self, journal, slow, effects):
        """The winner and the four that wait are cancelled together: they are settled as one, and nobody runs again."""
        asked_about = []
        policy = never(once_per="args", recover=lambda call: asked_about.append(call) or Done("found"))

        heard = self.cut_off_and_again(journal, slow, policy, *FIVE)

        assert heard == [(call_id, "found") for call_id in FIVE]
        assert (effects.lines(), len(asked_about)) == (["o-7"], 1)

    def test_a_taker_after_a_cancelled_winner(self, journal, slow, effects):
        """`recover` says that the cancelled winner did nothing: one of the five takes its place."""
        knows = []
        policy = never(once_per="args", recover=lambda call: NotDone() if knows else Unknown())
        with pytest.raises(SideEffectRetryBlockedError):
            self.cut_off_and_again(journal, slow, policy, *FIVE)
        knows.append(True)
        agent, asked = agent_with([slow.coroutine()], policy, asking_for(*FIVE))

        run(_call(journal, agent))

        assert answers(asked[-1]) == [(call_id, "refunded o-7") for call_id in FIVE]
        assert effects.lines() == ["o-7", "o-7"]

    def test_a_timeout_inside_the_tool(self, journal, slow, effects):
        """A timeout that the tool sets itself ends its body with an error: a failure like any other."""
        body = slow.coroutine()

        async def refund(order: str) -> str:
            """Refund an order."""
            async with asyncio.timeout(0.2):
                return await body(order)

        agent, asked = agent_with([refund], never, asking_for("call_1"))

        async def twice():
            for _ in range(2):
                try:
                    async with journal.run("run"):
                        await agent.ainvoke(QUESTION)
                except TimeoutError:
                    continue

        with pytest.raises(SideEffectRetryBlockedError):
            run(twice())

        assert (effects.lines(), len(asked), refund_step(journal).error) == (["o-7"], 1, "TimeoutError: ")


class TestAbandonedThreads:
    """A synchronous tool of an asynchronous agent runs in a thread: a cancellation leaves it behind, and it goes on."""

    def test_its_outcome_is_recorded_when_it_ends(self, journal, slow, effects):
        """Leaving the run waits for the thread; what it did is read back, and the next attempt runs nothing."""
        agent, _ = agent_with([slow.function()], never, asking_for("call_1"))

        async def given_up():
            asyncio.get_running_loop().call_later(0.5, slow.go.set)
            await _give_up(journal, agent, slow)

        run(given_up())
        status = refund_step(journal).status
        state = run(_call(journal, agent))

        assert (status, answers(state["messages"])) == ("done", [("call_1", "refunded o-7")])
        assert effects.lines() == ["o-7"]

    @pytest.mark.parametrize("policy", [safe, keyed, never], ids=lambda policy: policy.label)
    def test_the_same_call_again_waits_for_it(self, journal, slow, effects, policy):
        """Whatever the label, nobody runs beside a thread that is still in the body: the second call gets its outcome."""
        impatient = Impatient(slow, times=3)
        agent, asked = agent_with([slow.function()], policy, asking_for("call_1"), middleware=[impatient])

        run(_call(journal, agent))

        assert (slow.waited, answers(asked[1])) == (True, [("call_1", "refunded o-7")])
        assert effects.lines() == ["o-7"]

    def test_five_that_share_a_key(self, journal, slow, effects):
        """Those that wait for an abandoned thread wait on, and get what it did."""
        agent, asked = agent_with(
            [slow.function()], never(once_per="args"), asking_for(*FIVE), middleware=[Impatient(slow)]
        )

        run(_call(journal, agent))

        assert answers(asked[1]) == [(call_id, "refunded o-7") for call_id in FIVE]
        assert effects.lines() == ["o-7"]

    def test_an_error_is_recorded_too(self, journal, slow, effects):
        """An abandoned thread that fails in the end has failed: the next attempt knows of it and does not run beside it."""
        body = slow.function()

        def refund(order: str) -> str:
            """Refund an order."""
            body(order)
            raise ValueError("no such order")

        agent, _ = agent_with([refund], never, asking_for("call_1"))

        async def given_up():
            asyncio.get_running_loop().call_later(0.5, slow.go.set)
            await _give_up(journal, agent, slow)

        run(given_up())

        step = refund_step(journal)
        assert (step.status, step.error) == ("failed", "ValueError: no such order")

    def test_a_caller_that_walks_away(self, journal, slow, effects):
        """A synchronous agent whose caller waits no longer goes on in its thread: leaving waits for it and keeps its outcome."""
        agent, _ = agent_with([slow.function()], never, asking_for("call_1"))

        with journal.run("run"):
            left_behind = started_thread(lambda: agent.invoke(QUESTION))
            wait_for(slow.inside)
            threading.Timer(0.2, slow.go.set).start()
        step = refund_step(journal)
        with journal.run("run"):
            state = agent.invoke(QUESTION)

        assert (step.status, answers(state["messages"])) == ("done", [("call_1", "refunded o-7")])
        assert effects.lines() == ["o-7"]
        left_behind.exception(PATIENCE)

    def test_a_step_timeout_of_the_graph(self, journal, slow, effects):
        """A graph that gives up on its step after a time leaves the tool in its thread; its outcome is kept."""
        agent, _ = agent_with([slow.function()], never, asking_for("call_1"))
        agent.step_timeout = 0.3

        threading.Timer(1, slow.go.set).start()
        with pytest.raises(TimeoutError), journal.run("run"):
            agent.invoke(QUESTION)
        agent.step_timeout = None
        with journal.run("run"):
            state = agent.invoke(QUESTION)

        assert answers(state["messages"]) == [("call_1", "refunded o-7")]
        assert effects.lines() == ["o-7"]


def test_a_reader_that_stops_reading(journal, slow, effects):
    """A caller that leaves a stream in the middle of the tools has cancelled them: nothing runs twice, and it can go on."""
    policy = never(recover=lambda call: Done("found"))
    agent, _ = agent_with([slow.coroutine()], policy, asking_for("call_1"))

    async def read_a_little():
        async with journal.run("run"):
            stream = agent.astream(QUESTION, stream_mode="updates")
            async for _ in stream:
                break
            reading = asyncio.ensure_future(anext(stream))
            await asyncio.to_thread(wait_for, slow.inside)
            reading.cancel()
            await asyncio.wait([reading])
            await stream.aclose()
        async with journal.run("run"):
            return await agent.ainvoke(QUESTION)

    assert answers(run(read_a_little())["messages"]) == [("call_1", "found")]
    assert effects.lines() == ["o-7"]
