"""``resume="handover"`` gives what a replay of the SDK's loop gives, without the loop."""

import contextlib
import dataclasses
import logging
from typing import Any

import pytest
from agents import (
    Agent,
    GuardrailFunctionOutput,
    ModelProvider,
    ModelSettings,
    RunConfig,
    RunHooks,
    SQLiteSession,
    function_tool,
    input_guardrail,
)

from gnl_middleware import Journal, RunInputMismatchError, safe
from gnl_openai_agents import DurableRunner
from tests.openai_agents.driving import run
from tests.openai_agents.handing_over import Ended, World, agent_in, attempt, points_of
from tests.openai_agents.scripted import QUESTION, call, said, turns
from tests.openai_agents.scripted import agent as scripted_agent
from tests.resumed import copied

POINTS = 14
LAST = POINTS - 1


@pytest.fixture(scope="module")
def points(tmp_path_factory):
    """Every point of a run that is never killed."""
    found = points_of(tmp_path_factory.mktemp("whole"))
    assert len(found) == POINTS
    return found


@pytest.fixture
def path(tmp_path):
    """Where the journal is."""
    return tmp_path / "runs.db"


def killed(path, points, place, **options: Any) -> World:
    """A journal whose first attempt died at this point (None: at none), and the world as it was left."""
    of_world = {name: options.pop(name) for name in ("recovers", "fails") if name in options}
    world = World([*points, None][place], **of_world)
    attempt(path, world, resume="replay", **options)
    return dataclasses.replace(world, kill_at=None, points=[])


def both(path, world, **options: Any) -> list[Ended]:
    """The next attempt in both ways, each on a copy of the journal and of the world."""
    return [
        attempt(
            copied(path, f"{resume}.db"),
            dataclasses.replace(world, points=[], effects=list(world.effects)),
            resume=resume,
            **options,
        )
        for resume in ("replay", "handover")
    ]


def without_marks(ended: Ended) -> Ended:
    """Without the marks of turns that a changed prompt asked otherwise: of turns that were handed over nobody asks."""
    steps = [{**step, "drifted": None, "setups": None} for step in ended.steps]
    return dataclasses.replace(ended, steps=steps)


class TestAsAReplay:
    @pytest.mark.parametrize("fails", [False, True])
    @pytest.mark.parametrize("place", range(POINTS + 1))
    def test_after_a_crash_at_any_point(self, path, points, place, fails):
        """Wherever an attempt died, the result with all its parts, effects, requests, counts and record are the same."""
        world = killed(path, points, place, fails=fails)

        replayed, handed = both(path, world)

        assert handed == replayed

    @pytest.mark.parametrize("place", range(1, LAST - 1))
    def test_where_nothing_can_settle_an_interrupted_effect(self, path, points, place):
        """An effect that may have happened blocks the run as it does in a replay, with the same error."""
        world = killed(path, points, place, recovers=False)

        replayed, handed = both(path, world)

        assert handed == replayed

    @pytest.mark.parametrize("first", [2, 3, 6, 8])
    @pytest.mark.parametrize("second", ["look#0", "model 2#0", "model 3#0", "model 4#0"])
    def test_after_two_crashes(self, path, points, first, second):
        """A run that is handed over twice ends as one that is replayed twice."""
        world = killed(path, points, first)
        ended: list[Any] = []
        for resume in ("replay", "handover"):
            lineage = copied(path, f"{resume}.db")
            again = attempt(lineage, World(second, [], list(world.effects)), resume=resume)
            ended += [(again, attempt(lineage, World(None, [], list(again.effects)), resume=resume))]

        assert ended[1] == ended[0]

    def test_from_synchronous_code(self, path, points):
        """The same from ``run_sync``."""
        world = killed(path, points, LAST)

        replayed, handed = both(path, world, synchronous=True)

        assert handed == replayed

    def test_a_finished_run_runs_nothing(self, path, points):
        """The whole result comes back, and nothing is asked or done."""
        killed(path, points, POINTS)

        replayed, handed = both(path, World(), offline=True)

        assert handed == replayed
        assert (handed.asked, handed.effects) == ([], [])

    @pytest.mark.parametrize("place", [5, LAST, POINTS])
    def test_a_journal_that_redacts(self, path, points, place):
        """What was taken out of the record is no part of what is handed over."""
        redact = {"redact": lambda text: text.replace("order", "*****")}
        world = killed(path, points, place, instructions="Mind the order.", **redact)
        world.kill_at = "model 4#0"
        attempt(path, world, resume="handover", instructions="Mind each order.", **redact)

        replayed, handed = both(path, World(None, [], world.effects), instructions="Mind it.", **redact)

        assert without_marks(handed) == without_marks(replayed)

    @pytest.mark.parametrize("max_turns", [2, 4, 5, None])
    @pytest.mark.parametrize("place", [LAST, POINTS])
    def test_the_limit_of_turns(self, path, points, place, max_turns):
        """Turns that were handed over count, also against a limit that is lower than before."""
        world = killed(path, points, place)

        replayed, handed = both(path, world, max_turns=max_turns)

        assert handed == replayed

    @pytest.mark.parametrize("reset", [True, False])
    def test_a_forced_choice_of_tools(self, path, points, reset):
        """A model that had to call a tool first need not once more: it is asked with the settings of a replay."""
        options: Any = {"model_settings": ModelSettings(tool_choice="required"), "reset_tool_choice": reset}
        world = killed(path, points, LAST, **options)

        replayed, handed = both(path, world, **options)

        assert handed == replayed
        assert handed.asked[-1][2].tool_choice == (None if reset else "required")

    def test_most_of_the_loop_is_left_out(self, journal):
        """The SDK comes to the last recorded turn alone; the turns before it are handed over."""
        agent, counted = looking(), list[int]()
        provider = Providing(agent.model)
        agent.model = None
        config = RunConfig(tracing_disabled=True, model_provider=provider)
        runner = DurableRunner(journal, default_policy=safe)
        for resume in ("replay", "replay", "handover"):
            provider.asked = 0
            run(runner, agent, QUESTION, run_id="order-7", run_config=config, resume=resume)
            counted.append(provider.asked)

        assert counted == [4, 4, 1]


