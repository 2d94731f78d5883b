"""`tell_model`: the model is told, once and for all, that a call was interrupted and must be checked (DESIGN 3.1)."""

import pytest
from langchain_core.messages import ToolMessage
from langchain_core.tools import tool

from gnl_middleware import (
    Done,
    Journal,
    NotDone,
    SideEffectRetryBlockedError,
    Unknown,
    journaled,
    keyed,
    never,
    safe,
)
from tests.langchain.driving import drive
from tests.langchain.processes import in_process
from tests.once.agents import FIVE, agent_with, answers, asking_for, every_way, refunding, told
from tests.once.refunds import Refund, attempt
from tests.worlds import Log

IN_DOUBT = ["after_intent", "before_body", "after_body", "before_outcome"]


class Killed(BaseException):
    """Ends an attempt as a killed worker would."""


def cut_off(journal, effects, policy, *replies, made=None, **options):
    """An agent whose only refund was cut off after its effect; a second body would be a second effect."""

    def killed_once(order):
        if len(effects.lines()) == 1:
            raise Killed
        return f"refunded {order} again"

    tools = [made or refunding(effects, killed_once)]
    agent, asked = agent_with(tools, policy, *(replies or (asking_for("call_1"),)))
    # Those that wait for the one that was cut off stop the run first, where they are faster than its death.
    with pytest.raises((Killed, SideEffectRetryBlockedError)):
        drive(journal, agent, **options)
    asked.clear()
    return agent, asked


def is_told(text):
    """Whether a text says that the call was interrupted, may have happened, and must be checked first."""
    words = ("refund", "interrupted", "may or may not have happened", "Check")
    return all(word in text for word in words)


@pytest.mark.parametrize(
    ("policy", "options"),
    [
        pytest.param(never(on_interrupted="tell_model"), {}, id="policy"),
        pytest.param(never, {"on_interrupted": "tell_model"}, id="run"),
        pytest.param(never(recover=lambda call: Unknown()), {"on_interrupted": "tell_model"}, id="unknown"),
    ],
)
@every_way
class TestTold:
    def test_as_the_tools_answer(self, journal, effects, policy, options, way):
        """The text answers the call that was interrupted, as its result; nothing runs again."""
        agent, asked = cut_off(journal, effects, policy)

        driven = drive(journal, agent, way, **options)

        ((call_id, text),) = answers(asked[0])
        assert (call_id, is_told(text)) == ("call_1", True)
        (answer,) = [message for message in asked[0] if isinstance(message, ToolMessage)]
        assert (answer.status, answer.name) == ("success", "refund")
        assert (driven.reply.strip(), effects.lines()) == ("Done.", ["o-7"])

    def test_and_recorded(self, journal, effects, policy, options, way):
        """The journal shows the text as the step's result, and that it was told."""
        agent, asked = cut_off(journal, effects, policy)
        drive(journal, agent, way, **options)

        (step,) = [step for step in journal.steps("run") if step.name == "refund"]

        assert (step.status, step.resolution, step.blocked) == ("done", "told", None)
        assert [step.value] == [text for _, text in answers(asked[0])]

    def test_and_replayed_byte_for_byte(self, journal, effects, policy, options, way):
        """Later attempts tell the same text without asking anybody, whatever the run's options are by then."""
        agent, asked = cut_off(journal, effects, policy)
        first = drive(journal, agent, way, **options)

        later = [
            drive(journal, agent, way, **again) for again in ({}, {"replay": "strict"}, {"offline": True})
        ]

        assert [told(driven.state["messages"]) for driven in later] == [told(first.state["messages"])] * 3
        assert ([driven.ran for driven in later], len(asked), effects.lines()) == ([0, 0, 0], 1, ["o-7"])


class TestDeaths:
    @pytest.mark.parametrize("point", IN_DOUBT)
    def test_at_every_point_in_doubt(self, tmp_path, point):
        """The worker really dies: the next one tells the model, and the effect is as often there as it was."""
        in_process(one_refund, tmp_path, crash_at=f"refund:{point}")
        before = Log(tmp_path / "effects").lines()

        ended = [in_process(one_refund, tmp_path) for _ in range(2)]

        assert ended[0].code == 0, ended
        assert is_told(ended[0].value["answers"][0][1])
        assert ended[1].value == ended[0].value | {"asked": 0}
        assert Log(tmp_path / "effects").lines() == before

    @pytest.mark.parametrize("point", ["before_intent", "after_intent"])
    def test_while_the_model_hears_of_it(self, tmp_path, point):
        """The worker dies again in the very call that tells the model: the third one tells it the same text."""
        in_process(one_refund, tmp_path, crash_at="refund:after_body")
        in_process(one_refund, tmp_path, crash_at=f"3:{point}")

        ended = in_process(one_refund, tmp_path)

        assert is_told(ended.value["answers"][0][1])
        assert ended.value["asked"] == 1
        assert Log(tmp_path / "effects").lines() == ["o-7"]


