"""``resume="handover"`` gives what a replay of the agent's loop gives, without the loop."""

import dataclasses
import json
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.structured_output import ToolStrategy
from langchain_core.callbacks import BaseCallbackHandler
from langchain_openai import ChatOpenAI
from langgraph.errors import GraphRecursionError
from pydantic import BaseModel

from gnl_langchain import JournalMiddleware, run_durable
from gnl_middleware import Journal, RunInputMismatchError
from tests.langchain.handing_over import Ended, World, agent_in, attempt, plain, points_of
from tests.langchain.scripted import QUESTION, ScriptedModel, calling, said, turns
from tests.resumed import copied
from tests.servers.scripted_formats import response, response_events
from tests.servers.scripted_openai import Reply, ScriptedOpenAI, ToolCall

POINTS = 14
LAST = POINTS - 1


class Streaming(ScriptedModel):
    """A model that streams whenever it is asked."""

    streaming: bool = True


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
    world = World([*points, None][place], recovers=options.pop("recovers", True))
    attempt(path, world, resume="replay", **options)
    return World(None, [], world.effects, world.recovers)


def both(path, world, **options: Any) -> list[Ended]:
    """The next attempt in both ways, each on a copy of the journal and of the world."""
    return [
        attempt(
            copied(path, f"{resume}.db"),
            World(world.kill_at, [], list(world.effects), world.recovers),
            resume=resume,
            **options,
        )
        for resume in ("replay", "handover")
    ]


def without_marks(ended: Ended) -> Ended:
    """Without the marks of turns that a changed prompt asked otherwise: of turns that were handed over nobody asks."""
    steps = [{**step, "drifted": None, "setups": None} for step in ended.steps]
    return dataclasses.replace(ended, steps=steps)


class Counting(BaseCallbackHandler):
    """Counts how often an agent calls its model."""

    def __init__(self) -> None:
        self.models = 0

    def on_chat_model_start(self, *given: Any, **options: Any) -> None:
        """One more."""
        self.models += 1