class Providing(ModelProvider):
    """Gives one model, and counts how often it is asked for it, which is once a turn."""

    def __init__(self, model: Any) -> None:
        self.model, self.asked = model, 0

    def get_model(self, model_name: str | None) -> Any:
        """Give the model."""
        self.asked += 1
        return self.model


class TestDrift:
    @pytest.mark.parametrize("place", [5, LAST, POINTS])
    def test_a_changed_prompt(self, path, points, place):
        """What the model is told now is told it; the record is served as to a replay."""
        world = killed(path, points, place, instructions="It is Monday.")

        replayed, handed = both(path, world, instructions="It is Tuesday.")

        assert without_marks(handed) == without_marks(replayed)
        assert {asked[0] for asked in handed.asked} <= {"It is Tuesday."}

    def test_a_prompt_that_is_another_in_each_attempt(self, path, points):
        """A record of several attempts, each with its own prompt, is one conversation all the same."""
        world = killed(path, points, 6, instructions="It is Monday.")
        world.kill_at = "model 4#0"
        attempt(path, world, resume="replay", instructions="It is Tuesday.")

        replayed, handed = both(path, World(None, [], world.effects), instructions="It is Wednesday.")

        assert without_marks(handed) == without_marks(replayed)

    @pytest.mark.parametrize("options", [{"instructions": "Be brief."}, {"name": "other"}])
    def test_a_prompt_that_was_not_there_before(self, path, points, options):
        """What no longer fits the record is told as in a replay, or let pass as there."""
        world = killed(path, points, LAST)

        replayed, handed = both(path, world, **options)

        assert without_marks(handed) == without_marks(replayed)

    def test_a_changed_prompt_stops_before_anything_happens(self, path, points):
        """With ``on_change="stop"`` the difference is raised, and nothing is asked or done."""
        world = killed(path, points, LAST, instructions="Be kind.")

        replayed, handed = both(path, world, instructions="Be brief.", on_change="stop")

        assert handed == replayed
        assert handed.result.startswith("DivergenceError")
        assert (handed.asked, handed.effects) == ([], sorted(world.effects))

    def test_changed_settings_stop_before_anything_happens(self, path, points):
        """So do changed settings, which are compared where the model is asked."""
        world = killed(path, points, LAST)

        replayed, handed = both(path, world, model_settings=ModelSettings(temperature=0.5), on_change="stop")

        assert (handed.asked, handed.effects) == ([], sorted(world.effects))
        assert handed.result.startswith("DivergenceError")
        assert replayed.result.startswith("DivergenceError")

    def test_another_input(self, path, points):
        """Another input is refused as ever."""
        killed(path, points, LAST)
        _, agent = agent_in(World())

        with Journal(path) as journal, pytest.raises(RunInputMismatchError):
            runner = DurableRunner(journal, default_policy=safe)
            run(runner, agent, "another", run_id="order-7", resume="handover")


@input_guardrail
async def allowing(context: Any, agent: Any, given: Any) -> GuardrailFunctionOutput:
    """Let everything pass."""
    return GuardrailFunctionOutput(output_info=None, tripwire_triggered=False)


@function_tool(needs_approval=True)
async def approved(at: str) -> str:
    """Wait for a person."""
    return at


