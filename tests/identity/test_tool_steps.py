"""Tool calls that a recorded reply asks for: known by the reply and their place in it, whatever ids providers give."""

import asyncio

import pytest

from gnl_middleware import DivergenceError, SideEffectRetryBlockedError, keyed, never, safe
from tests.functions.asking import ask, tool_call, use, use_async
from tests.functions.scripted import RUN, Killed, run_async


class Agent:
    """One turn: the model asks for calls, then all of them are made.

    Args:
        journal: The journal.
        calls: What the reply asks for: (call id, arguments).
        policy: The label of the tool.
    """

    def __init__(self, journal, calls, *, policy=never):
        self.journal, self.calls, self.policy = journal, calls, policy
        self.ran = []
        self.asked = 0

    def turn(self, order=None, *, ending=None, question="pay", **options):
        """Ask, make the calls in the order of their places, and end; gives their results by place."""
        with self.journal.run(RUN, **options):
            self.ask(question)
            results = {place: self.call(place) for place in order or range(len(self.calls))}
            if ending is not None:
                raise ending
        return results

    def ask(self, question="pay"):
        """Ask the model, whose reply asks for the calls."""
        ask(question, [(call_id, "pay", arguments) for call_id, arguments in self.calls])

    def call(self, place):
        """Make one of the calls."""
        call_id, arguments = self.calls[place]
        return use(tool_call(self.policy, call_id, arguments=arguments), lambda: self._body(arguments))

    def _body(self, arguments):
        self.ran.append(arguments)
        return f"paid {arguments} as number {len(self.ran)}"


def order(number):
    return {"order": number}


IDS = {
    "given": ["call_a", "call_b", "call_c"],
    "reused": ["call_0", "call_0", "call_0"],
    "omitted": ["", "", ""],
    "odd": ["a/b", "a_b", "ä b"],
    "hostile": ["\x00", "../..", "'; DROP TABLE gnl_steps; --"],
    "long": ["x" * 5000, "x" * 5001, "y" * 5000],
    "not encodable": ["\ud800", "\ud801", "\udfff"],
}


@pytest.mark.parametrize("ids", IDS.values(), ids=IDS)
def test_calls_of_one_reply_replay_in_any_order(journal, ids):
    """The calls of one reply are told apart whatever their ids, and replay right in any order."""
    agent = Agent(journal, [(call_id, order(number)) for number, call_id in enumerate(ids)])
    with pytest.raises(Killed):
        agent.turn(ending=Killed())
    recorded = {step.arguments["order"]: step.value for step in journal.steps(RUN) if step.kind == "tool"}

    replayed = agent.turn([2, 0, 1])

    assert replayed == recorded
    assert len(agent.ran) == 3


@pytest.mark.parametrize(
    "ids", [IDS["given"], IDS["reused"], IDS["omitted"]], ids=["given", "reused", "omitted"]
)
def test_equal_calls_at_once_are_all_made(journal, ids):
    """Calls of one reply that are equal in all but their place, made at once, are all made."""
    calls = [(call_id, order(7)) for call_id in ids]
    agent = Agent(journal, calls)
    both_ran = asyncio.Barrier(3)

    async def body():
        await both_ran.wait()
        agent.ran.append("body")
        return "paid"

    async def turn():
        async with journal.run(RUN):
            agent.ask()
            made = (
                use_async(tool_call(never, call_id, arguments=arguments), body)
                for call_id, arguments in calls
            )
            return await asyncio.gather(*made)

    assert run_async(turn()) == run_async(turn()) == ["paid"] * 3
    assert len(agent.ran) == 3


def test_same_call_again_is_the_same_step(journal):
    """A call that is made again, as retry middleware does, is the same step: it is read back, not made twice."""
    agent = Agent(journal, [("call_a", order(7))])

    with journal.run(RUN):
        agent.ask()
        results = [agent.call(0) for _ in range(3)]

    assert results == results[:1] * 3
    assert len(agent.ran) == 1


def test_failed_call_again_is_settled(journal):
    """A `never` tool that failed and is called again by retry middleware is settled, not repeated."""
    ran = []

    def body():
        ran.append(1)
        raise TimeoutError("no answer")

    def program():
        with journal.run(RUN):
            ask("pay", [("call_a", "pay", order(7))])
            for _ in range(3):
                try:
                    use(tool_call(never, "call_a", arguments=order(7)), body)
                except TimeoutError:
                    continue

    with pytest.raises(SideEffectRetryBlockedError):
        program()

    assert ran == [1]


def test_equal_replies_carry_calls_of_their_own(journal):
    """The same reply given twice asks for two calls: the second one is not answered by the first one's record."""
    agent = Agent(journal, [("call_0", order(7))])

    def two_turns():
        with journal.run(RUN):
            results = []
            for question in ("first", "second"):
                agent.ask(question)
                results.append(agent.call(0))
            return results

    recorded = two_turns()

    assert two_turns() == recorded
    assert recorded[0] != recorded[1]
    assert len(agent.ran) == 2


@pytest.mark.parametrize("replay", ["lenient", "strict"])
@pytest.mark.parametrize("policy", [keyed, never], ids=["keyed", "never"])
def test_other_arguments_of_a_side_effect(journal, policy, replay):
    """A recorded side effect that is called with other arguments stops the run in both modes; nothing runs."""
    agent = Agent(journal, [("call_a", order(7))], policy=policy)
    agent.turn()

    def changed():
        with journal.run(RUN, replay=replay):
            agent.ask()
            return use(tool_call(policy, "call_a", arguments=order(8)), lambda: agent.ran.append("changed"))

    with pytest.raises(DivergenceError) as caught:
        changed()

    assert (caught.value.part, caught.value.recorded, caught.value.asked) == ("arguments", order(7), order(8))
    assert agent.ran == [order(7)]


def test_other_arguments_of_a_safe_call(journal):
    """A recorded `safe` call with other arguments gets its record in a lenient run, marked as drifted; strict stops."""
    agent = Agent(journal, [("call_a", order(7))], policy=safe)
    recorded = agent.turn()

    def changed(replay):
        with journal.run(RUN, replay=replay):
            agent.ask()
            return use(tool_call(safe, "call_a", arguments=order(8)), lambda: agent.ran.append("changed"))

    assert changed("lenient") == recorded[0]
    assert [step.drifted for step in journal.steps(RUN)] == [False, True]
    with pytest.raises(DivergenceError):
        changed("strict")
    assert agent.ran == [order(7)]


def test_calls_without_a_reply_are_counted(journal):
    """Tool calls without a journalled reply are known by id, arguments and how often they were made."""
    ran = []

    def program():
        with journal.run(RUN):
            return [
                use(tool_call(never, call_id, arguments=order(number)), lambda: ran.append(1) or len(ran))
                for call_id, number in [("a", 7), ("b", 7), ("a", 8), ("a", 7)]
            ]

    recorded = program()

    assert (recorded, program()) == ([1, 2, 3, 4], [1, 2, 3, 4])
    assert len({step.key for step in journal.steps(RUN)}) == 4
