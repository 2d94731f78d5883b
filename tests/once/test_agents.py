"""LangChain agents whose model asks for one piece of business more than once (DESIGN 3.4)."""

import asyncio
import threading
from typing import Annotated

import pytest
from langchain_core.messages import ToolMessage
from langchain_core.tools import InjectedToolCallId, tool
from langgraph.errors import ParentCommand
from langgraph.types import Command

from gnl_middleware import (
    Done,
    Journal,
    NotDone,
    current_step,
    never,
)
from tests.langchain.driving import WAYS, drive
from tests.langchain.processes import in_process
from tests.langchain.scripted import QUESTION
from tests.once.agents import FIVE, agent_with, answers, asking_for, every_way, per_order, refunding, told
from tests.once.world import PATIENCE
from tests.worlds import Log

IN_RUN = never(once_per="args")
IN_JOURNAL = never(once_per=per_order, window="journal")
both_windows = pytest.mark.parametrize("policy", [IN_RUN, IN_JOURNAL], ids=["run", "journal"])


@every_way
@both_windows
class TestFiveEqualCallsOfOneReply:
    def test_one_effect_and_five_answers(self, journal, effects, policy, way):
        """The model asks five times at once: one refund, and each call gets its outcome under its own id, in order."""
        agent, asked = agent_with([refunding(effects)], policy, asking_for(*FIVE))

        drive(journal, agent, way)

        assert effects.lines() == ["o-7"]
        assert answers(asked[1]) == [(call_id, "refunded o-7") for call_id in FIVE]

    def test_replay_is_byte_for_byte(self, journal, effects, policy, way):
        """Later attempts run nothing and end with the very conversation of the first."""
        agent, asked = agent_with([refunding(effects)], policy, asking_for(*FIVE))
        first = drive(journal, agent, way)

        later = [drive(journal, agent, way) for _ in range(2)]

        assert [told(driven.state["messages"]) for driven in later] == [told(first.state["messages"])] * 2
        assert ([driven.ran for driven in later], len(asked), effects.lines()) == ([0, 0], 2, ["o-7"])

    def test_those_that_wait_let_the_winner_end(self, journal, effects, policy, way):
        """The winner takes its time: the four others neither run nor give up, in threads and on an event loop."""
        meanwhile = []

        def slowly(order):
            threading.Event().wait(0.3)
            meanwhile.append(len(effects.lines()))
            return f"refunded {order} slowly"

        agent, asked = agent_with([refunding(effects, slowly)], policy, asking_for(*FIVE))

        drive(journal, agent, way)

        assert meanwhile == [1]
        assert answers(asked[1]) == [(call_id, "refunded o-7 slowly") for call_id in FIVE]


@every_way
class TestCallsThatCome:
    def test_in_a_later_turn(self, journal, effects, way):
        """A model that plans the same refund again, turns later and under a new id, gets the first one's outcome."""
        agent, _ = agent_with(
            [refunding(effects)],
            IN_RUN,
            asking_for("call_1"),
            asking_for("call_2", order="o-8"),
            asking_for("call_3"),
        )

        driven = drive(journal, agent, way)
        again = drive(journal, agent, way)

        assert effects.lines() == ["o-7", "o-8"]
        expected = [("call_1", "refunded o-7"), ("call_2", "refunded o-8"), ("call_3", "refunded o-7")]
        assert answers(driven.state["messages"]) == answers(again.state["messages"]) == expected

    @pytest.mark.parametrize(("policy", "count"), [(IN_RUN, 2), (IN_JOURNAL, 1)], ids=["run", "journal"])
    def test_in_another_run(self, journal, effects, way, policy, count):
        """Another run asks under another id: in the journal's window it gets the outcome, in the run's it acts."""
        first, _ = agent_with([refunding(effects)], policy, asking_for("call_1"))
        second, asked = agent_with([refunding(effects)], policy, asking_for("call_2"))

        drive(journal, first, way, run_id="first")
        drive(journal, second, way, run_id="second")

        assert answers(asked[1]) == [("call_2", "refunded o-7")]
        assert len(effects.lines()) == count

    def test_with_other_arguments(self, journal, effects, way):
        """Calls of one reply that are about different orders are different effects."""
        reply = asking_for("call_a")
        reply.tool_calls += asking_for("call_b", order="o-8").tool_calls
        agent, asked = agent_with([refunding(effects)], IN_RUN, reply)

        drive(journal, agent, way)

        assert sorted(effects.lines()) == ["o-7", "o-8"]
        assert answers(asked[1]) == [("call_a", "refunded o-7"), ("call_b", "refunded o-8")]


POINTS = ["after_intent", "before_body", "after_body", "before_outcome", "after_outcome"]