def looking(*more: Any, **options: Any) -> Agent[Any]:
    """An agent of three turns."""

    @function_tool
    async def look(at: str) -> str:
        return f"{at} is fine"

    replies = [[call("look", f"call_{n}", at=str(n))] for n in range(3)]
    return scripted_agent(turns(*replies, [said()]), look, *more, **options)


AGENTS = {
    "instructions that are made anew": {"instructions": lambda context, agent: "Be kind."},
    "a handoff": {"handoffs": [scripted_agent(turns([said()]), name="B")]},
    "a guardrail": {"input_guardrails": [allowing]},
    "another use of tools": {"tool_use_behavior": "stop_on_first_tool"},
}
RUNS = {
    "hooks": lambda: {"hooks": RunHooks()},
    "a session": lambda: {"session": SQLiteSession("s")},
    "several workers": lambda: {"lock": False},
    "a filter": lambda: {"run_config": RunConfig(call_model_input_filter=lambda data: data.model_data)},
}


def closing_session(given):
    """Closes the session that a run is given, if it is given one."""
    return contextlib.closing(given["session"]) if "session" in given else contextlib.nullcontext()


class TestWhereItIsNotUsed:
    @pytest.mark.parametrize("options", AGENTS.values(), ids=AGENTS)
    def test_the_loop_of_other_agents_is_replayed(self, journal, options, caplog):
        """Whatever has to see each turn sees it, and the log says why it takes longer."""
        runner = DurableRunner(journal, default_policy=safe)
        with caplog.at_level(logging.WARNING):
            run(runner, looking(**options), QUESTION, run_id="order-7", resume="handover")

        assert "the agent's loop is replayed" in caplog.text

    @pytest.mark.parametrize("more", RUNS.values(), ids=RUNS)
    def test_the_loop_of_other_runs_is_replayed(self, journal, more, caplog):
        """The same for what a run is given."""
        runner, given = DurableRunner(journal, default_policy=safe), more()
        with caplog.at_level(logging.WARNING), closing_session(given):
            run(runner, looking(), QUESTION, run_id="order-7", resume="handover", **given)

        assert "the agent's loop is replayed" in caplog.text

    def test_a_tool_that_waits_for_a_person(self, journal, caplog):
        """Approvals belong to the SDK's loop."""
        runner = DurableRunner(journal, default_policy=safe)
        with caplog.at_level(logging.WARNING):
            run(runner, looking(approved), QUESTION, run_id="order-7", resume="handover")

        assert "the agent's loop is replayed" in caplog.text

    def test_a_run_that_others_may_use(self, journal, caplog):
        """A run that is open around the call may hold other conversations."""
        runner = DurableRunner(journal, default_policy=safe)
        with caplog.at_level(logging.WARNING), journal.run("order-7"):
            run(runner, looking(), QUESTION, resume="handover")

        assert "no run_id=" in caplog.text

    def test_the_agent_that_it_is_made_for(self, journal, caplog):
        """It is handed over without a word."""
        runner = DurableRunner(journal, default_policy=safe)
        with caplog.at_level(logging.WARNING):
            run(runner, looking(), QUESTION, run_id="order-7", resume="handover")

        assert caplog.text == ""

    def test_an_input_with_calls(self, journal, caplog):
        """Of calls in an input the SDK sorts some out, so its loop is replayed."""
        runner = DurableRunner(journal, default_policy=safe)
        given = [{"role": "user", "content": "hi"}, {"type": "item_reference", "id": "i"}]
        with caplog.at_level(logging.WARNING):
            run(runner, looking(), given, run_id="order-7", resume="handover")

        assert "more than what was said" in caplog.text

    def test_an_input_of_several_messages(self, journal, caplog):
        """A conversation that was said is handed over with the rest."""
        runner = DurableRunner(journal, default_policy=safe)
        given = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]
        given += [{"role": "user", "content": [{"type": "input_text", "text": "?"}]}]
        results = [
            run(runner, looking(), given, run_id="order-7", resume=resume).to_input_list()
            for resume in ("replay", "replay", "handover")
        ]

        assert results[2] == results[1] == results[0]
        assert caplog.text == ""

    @pytest.mark.parametrize(
        ("options", "told"),
        [({"resume": "handover", "replay": "strict"}, "strict"), ({"resume": "hand-over"}, "choose of")],
    )
    def test_options_that_contradict_each_other(self, journal, options, told):
        """A strict replay compares every turn: that and a hand-over are refused before the run is opened."""
        runner = DurableRunner(journal, default_policy=safe)

        with pytest.raises(ValueError, match=told):
            run(runner, looking(), QUESTION, run_id="order-7", **options)

        assert journal.find("order-7") is None

    def test_streams(self, journal):
        """A stream tells of every turn, so none is left out."""
        runner = DurableRunner(journal, default_policy=safe)

        with pytest.raises(ValueError, match="a stream tells"):
            runner.run_streamed(looking(), QUESTION, run_id="order-7", resume="handover")