class TestAsAReplay:
    @pytest.mark.parametrize("place", range(POINTS + 1))
    def test_after_a_crash_at_any_point(self, path, points, place):
        """Wherever an attempt died, the answer, messages, effects, requests, counts and record are those of a replay."""
        world = killed(path, points, place)

        replayed, handed = both(path, world)

        assert handed == replayed

    @pytest.mark.parametrize("place", range(4, POINTS + 1, 3))
    def test_on_an_event_loop(self, path, points, place):
        """The same with ``arun_durable``."""
        world = killed(path, points, place)

        replayed, handed = both(path, world, asynchronous=True)

        assert handed == replayed

    @pytest.mark.parametrize("place", range(1, LAST - 1))
    def test_where_nothing_can_settle_an_interrupted_effect(self, path, points, place):
        """An effect that may have happened blocks the run as it does in a replay, with the same error."""
        world = killed(path, points, place, recovers=False)

        replayed, handed = both(path, world)

        assert handed == replayed

    @pytest.mark.parametrize("first", [2, 3, 6, 8])
    @pytest.mark.parametrize("second", ["fail#0", "model 2#0", "model 3#0", "model 4#0"])
    def test_after_two_crashes(self, path, points, first, second):
        """A run that is handed over twice ends as one that is replayed twice."""
        world = killed(path, points, first)
        ended: list[Any] = []
        for resume in ("replay", "handover"):
            lineage = copied(path, f"{resume}.db")
            again = attempt(lineage, World(second, [], list(world.effects)), resume=resume)
            ended += [(again, attempt(lineage, World(None, [], list(again.effects)), resume=resume))]

        assert ended[1] == ended[0]

    def test_most_of_the_loop_is_left_out(self, path, points):
        """The model is called for the first turn and for the last recorded one; the turns between are handed over."""
        killed(path, points, LAST)
        counting = Counting()

        attempt(path, World(), resume="handover", config={"callbacks": [counting]})

        assert counting.models == 3

    def test_a_finished_run_runs_nothing(self, path, points):
        """The whole conversation comes back, and nothing is asked or done."""
        killed(path, points, POINTS)

        replayed, handed = both(path, World(), offline=True)

        assert handed == replayed
        assert (handed.asked, handed.effects) == ([], [])

    @pytest.mark.parametrize("options", [{"name": "bob"}, {"model_type": Streaming}])
    @pytest.mark.parametrize("place", [LAST, POINTS])
    def test_replies_are_as_langchain_makes_them(self, path, points, place, options):
        """The name that an agent gives itself, and what becomes of a streamed reply, are the same."""
        world = killed(path, points, place, **options)

        replayed, handed = both(path, world, **options)

        assert handed == replayed

    @pytest.mark.parametrize(
        "options", [{}, {"streaming": True}, {"output_version": "v1"}, {"use_responses_api": True}]
    )
    def test_a_real_client(self, path, options):
        """What OpenAI's client makes of its server's answers is handed over as it was given."""

        def script(request: dict[str, Any]) -> Reply:
            told = json.dumps(request)
            for n in range(4):
                if f"call_{n}" not in told:
                    return Reply(f"I look, {n}.", (ToolCall(f"call_{n}", "look", {"at": str(n)}),))
            return Reply("All is fine.")

        def look(at: str) -> str:
            """Look."""
            return f"{at} is fine"

        formats = {"/v1/responses": (response, response_events)}
        with ScriptedOpenAI(script, formats=formats) as server:
            model = ChatOpenAI(
                model="gpt-4o-mini", base_url=server.base_url, api_key="test", max_retries=0, **options
            )
            agent = create_agent(model, [look], middleware=[JournalMiddleware(safe=["look"])])
            ended = [
                run_durable(agent, QUESTION, run_id="order-7", journal=path, resume=resume)["messages"]
                for resume in ("replay", "replay", "handover")
            ]

        first, replayed, handed = ([plain(message) for message in messages] for messages in ended)
        assert handed == replayed == first
        assert len(server.requests) == 5

    @pytest.mark.parametrize("place", [6, LAST, POINTS])
    def test_a_journal_that_redacts(self, path, points, place):
        """What was taken out of the record is no part of what is handed over."""
        redact = {"redact": lambda text: text.replace("order", "*****")}
        world = killed(path, points, place, system_prompt="Mind the order.", **redact)
        world.kill_at = "model 4#0"
        attempt(path, world, resume="handover", system_prompt="Mind each order.", **redact)

        replayed, handed = both(path, World(None, [], world.effects), system_prompt="Mind it.", **redact)

        assert without_marks(handed) == without_marks(replayed)