class TestDeathOfTheWinner:
    """The worker dies in the one call that runs; the retry comes to the five in whatever order."""

    @pytest.mark.parametrize("point", POINTS)
    @pytest.mark.parametrize(
        "way", [WAYS[0], *(pytest.param(way, marks=pytest.mark.long) for way in WAYS[1:])]
    )
    def test_recover_tells(self, tmp_path, point, way):
        """Whatever point it dies at: one refund, five answers, and the first reply is paid for once."""
        crashed = in_process(five_refunds, tmp_path, way, True, crash_at=f"refund:{point}")

        ended = [in_process(five_refunds, tmp_path, way, True) for _ in range(2)]

        assert crashed.died
        assert ended[0].code == ended[1].code == 0, ended
        assert [call_id for call_id, _ in ended[0].value["answers"]] == list(FIVE)
        assert len({text for _, text in ended[0].value["answers"]}) == 1
        assert ended[1].value["answers"] == ended[0].value["answers"]
        assert (ended[0].value["asked"], ended[1].value["asked"]) == ([7], [])
        assert len(Log(tmp_path / "effects").lines()) == 1

    @pytest.mark.parametrize("point", POINTS[:-1])
    def test_nothing_can_tell(self, tmp_path, point):
        """Without a hook the run blocks before the model hears anything; after a person's word it ends with one refund."""
        in_process(five_refunds, tmp_path, "invoke", False, crash_at=f"refund:{point}")
        happened = len(Log(tmp_path / "effects").lines())
        blocked = [in_process(five_refunds, tmp_path, "invoke", False) for _ in range(2)]

        with Journal(tmp_path / "runs.db") as journal:
            (step,) = [step for step in journal.steps("run") if step.blocked]
            journal.resolve("run", step.key, Done("refunded o-7") if happened else NotDone(), by="ops")
        ended = in_process(five_refunds, tmp_path, "invoke", False)

        assert [end.error[1] for end in blocked] == ["SideEffectRetryBlockedError"] * 2
        assert ended.value["answers"] == [[call_id, "refunded o-7"] for call_id in FIVE], ended
        assert len(Log(tmp_path / "effects").lines()) == 1


def five_refunds(folder, way, has_hook):
    """Runs in a process of its own."""
    effects = Log(folder / "effects")

    def refund(order: str) -> str:
        """Refund an order."""
        effects.add(f"{order} {current_step().idempotency_key}")
        return f"refunded {order}"

    def look(call):
        done = any(call.idempotency_key in line for line in effects.lines())
        return Done("refunded o-7: found") if done else NotDone()

    policy = never(once_per="args", recover=look if has_hook else None)
    agent, asked = agent_with([refund], policy, asking_for(*FIVE))
    with Journal(folder / "runs.db") as journal:
        driven = drive(journal, agent, way)
    return {"answers": answers(driven.state["messages"]), "asked": [len(messages) for messages in asked]}


