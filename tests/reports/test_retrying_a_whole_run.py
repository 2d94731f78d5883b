"""A loop around the whole run retries it from the top after a model call failed; finished tools fired again."""

import asyncio

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage

from gnl_langchain import JournalMiddleware, arun_durable, run_durable
from gnl_middleware import journaled, never
from tests.schedules.scripted_model import answers, calls, scripted


class Interrupted(BaseException):
    """What a deadline of the caller's own may look like: no Exception."""


def charging_agent(world, *, fails, error):
    """Charges twice, one turn after another; the n-th question gets an error instead of a reply."""

    def charge(amount: int) -> str:
        """Charge an amount."""
        return world.act(f"charge {amount}", f"charged {amount}")

    def script(messages, asked):
        if asked == fails:
            raise error
        done = answers(messages)
        return (
            AIMessage("done")
            if len(done) == 2
            else calls(("charge", {"amount": 42 + len(done)}, f"id_{asked}"))
        )

    return create_agent(scripted(script, world), [charge], middleware=[JournalMiddleware(never=["charge"])])


# LangChain's asynchronous models turn what is no Exception into an AttributeError, so that is tried synchronously only.
@pytest.mark.parametrize(
    ("mode", "error"),
    [
        pytest.param("sync", RuntimeError("500"), id="sync 500"),
        pytest.param("sync", Interrupted(), id="sync interrupted"),
        pytest.param("async", RuntimeError("500"), id="async 500"),
    ],
)
@pytest.mark.parametrize("fails", [1, 2, 3])
def test_a_loop_around_the_run(world, journal, mode, fails, error):
    """The retry reads back what finished and asks only the question that failed: one more model call, no more charges."""
    agent = charging_agent(world, fails=fails, error=error)
    arguments = {"run_id": "job", "journal": journal}

    def run():
        if mode == "sync":
            return run_durable(agent, {"messages": [("user", "charge")]}, **arguments)
        return asyncio.run(arun_durable(agent, {"messages": [("user", "charge")]}, **arguments))

    with pytest.raises(type(error)):
        run()
    state = run()

    assert state["messages"][-1].text == "done"
    assert world.effects == {"charge 42": 1, "charge 43": 1}
    assert world.model_calls == 3 + 1


def test_a_loop_around_plain_functions(world, journal):
    """A program without an agent, run again from the top, does not do again what it did."""
    broken = [True]

    @journaled(replay=never)
    def charge(amount: int) -> str:
        return world.act(f"charge {amount}", "charged")

    def job():
        with journal.run("job"):
            paid = charge(42)
            if broken.pop():
                broken.append(False)
                raise RuntimeError("the next call failed")
            return paid

    with pytest.raises(RuntimeError):
        job()
    paid = job()

    assert (paid, world.effects) == ("charged", {"charge 42": 1})