class TestDrift:
    @pytest.mark.parametrize("place", [6, LAST, POINTS])
    def test_a_changed_prompt(self, path, points, place):
        """What the model is told now is told it; the record is served as to a replay."""
        world = killed(path, points, place, system_prompt="It is Monday.")

        replayed, handed = both(path, world, system_prompt="It is Tuesday.")

        assert without_marks(handed) == without_marks(replayed)
        assert [messages[0][1]["content"] for messages in handed.asked] == ["It is Tuesday."] * len(
            handed.asked
        )

    def test_a_prompt_that_is_another_in_each_attempt(self, path, points):
        """A record of several attempts, each with its own prompt, is one conversation all the same."""
        world = killed(path, points, 6, system_prompt="It is Monday.")
        world.kill_at = points[LAST]
        attempt(path, world, resume="replay", system_prompt="It is Tuesday.")
        counting = Counting()

        replayed, handed = both(path, World(None, [], world.effects), system_prompt="It is Wednesday.")
        attempt(
            copied(path, "counted.db"),
            World(None, [], world.effects),
            resume="handover",
            system_prompt="It is Wednesday.",
            config={"callbacks": [counting]},
        )

        assert without_marks(handed) == without_marks(replayed)
        assert counting.models == 3

    @pytest.mark.parametrize("options", [{"system_prompt": "Be brief."}, {"name": "other"}])
    def test_a_prompt_that_was_not_there_before(self, path, points, options):
        """What no longer fits the record is told as in a replay, or let pass as there."""
        world = killed(path, points, LAST)

        replayed, handed = both(path, world, **options)

        assert without_marks(handed) == without_marks(replayed)

    def test_a_changed_prompt_stops_before_anything_happens(self, path, points):
        """With ``on_change="stop"`` the difference is raised for the first turn, and nothing is asked or done."""
        world = killed(path, points, LAST, system_prompt="Be kind.")

        replayed, handed = both(path, world, system_prompt="Be brief.", on_change="stop")

        assert handed == replayed
        assert handed.result.startswith("DivergenceError")
        assert (handed.asked, handed.effects) == ([], sorted(world.effects))

    def test_a_change_that_was_accepted_before_stops_later(self, path, points):
        """Turns that were asked with another prompt are compared one by one where changes stop the run."""
        world = killed(path, points, 6, system_prompt="Be kind.")
        world.kill_at = points[LAST]
        attempt(path, world, resume="handover", system_prompt="Be brief.")

        replayed, handed = both(
            path, World(None, [], world.effects), system_prompt="Be kind.", on_change="stop"
        )

        assert handed.result == replayed.result
        assert handed.result.startswith("DivergenceError")

    def test_another_input(self, path, points):
        """Another input is refused as ever."""
        killed(path, points, LAST)
        _, agent = agent_in(World())

        with Journal(path) as journal, pytest.raises(RunInputMismatchError):
            run_durable(
                agent, {"messages": [("user", "?")]}, run_id="order-7", journal=journal, resume="handover"
            )


class TestWhatOnlyTheLoopCanTell:
    def test_a_structured_reply(self, path):
        """Calls by which a model gives a structured reply are the agent's own, and left to it."""

        class Verdict(BaseModel):
            """The reply."""

            fine: bool

        replies = (
            calling("look", at="7"),
            calling("Verdict", fine="perhaps"),
            calling("look", at="8"),
            calling("Verdict", fine=True),
        )

        def ended(resume: str) -> Any:
            def look(at: str) -> str:
                """Look."""
                return f"{at} is fine"

            model = ScriptedModel(script=turns(*(reply.model_copy(deep=True) for reply in replies)))
            labels = JournalMiddleware(safe=["look"], default_policy=None)
            agent = create_agent(model, [look], middleware=[labels], response_format=ToolStrategy(Verdict))
            state = run_durable(agent, QUESTION, run_id="order-7", journal=path, resume=resume)
            return (
                state["structured_response"],
                [message.content for message in state["messages"]],
                model.asked,
            )

        first = ended("replay")
        replayed, handed = ended("replay"), ended("handover")

        assert handed == replayed
        assert handed[:2] == first[:2]

    def test_a_loop_that_came_to_its_limit(self, path):
        """It fails again, as it does in a replay; with a higher limit it goes on."""

        def ended(resume: str, limit: int) -> Any:
            def look(at: str) -> str:
                """Look."""
                return f"{at} is fine"

            model = ScriptedModel(script=turns(*(calling("look", at=str(n)) for n in range(6)), said()))
            agent = create_agent(model, [look], middleware=[JournalMiddleware(safe=["look"])])
            options: Any = {"resume": resume, "config": {"recursion_limit": limit}}
            try:
                return len(
                    run_durable(agent, QUESTION, run_id="order-7", journal=path, **options)["messages"]
                )
            except GraphRecursionError:
                return "limit"

        assert [ended("replay", 8), ended("handover", 8), ended("replay", 8)] == ["limit"] * 3
        assert ended("handover", 50) == 14
