"""One saved approval that is handled more than once, whoever handles it, and whatever they answer."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command

from gnl_langchain import JournalMiddleware, run_durable
from gnl_middleware import Journal, RunBusyError, never
from tests.langchain.processes import in_process
from tests.langchain.scripted import QUESTION, ScriptedModel, said, turns
from tests.once.agents import answers, asking_for
from tests.once.world import PATIENCE
from tests.worlds import Log

THREAD = {"configurable": {"thread_id": "order:7"}}
APPROVE = Command(resume={"decisions": [{"type": "approve"}]})
REJECT = Command(resume={"decisions": [{"type": "reject", "message": "not this one"}]})


class Desk:
    """An agent whose refunds are approved by a person, with checkpoints and a journal in a folder.

    Args:
        folder: Where the world and the journal are.
        saver: Keeps the checkpoints.
    """

    def __init__(self, folder, saver):
        self.world, self.journal = Log(folder / "effects"), Journal(folder / "runs.db")

        def refund(order: str) -> str:
            """Refund an order."""
            self.world.add(order)
            return f"refunded {order}"

        self.model = ScriptedModel(script=turns(asking_for("call_1"), said()))
        approval = HumanInTheLoopMiddleware(interrupt_on={"refund": True})
        journaling = JournalMiddleware(policies={"refund": never})
        self.agent = create_agent(self.model, [refund], middleware=[approval, journaling], checkpointer=saver)

    def call(self, what, config=THREAD, **options):
        """Call the agent in the run of the order."""
        return run_durable(self.agent, what, run_id="order:7", journal=self.journal, config=config, **options)

    def saved(self):
        """The approval as it is saved."""
        return self.agent.get_state(THREAD).config


@pytest.fixture
def desk(tmp_path):
    """A desk that waits for an approval."""
    desk = Desk(tmp_path, InMemorySaver())
    with desk.journal:
        assert "__interrupt__" in desk.call(QUESTION)
        yield desk


def test_a_run_that_waits_for_a_person_is_paused(desk):
    """Until somebody answers, the run is listed as paused and nothing has happened."""
    (run,) = desk.journal.runs()

    assert (run.status, desk.world.lines()) == ("paused", [])


def test_handled_again_and_again(desk):
    """The same saved approval, resumed three times: one refund, one final reply, and the model is asked twice in all."""
    saved = desk.saved()

    replies = [desk.call(APPROVE, saved)["messages"][-1].text for _ in range(3)]

    assert (replies, desk.world.lines(), len(desk.model.asked)) == (["Done."] * 3, ["o-7"], 2)


def test_handled_at_the_same_moment(desk):
    """Two handlers resume at once: one works, the other waits and reads back what it did."""
    saved, together = desk.saved(), threading.Barrier(2, timeout=PATIENCE)

    def handle(_):
        together.wait()
        return answers(desk.call(APPROVE, saved, on_busy="wait")["messages"])

    with ThreadPoolExecutor(2) as handlers:
        heard = list(handlers.map(handle, range(2)))

    assert heard == [[("call_1", "refunded o-7")]] * 2
    assert (desk.world.lines(), len(desk.model.asked)) == (["o-7"], 2)


def test_the_second_handler_is_refused_unless_it_waits(desk):
    """By default a second handler gets RunBusyError while the first one works."""
    saved = desk.saved()

    with desk.journal.run("order:7"), pytest.raises(RunBusyError):
        desk.call(APPROVE, saved)

    assert desk.world.lines() == []


@pytest.mark.parametrize("replay", ["lenient", "strict"])
@pytest.mark.parametrize(
    ("first", "second", "effects"),
    [
        pytest.param(APPROVE, REJECT, ["o-7"], id="approved, then rejected"),
        pytest.param(REJECT, APPROVE, [], id="rejected, then approved"),
    ],
)
def test_a_second_answer_that_contradicts_the_first(desk, first, second, effects, replay):
    """The first answer to a saved approval stands: the second changes neither the world nor what the agent says."""
    saved = desk.saved()
    said_first = answers(desk.call(first, saved, replay=replay)["messages"])

    said_later = [answers(desk.call(second, saved, replay=replay)["messages"]) for _ in range(2)]

    assert said_later == [said_first] * 2
    assert (desk.world.lines(), len(desk.model.asked)) == (effects, 2)


@pytest.mark.parametrize(
    "point", ["after_intent", "before_body", "after_body", "before_outcome", "after_outcome"]
)
def test_a_handler_that_dies(tmp_path, point):
    """The first handler's process dies in the refund, the second handles the same approval: never a second refund."""
    assert in_process(handled, tmp_path, "pause").value == ["paused"]
    crashed = in_process(handled, tmp_path, "approve", crash_at=f"refund:{point}")
    before = Log(tmp_path / "effects").lines()

    ended = [in_process(handled, tmp_path, "approve") for _ in range(2)]

    assert crashed.died
    assert Log(tmp_path / "effects").lines() == before
    if point == "after_outcome":
        assert [end.value for end in ended] == [["Done."]] * 2
    else:
        assert [end.error[1] for end in ended] == ["SideEffectRetryBlockedError"] * 2


def handled(folder, what):
    """Runs in a process of its own."""
    with SqliteSaver.from_conn_string(str(folder / "checkpoints.db")) as saver:
        desk = Desk(folder, saver)
        with desk.journal:
            if what == "pause":
                desk.call(QUESTION)
                (folder / "saved").write_text(desk.saved()["configurable"]["checkpoint_id"], encoding="utf-8")
                return ["paused"]
            checkpoint = (folder / "saved").read_text(encoding="utf-8")
            config = {
                "configurable": {**THREAD["configurable"], "checkpoint_id": checkpoint, "checkpoint_ns": ""}
            }
            return [desk.call(APPROVE, config)["messages"][-1].text]
