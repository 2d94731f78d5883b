"""What a model is being asked already is not asked again: by another worker, or by the next attempt (DESIGN 3.1)."""

import contextvars
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage

from gnl_langchain import JournalMiddleware
from gnl_middleware import Journal
from tests.langchain.scripted import QUESTION, ScriptedModel
from tests.workers.programs import RUN


@pytest.fixture
def journal(place):
    """The journal that all of them share."""
    with Journal(place) as opened:
        yield opened


class Desk:
    """An agent that refunds two orders; notes what it really did. Its first request is held up until ``answer`` is set."""

    def __init__(self):
        self.asked, self.refunded = [], []
        self.asking, self.answer = threading.Event(), threading.Event()

    def script(self, messages):
        """Refund twice, then say how often the model was asked."""
        self.asked.append(len(messages))
        if len(self.asked) == 1:
            self.asking.set()
            self.answer.wait()
        if len(messages) < 5:
            call = {"name": "refund", "args": {"order": len(messages)}, "id": f"c{len(messages)}"}
            return AIMessage("", tool_calls=[call])
        return AIMessage(f"asked {len(self.asked)} times")

    def work(self):
        """One conversation, whose messages are returned."""

        def refund(order: int) -> str:
            """Refund an order."""
            self.refunded.append(order)
            return f"refunded {order}"

        agent = create_agent(
            ScriptedModel(script=self.script), [refund], middleware=[JournalMiddleware(never=[refund])]
        )
        return [message.content for message in agent.invoke(QUESTION)["messages"]]


@pytest.fixture
def desk():
    """The desk, whose model answers at the latest when the test is over."""
    made = Desk()
    yield made
    made.answer.set()


@pytest.fixture
def begin():
    """Begins work on a thread in a context of its own; gives its future."""
    with ThreadPoolExecutor(2) as pool:
        yield lambda *work: pool.submit(contextvars.Context().run, *work)


def test_model_is_asked_once(journal, desk, begin):
    """Of two agents at one run, one asks the model and one runs each tool; both have the same conversation."""
    met = threading.Barrier(2)
    desk.answer.set()

    def work():
        met.wait()
        with journal.run(RUN, lock=False):
            return desk.work()

    first, second = [each.result() for each in [begin(work), begin(work)]]

    assert first == second
    assert (desk.asked, desk.refunded) == ([1, 3, 5], [1, 3])


def test_worker_that_comes_while_the_model_is_asked_waits_for_its_reply(journal, desk, begin):
    """A worker that begins while another one's model is being asked waits for that reply, and refunds nothing twice."""

    def early():
        with journal.run(RUN, lock=False):
            return desk.work()

    def late():
        with journal.run(RUN, lock=False):
            desk.answer.set()
            return desk.work()

    first = begin(early)
    desk.asking.wait()
    second = begin(late)

    assert first.result() == second.result()
    assert (desk.asked, desk.refunded) == ([1, 3, 5], [1, 3])


def test_attempt_that_comes_while_the_model_is_asked_waits_for_its_reply(journal, desk, begin):
    """An attempt whose predecessor was left while its model was being asked waits for that reply; every replay agrees."""
    with journal.run(RUN, grace=0.0):
        left = begin(contextvars.copy_context().run, desk.work)
        desk.asking.wait()
    with journal.run(RUN):
        desk.answer.set()
        again = desk.work()
    with pytest.raises(Exception, match="left"):
        left.result()
    with journal.run(RUN):
        replayed = desk.work()

    assert again == replayed
    assert (desk.asked, desk.refunded) == ([1, 3, 5], [1, 3])