def one_refund(folder):
    """Runs in a process of its own."""
    agent, asked = agent_with([refunding(Log(folder / "effects"))], never, asking_for("call_1"))
    with Journal(folder / "runs.db") as journal:
        driven = drive(journal, agent, on_interrupted="tell_model")
    return {"answers": answers(driven.state["messages"]), "asked": len(asked)}


def _raising(call):
    raise ConnectionError("the bank does not answer")


HOOKS = [
    pytest.param(_raising, id="raises"),
    pytest.param(lambda call: "perhaps", id="a text"),
    pytest.param(lambda call: None, id="nothing"),
    pytest.param(lambda call: True, id="a bool"),
]


class TestNeverTold:
    @pytest.mark.parametrize("hook", HOOKS)
    @pytest.mark.parametrize("where", ["policy", "run"])
    def test_when_recover_failed(self, journal, effects, hook, where):
        """A hook that raised, or answered no answer, has not said that nobody can tell: the run blocks, the model hears nothing."""
        tells = {"on_interrupted": "tell_model"}
        policy = never(recover=hook, **(tells if where == "policy" else {}))
        agent, asked = cut_off(journal, effects, policy)

        for _ in range(2):
            with pytest.raises(SideEffectRetryBlockedError):
                drive(journal, agent, **({} if where == "policy" else tells))

        assert (asked, effects.lines()) == ([], ["o-7"])

    def test_when_the_policy_blocks(self, journal, effects):
        """The policy's word goes before the run's, in both directions."""
        agent, asked = cut_off(journal, effects, never(on_interrupted="block"))

        with pytest.raises(SideEffectRetryBlockedError):
            drive(journal, agent, on_interrupted="tell_model")

        assert (asked, effects.lines()) == ([], ["o-7"])

    def test_when_recover_knows(self, journal, effects):
        """What `recover` found is the result, and what it says has not happened runs: nobody is told."""
        found, asked_found = cut_off(
            journal,
            effects,
            never(recover=lambda call: Done("found"), on_interrupted="tell_model"),
            run_id="found",
        )
        drive(journal, found, run_id="found")
        effects.path.unlink()
        absent, asked_absent = cut_off(
            journal,
            effects,
            never(recover=lambda call: NotDone(), on_interrupted="tell_model"),
            run_id="absent",
        )
        drive(journal, absent, run_id="absent")

        assert answers(asked_found[0]) == [("call_1", "found")]
        assert answers(asked_absent[0]) == [("call_1", "refunded o-7 again")]

    @pytest.mark.parametrize("label", [safe, keyed], ids=lambda policy: policy.label)
    def test_of_what_may_run_twice(self, journal, effects, label):
        """A call that may run twice runs; there is nothing to tell."""
        agent, asked = cut_off(journal, effects, label(on_interrupted="tell_model"))

        drive(journal, agent, on_interrupted="tell_model")

        assert answers(asked[0]) == [("call_1", "refunded o-7 again")]

    def test_after_a_person_decided(self, journal, effects):
        """A decision that was made before the model could be told is what it hears."""
        agent, asked = cut_off(journal, effects, never)
        journal.resolve("run", "refund", Done("refund 4711"), by="ops")

        drive(journal, agent, on_interrupted="tell_model")

        assert answers(asked[0]) == [("call_1", "refund 4711")]