class TestWhatIsShared:
    """Whatever a tool hands on, the call that shares it answers its own id."""

    def shared(self, journal, made, way="invoke", policy=IN_JOURNAL, **options):
        """The messages after a turn whose reply asks for the tool twice, and once more in another run."""
        agent, _ = agent_with([made], policy, asking_for("call_a", "call_b", name=made.name), **options)
        other, _ = agent_with([made], policy, asking_for("call_c", name=made.name), **options)
        states = [drive(journal, agent, way, run_id="one").state for _ in range(2)]
        states += [drive(journal, other, way, run_id="two").state for _ in range(2)]
        assert told(states[0]["messages"]) == told(states[1]["messages"])
        assert told(states[2]["messages"]) == told(states[3]["messages"])
        return [
            message
            for state in (states[0], states[2])
            for message in state["messages"]
            if isinstance(message, ToolMessage)
        ]

    @every_way
    def test_content_and_artifact(self, journal, effects, way):
        """The artifact is shared with the content."""

        @tool(response_format="content_and_artifact")
        def refund(order: str) -> tuple[str, dict]:
            """Refund an order."""
            effects.add(order)
            return f"refunded {order}", {"receipt": [4711]}

        messages = self.shared(journal, refund, way)

        assert [(message.tool_call_id, message.content, message.artifact) for message in messages] == [
            (call_id, "refunded o-7", {"receipt": [4711]}) for call_id in ("call_a", "call_b", "call_c")
        ]
        assert effects.lines() == ["o-7"]

    @every_way
    def test_a_command(self, journal, effects, way):
        """A command that answers its call through the state answers the other's call there."""

        @tool
        def refund(order: str, call_id: Annotated[str, InjectedToolCallId]) -> Command:
            """Refund an order."""
            effects.add(order)
            return Command(update={"messages": [ToolMessage(f"refunded {order}", tool_call_id=call_id)]})

        messages = self.shared(journal, refund, way)

        assert [(message.tool_call_id, message.content) for message in messages] == [
            (call_id, "refunded o-7") for call_id in ("call_a", "call_b", "call_c")
        ]
        assert effects.lines() == ["o-7"]

    def test_a_message(self, journal, effects):
        """A tool that makes its own message, with a status and an id, shares all but what names the call."""

        @tool
        def refund(order: str, call_id: Annotated[str, InjectedToolCallId]) -> ToolMessage:
            """Refund an order."""
            effects.add(order)
            return ToolMessage(
                [{"type": "text", "text": "refused"}],
                tool_call_id=call_id,
                status="error",
                name="refund",
                id=f"made for {call_id}",
            )

        messages = self.shared(journal, refund)

        assert [(message.tool_call_id, message.status) for message in messages] == [
            (call_id, "error") for call_id in ("call_a", "call_b", "call_c")
        ]
        assert len({message.id for message in messages}) == 3
        assert effects.lines() == ["o-7"]

    def test_a_list_of_commands_and_messages(self, journal, effects):
        """Of several results each one that names the call is made the other's."""

        @tool
        def refund(order: str, call_id: Annotated[str, InjectedToolCallId]) -> list:
            """Refund an order."""
            effects.add(order)
            return [
                ToolMessage(f"refunded {order}", tool_call_id=call_id),
                Command(update={"messages": []}),
            ]

        messages = self.shared(journal, refund)

        assert [(message.tool_call_id, message.content) for message in messages] == [
            (call_id, "refunded o-7") for call_id in ("call_a", "call_b", "call_c")
        ]

    def test_a_command_for_the_graph_around(self, journal, effects):
        """A hand-over to the graph around the agent, raised inside the tool, names the call that it answers there."""

        @tool
        def refund(order: str, call_id: Annotated[str, InjectedToolCallId]) -> str:
            """Refund an order."""
            effects.add(order)
            answer = ToolMessage(f"refunded {order}", tool_call_id=call_id)
            raise ParentCommand(
                Command(graph=Command.PARENT, goto="elsewhere", update={"messages": [answer]})
            )

        seen = []
        for run, call_id in (("one", "call_a"), ("two", "call_b"), ("two", "call_b")):
            agent, _ = agent_with([refund], IN_JOURNAL, asking_for(call_id))
            with pytest.raises(ParentCommand) as raised:
                drive(journal, agent, run_id=run)
            seen += [message.tool_call_id for message in raised.value.args[0].update["messages"]]

        assert seen == ["call_a", "call_b", "call_b"]
        assert effects.lines() == ["o-7"]

    @pytest.mark.parametrize("value", ["found", ("found", {"receipt": 4711})], ids=["content", "pair"])
    def test_what_recover_found(self, journal, effects, value):
        """A raw value of `recover` becomes each call's own message, of content and artifact as the tool would make it."""

        @tool(response_format="content_and_artifact")
        def refund(order: str) -> tuple[str, dict]:
            """Refund an order."""
            effects.add(order)
            raise Killed

        agent, _ = agent_with([refund], IN_JOURNAL, asking_for("call_0"))
        with pytest.raises(Killed):
            drive(journal, agent, run_id="dead")

        messages = self.shared(journal, refund, policy=IN_JOURNAL(recover=lambda call: Done(value)))

        artifact = value[1] if isinstance(value, tuple) else None
        assert [(message.tool_call_id, message.content, message.artifact) for message in messages] == [
            (call_id, "found", artifact) for call_id in ("call_a", "call_b", "call_c")
        ]
        assert effects.lines() == ["o-7"]


class Killed(BaseException):
    """Ends an attempt as a killed worker would."""


def test_two_runs_of_one_process_at_once(journal, effects):
    """Two agents in two runs on one event loop ask for one refund at once: one acts, both get the answer."""
    began = asyncio.Event()

    async def refund(order: str) -> str:
        """Refund an order."""
        effects.add(order)
        began.set()
        await asyncio.sleep(0.2)
        return f"refunded {order}"

    first, asked_first = agent_with([refund], IN_JOURNAL, asking_for("call_1"))
    second, asked_second = agent_with([refund], IN_JOURNAL, asking_for("call_2"))

    async def job(agent, run_id):
        async with journal.run(run_id):
            await agent.ainvoke(QUESTION)

    async def jobs():
        await asyncio.gather(job(first, "first"), job(second, "second"))

    asyncio.run(asyncio.wait_for(jobs(), PATIENCE))

    assert effects.lines() == ["o-7"]
    assert answers(asked_first[1]) == [("call_1", "refunded o-7")]
    assert answers(asked_second[1]) == [("call_2", "refunded o-7")]