class TestWhoElseHears:
    def test_siblings_keep_their_own_results(self, journal, effects):
        """Of several calls of one reply only the one that was cut off is told of; the others' results are read back."""

        @tool
        def note(order: str) -> str:
            """Make a note."""
            effects.add(f"note {order}")
            return "noted"

        @tool
        def refund(order: str) -> str:
            """Refund an order."""
            while "note o-7" not in effects.lines():
                pass
            if "refund" in effects.lines():
                raise AssertionError("a second refund")
            effects.add("refund")
            raise Killed

        reply = asking_for("call_1", name="note")
        reply.tool_calls += asking_for("call_2").tool_calls
        agent, asked = agent_with([note, refund], never, reply)
        with pytest.raises(Killed):
            drive(journal, agent)
        asked.clear()

        drive(journal, agent, on_interrupted="tell_model")

        (first, second) = answers(asked[0])
        assert (first, second[0], is_told(second[1])) == (("call_1", "noted"), "call_2", True)
        assert effects.lines() == ["note o-7", "refund"]

    def test_content_and_artifact(self, journal, effects):
        """A tool that gives content and artifact tells the text as its content, without an artifact."""

        @tool(response_format="content_and_artifact")
        def refund(order: str) -> tuple[str, dict]:
            """Refund an order."""
            effects.add(order)
            raise Killed

        agent, asked = cut_off(journal, effects, never, made=refund)

        first = drive(journal, agent, on_interrupted="tell_model")
        again = drive(journal, agent)

        (answer,) = [message for message in asked[0] if isinstance(message, ToolMessage)]
        assert (is_told(answer.content), answer.artifact) == (True, None)
        assert told(again.state["messages"]) == told(first.state["messages"])

    def test_calls_that_share_the_key(self, journal, effects):
        """Five equal calls of one reply, the one that ran cut off: all five are told, under their own ids, and none runs."""
        agent, asked = cut_off(journal, effects, never(once_per="args"), asking_for(*FIVE))

        first = drive(journal, agent, on_interrupted="tell_model")
        again = drive(journal, agent)

        assert [call_id for call_id, _ in answers(asked[0])] == list(FIVE)
        assert len({text for _, text in answers(asked[0])}) == 1
        assert is_told(answers(asked[0])[0][1])
        assert told(again.state["messages"]) == told(first.state["messages"])
        assert effects.lines() == ["o-7"]

    def test_no_other_run_takes_the_text_for_an_outcome(self, journal, effects):
        """A run that was told knows no more than before: another run of the key, which blocks, still blocks."""
        policy = never(once_per="args", window="journal")
        agent, asked = cut_off(journal, effects, policy, run_id="told")
        drive(journal, agent, run_id="told", on_interrupted="tell_model")
        asked.clear()

        with pytest.raises(SideEffectRetryBlockedError):
            drive(journal, agent, run_id="other")

        assert answers(asked[-1]) == []
        assert effects.lines() == ["o-7"]

    def test_no_other_run_hides_what_recover_knows(self, journal, effects):
        """Where the key's owner was told of but `recover` can tell by now, another run gets what it found."""
        policy = never(once_per="args", window="journal")
        agent, _ = cut_off(journal, effects, policy, run_id="told")
        drive(journal, agent, run_id="told", on_interrupted="tell_model")
        knowing, asked = agent_with(
            [refunding(effects)], policy(recover=lambda call: Done("found")), asking_for("call_9")
        )

        drive(journal, knowing, run_id="other")

        assert answers(asked[-1]) == [("call_9", "found")]
        assert effects.lines() == ["o-7"]

    def test_a_model_that_checks_and_calls_again(self, journal, effects):
        """The model, told, looks and decides to call again under a new id: that is a new call of its own, and runs."""
        agent, asked = cut_off(journal, effects, never, asking_for("call_1"), asking_for("call_2"))

        drive(journal, agent, on_interrupted="tell_model")

        assert is_told(answers(asked[1])[0][1])
        assert answers(asked[1])[1] == ("call_2", "refunded o-7 again")


class TestPlainFunctions:
    @pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
    def test_get_the_text_as_their_result(self, journal, asynchronous):
        """A plain function's caller gets the text; it is recorded and read back."""
        refund = Refund(Killed(), "twice", policy=never, asynchronous=asynchronous)
        with pytest.raises(Killed):
            attempt(journal, refund, ("o-7", ""))

        results = [
            attempt(journal, refund, ("o-7", ""), on_interrupted="tell_model"),
            attempt(journal, refund, ("o-7", "")),
        ]

        assert results[0] == results[1]
        assert (is_told(results[0][0]), len(refund.ran)) == (True, 1)

    def test_inside_a_tool(self, journal, effects):
        """A journalled function inside a tool that was re-entered tells its caller, the tool, and nobody else."""
        heard = []

        @journaled(replay=never)
        def refund(order):
            effects.add(order)
            raise Killed

        @tool
        def handle(order: str) -> str:
            """Handle an order."""
            heard.append(refund(order))
            return "handled"

        agent, asked = agent_with([handle], safe, asking_for("call_1", name="handle"))
        with pytest.raises(Killed):
            drive(journal, agent)

        drive(journal, agent, on_interrupted="tell_model")

        assert (len(heard), is_told(heard[0]), effects.lines()) == (1, True, ["o-7"])
        assert answers(asked[-1]) == [("call_1", "handled")]
